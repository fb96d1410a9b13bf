"""Who may look: hosts, methods, tokens; tried on a real server, with sockets of our own."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow.dashboard.guard import Rules
from windrow.dashboard.history import Reader
from windrow.dashboard.serve import TOKEN, Bound, bind, started
from windrow.errors import UsageError

SECRET = "s3cret-s3cret-s3cret"


@pytest.fixture(scope="module")
def loopback(runs: Path) -> Iterator[Bound]:
    bound = bind("127.0.0.1", 0)
    with started(bound, Reader(str(runs / "near"))):
        yield bound


@pytest.fixture(scope="module")
def guarded(runs: Path) -> Iterator[Bound]:
    """A page for which a token is needed, as on any other address."""
    bound = bind("127.0.0.1", 0)
    bound = Bound(bound.listening, Rules("0.0.0.0", bound.rules.port, ("box.example",), SECRET))
    with started(bound, Reader(str(runs / "near"))):
        yield bound


def asked(bound: Bound, target: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What comes back for a request as it is written here: no path is tidied up on the way."""
    connection = http.client.HTTPConnection("127.0.0.1", bound.rules.port, timeout=10)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Host": f"127.0.0.1:{bound.rules.port}"} | headers).items():
            if value:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("target", ["/", "/static/page.css", "/plotly.js", "/view.json", "/metrics"])
def test_what_is_served_is_fenced_in(loopback: Bound, target: str) -> None:
    status, headers, body = asked(loopback, target)
    assert (status, len(body) > 100) == (200, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src 'self';" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert "server" not in headers
    assert asked(loopback, target, "HEAD")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"])
def test_only_get_is_answered(loopback: Bound, method: str) -> None:
    status, headers, _ = asked(loopback, "/view.json", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost:1", "127.0.0.1@evil.example",
     "[::1", "localhost:{port}:1", "10.0.0.1:{port}", "localhost evil", ""],
)  # fmt: skip
def test_other_hosts_are_refused(loopback: Bound, host: str) -> None:
    status, _, body = asked(loopback, "/view.json", Host=host.format(port=loopback.rules.port))
    assert status in (400, 421)
    assert b"cam1" not in body


def test_two_hosts_are_refused(loopback: Bound) -> None:
    with socket.create_connection(("127.0.0.1", loopback.rules.port), timeout=10) as line:
        name = f"localhost:{loopback.rules.port}"
        line.sendall(f"GET /view.json HTTP/1.1\r\nHost: {name}\r\nHost: evil.example\r\n\r\n".encode())
        assert line.recv(200).split()[1] in (b"400", b"421")


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}", "127.0.0.1:{port}"])
def test_names_of_this_machine_are_let_in(loopback: Bound, host: str) -> None:
    assert asked(loopback, "/view.json", Host=host.format(port=loopback.rules.port))[0] == 200


@pytest.mark.parametrize(
    "target",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/guard.py", "/static/....//guard.py",
     "/../../../etc/passwd", "//etc/passwd", "/static//etc/passwd", "/static/%2Fetc%2Fpasswd", "/events/000000000.json",
     "/static/page.css%00.js", "/static/..\\..\\guard.py", "/static/", "/%00", "http://evil.example/etc/passwd",
     "/static/index.html/../../guard.py"],
)  # fmt: skip
def test_no_path_leads_out(loopback: Bound, target: str) -> None:
    status, _, body = asked(loopback, target)
    assert status in (400, 404, 405)
    assert b"root:" not in body
    assert b"import" not in body


def test_without_the_token_nothing_is_told(guarded: Bound) -> None:
    for target in (
        "/",
        "/view.json",
        "/live",
        "/metrics",
        "/static/page.css",
        "/plotly.js",
        f"/view.json?token={SECRET}",
    ):
        status, _, body = asked(guarded, target)
        assert status == 401, target
        assert b"cam" not in body
    for headers in (
        {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {SECRET}"}, {"Authorization": f"Bearer {SECRET}x"},
        {"Cookie": f"windrow-{guarded.rules.port}=wrong"}, {"Cookie": f"windrow-1={SECRET}"}, {"Cookie": '"\\'},
    ):  # fmt: skip
        assert asked(guarded, "/view.json", **headers)[0] == 401
    assert asked(guarded, "/?token=wrong")[0] == 401
    assert asked(guarded, "/?token=%FF")[0] == 401


def test_the_token_goes_from_the_address_into_a_cookie(guarded: Bound) -> None:
    status, headers, _ = asked(guarded, f"/?token={SECRET}")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert asked(guarded, "/view.json", Cookie=cookie.partition(";")[0])[0] == 200
    assert asked(guarded, "/metrics", Authorization=f"Bearer {SECRET}")[0] == 200


def test_an_open_address_is_known_by_its_numbers_and_given_names_alone(guarded: Bound) -> None:
    for host, expected in (("box.example", 200), ("10.1.2.3", 200), ("evil.example", 421)):
        found, _, _ = asked(
            guarded, "/view.json", Host=f"{host}:{guarded.rules.port}", Authorization=f"Bearer {SECRET}"
        )  # fmt: skip
        assert found == expected


def test_any_address_but_loopback_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    for address, expected in (("127.0.0.1", False), ("0.0.0.0", True)):
        bound = bind(address, 0)
        bound.listening.close()
        assert (bound.rules.token is not None) == expected
        assert ("?token=" in bound.url) == expected
    for weak in ("short", "spaces are not so good", "ünïcödé-ünïcödé-ünïcödé"):
        monkeypatch.setenv(TOKEN, weak)
        with pytest.raises(UsageError, match="the token in"):
            bind("0.0.0.0", 0)
    monkeypatch.setenv(TOKEN, SECRET)
    bound = bind("0.0.0.0", 0)
    bound.listening.close()
    assert bound.rules.token == SECRET


def test_a_port_that_is_taken_is_said_in_one_line(loopback: Bound) -> None:
    with pytest.raises(UsageError, match="cannot be bound"):
        bind("127.0.0.1", loopback.rules.port)
