"""Serving: an address bound, a token where it takes one, and a server that ends with the program.

check ─▶ socket ─▶ rules ─▶ server, here (`run`) or beside what the program does (`started`)
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from windrow.dashboard.guard import LEAST_TOKEN, Rules, is_loopback, new_token
from windrow.dashboard.history import Reader
from windrow.dashboard.server import app_of
from windrow.errors import UsageError

TOKEN = "WINDROW_TOKEN"
"""The environment variable that may bring the token: a command line can be read by others."""
CLOSED_WITHIN_S = 1


@dataclass(frozen=True)
class Bound:
    """A socket that listens, and the rules of who may look."""

    listening: socket.socket
    rules: Rules

    @property
    def url(self) -> str:
        """Where to point a browser."""
        host = f"[{self.rules.address}]" if ":" in self.rules.address else self.rules.address
        if self.rules.address in ("0.0.0.0", "::"):
            host = socket.gethostname()
        token = "" if self.rules.token is None else f"?token={self.rules.token}"
        return f"http://{host}:{self.rules.port}/{token}"


def bind(address: str, port: int, names: tuple[str, ...] = ()) -> Bound:
    """Bind an address; a token is made, or taken from the environment, unless only this machine can reach it."""
    token = None if is_loopback(address) else os.environ.get(TOKEN) or new_token()
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"the token in {TOKEN} can be guessed", hint=f"give {LEAST_TOKEN} letters and digits, or none")
    if token is not None and not all(letter.isalnum() or letter in "-._~" for letter in token):
        raise UsageError(f"the token in {TOKEN} does not fit into an address", hint="use letters, digits and -._~")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        hint = "give another --port, or 0 for any that is free"
        raise UsageError(f"{address}:{port} cannot be bound: {error.strerror}", place="dashboard", hint=hint) from error
    return Bound(listening, Rules(address, listening.getsockname()[1], (*names, socket.gethostname()), token))


def server_of(bound: Bound, reader: Reader) -> uvicorn.Server:
    """The server of a run's page."""
    config = uvicorn.Config(
        app_of(reader, bound.rules), log_level="warning", access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=CLOSED_WITHIN_S, limit_concurrency=256, ws="none", proxy_headers=False,
    )  # fmt: skip
    return uvicorn.Server(config)


@contextmanager
def started(bound: Bound, reader: Reader) -> Iterator[str]:
    """The page beside what this program does; its address."""
    server = server_of(bound, reader)
    thread = threading.Thread(target=server.run, args=([bound.listening],), name="windrow page", daemon=True)
    thread.start()
    try:
        yield bound.url
    finally:
        server.should_exit = True
        thread.join(CLOSED_WITHIN_S + 5)
        bound.listening.close()
