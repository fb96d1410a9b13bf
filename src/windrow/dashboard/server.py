"""The server: the page, its data as it changes, and metrics.

    /                 the page                          /static/…        its script and style, and nothing else
    /plotly.js        Plotly, from its own package      /live            the view, as server-sent events
    /view.json        the view once                     /metrics         for Prometheus

One task looks for new events while the server runs, whoever watches; all watchers get the same text. What is served is
a fixed list of files of this package: no path of a request ever becomes the path of a file.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from windrow.dashboard.guard import App, Guard, Rules
from windrow.dashboard.history import Reader, title_of
from windrow.dashboard.metrics import CONTENT_TYPE, exposition
from windrow.dashboard.view import view_of

LOOK_EVERY_S = 1.0
BEAT_S = 15.0
"""A comment goes out so often where nothing else does, so that a connection that is dead is noticed."""
MOST_WATCHERS = 64
STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "parts.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Watch:
    """Follows a run for all who watch it: the view as text, and a signal when it changes."""

    def __init__(self, reader: Reader, clock: Callable[[], float] = time.time) -> None:
        self.reader = reader
        self.text = ""
        self.watchers = 0
        self._clock = clock
        self._changed = asyncio.Condition()
        self._looking = threading.Lock()

    def look(self) -> None:
        """Look for new events, and make the view. One at a time does."""
        with self._looking:
            if self.reader.refresh() or not self.text or '"state":"live"' in self.text:
                self.text = as_text(view_of(self.reader.history, title_of(self.reader.address), self._clock()))

    async def run(self) -> None:
        """Look until cancelled."""
        told = ""
        while True:
            await asyncio.to_thread(self.look)
            if self.text != told:  # whoever looked
                told = self.text
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(LOOK_EVERY_S)

    async def texts(self) -> AsyncIterator[str]:
        """The view, now and whenever it changes, as server-sent events."""
        self.watchers += 1
        try:
            sent = ""
            while True:
                if self.text != sent:
                    sent = self.text
                    yield f"data: {sent}\n\n"
                try:
                    async with asyncio.timeout(BEAT_S), self._changed:
                        await self._changed.wait_for(lambda: self.text != sent)  # noqa: B023 - waited for at once
                except TimeoutError:
                    yield ": \n\n"
        finally:
            self.watchers -= 1


def as_text(view: Any) -> str:
    """A view as JSON on one line; a number that is none becomes null."""
    return json.dumps(view, separators=(",", ":"), allow_nan=False)


def app_of(reader: Reader, rules: Rules) -> App:
    """The page of a run, behind its guard."""
    watch = Watch(reader)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(watch.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def page(_: Request) -> Response:
        return Response(
            static("index.html"), media_type="text/html; charset=utf-8", headers={"cache-control": "no-store"}
        )

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return Response(static(name), media_type=STATIC[name], headers={"cache-control": "no-cache"})

    async def plotly(request: Request) -> Response:
        packed, length = await asyncio.to_thread(plotly_script)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            packed = await asyncio.to_thread(gzip.decompress, packed)
            headers = {}
        else:
            headers = {"content-encoding": "gzip"}
        return Response(
            packed, media_type="text/javascript; charset=utf-8",
            headers={**headers, "cache-control": "max-age=3600", "x-length": str(length)},
        )  # fmt: skip

    async def live(_: Request) -> Response:
        if watch.watchers >= MOST_WATCHERS:
            return Response("too many are watching\n", 503, media_type="text/plain")
        return StreamingResponse(watch.texts(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def view(_: Request) -> Response:
        await asyncio.to_thread(watch.look)
        return Response(watch.text, media_type="application/json", headers={"cache-control": "no-store"})

    async def metrics(_: Request) -> Response:
        await asyncio.to_thread(watch.look)
        return Response(exposition(reader.history), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    routes = [
        Route("/", page), Route("/static/{name}", file), Route("/plotly.js", plotly), Route("/live", live),
        Route("/view.json", view), Route("/metrics", metrics),
    ]  # fmt: skip
    return Guard(Starlette(routes=routes, lifespan=lifespan), rules)


@lru_cache
def static(name: str) -> bytes:
    """A file of the page."""
    return (resources.files("windrow.dashboard") / "static" / name).read_bytes()


@lru_cache
def plotly_script() -> tuple[bytes, int]:
    """Plotly's own script out of its installed package, packed, and its length."""
    script = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return gzip.compress(script, 5), len(script)
