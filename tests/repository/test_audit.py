"""The audit of dependencies asks for every pin, fails on what is known, and passes with a note where nobody answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from scripts.audit_dependencies import main, pins

PINS = "# made by nobody\nalpha==1.0\nbeta==2.1  # old\n\n"


@contextmanager
def database(answer: bytes) -> Iterator[tuple[str, list[Any]]]:
    """A database on this machine that gives one answer, and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (b'{"results": [{}, {"vulns": [{"id": "B-2"}, {"id": "B-1"}]}]}', 1, "beta==2.1: B-1, B-2"),
        (b'{"results": [{}, {}]}', 0, "2 pinned packages: 0 with known weaknesses"),
        (b"<html>", 0, "were not audited"),
        (b"{}", 0, "were not audited"),
        (b'{"results": []}', 0, "were not audited"),
    ],
)
def test_what_is_known_fails(
    answer: bytes, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "pins.txt").write_text(PINS)
    assert pins(tmp_path / "pins.txt") == [("alpha", "1.0"), ("beta", "2.1")]
    with database(answer) as (url, asked):
        monkeypatch.setenv("WINDROW_AUDIT_URL", url)
        assert main([str(tmp_path / "pins.txt")]) == code
    assert said in capsys.readouterr().out
    assert [each["version"] for each in asked[0]["queries"]] == ["1.0", "2.1"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9/"])
def test_without_a_database_it_passes_with_a_note(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINDROW_AUDIT_URL", url)
    assert main([]) == 0
    assert "were not audited" in capsys.readouterr().out


def test_an_audit_of_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing\n")
    assert main([str(tmp_path / "none.txt")]) == 1
