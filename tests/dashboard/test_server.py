"""What the server tells: the view as it changes, the script out of its package, and nothing of damaged files."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import made
from windrow.dashboard.history import Reader
from windrow.dashboard.serve import bind, started


def events_of(answer: http.client.HTTPResponse, count: int) -> list[Any]:
    """The next views of a stream of server-sent events."""
    found: list[Any] = []
    while len(found) < count:
        line = answer.readline()
        assert line
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    return found


@pytest.mark.usefixtures("interpreted")
def test_a_live_run_is_told_as_it_goes(tmp_path: Path) -> None:
    go_on = threading.Semaphore(0)

    def each(number: int) -> None:
        assert go_on.acquire(timeout=30)

    runner = threading.Thread(target=made.run, args=(made.NEAR, tmp_path), kwargs={"batches": 3, "each": each})
    bound = bind("127.0.0.1", 0)
    with started(bound, Reader(str(tmp_path))):
        connection = http.client.HTTPConnection("127.0.0.1", bound.rules.port, timeout=30)
        connection.request("GET", "/live")
        answer = connection.getresponse()
        assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        (empty,) = events_of(answer, 1)
        assert empty["state"] == "empty"
        runner.start()
        views = events_of(answer, 1)
        while views[-1]["state"] != "finished":
            go_on.release()
            views += events_of(answer, 1)
        connection.close()
        runner.join()
    batches = [view["batch"] for view in views]
    assert batches == sorted(batches)
    assert (views[0]["state"], batches[-1]) == ("live", 3)


def test_plotly_comes_from_its_package_packed_or_not(runs: Path) -> None:
    bound = bind("127.0.0.1", 0)
    with started(bound, Reader(str(runs / "near"))):
        texts = []
        for accepts in ("gzip", "identity"):
            connection = http.client.HTTPConnection("127.0.0.1", bound.rules.port, timeout=30)
            connection.request("GET", "/plotly.js", headers={"Accept-Encoding": accepts})
            answer = connection.getresponse()
            body = answer.read()
            texts.append(gzip.decompress(body) if answer.getheader("content-encoding") == "gzip" else body)
            connection.close()
        assert texts[0] == texts[1]
        assert b"plotly.js v" in texts[0][:300]


def test_a_hundred_thousand_events_are_shown_soon(runs: Path, tmp_path: Path) -> None:
    made.multiplied(runs / "throttled", tmp_path, 100_000)
    bound = bind("127.0.0.1", 0)
    with started(bound, Reader(str(tmp_path))):
        connection = http.client.HTTPConnection("127.0.0.1", bound.rules.port, timeout=60)
        for _ in range(2):
            begun = time.monotonic()
            connection.request("GET", "/view.json")
            body = connection.getresponse().read()
            view = json.loads(body)
            assert view["events"] == 100_000
            assert len(view["series"]["at_ms"]) <= 400
            assert len(body) < 1_000_000
            assert time.monotonic() - begun < 60
        connection.close()
