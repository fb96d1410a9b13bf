"""Who may look: what stands before the page.

    request ─▶ method GET ─▶ Host is ours ─▶ token, where one is needed ─▶ page ─▶ headers that fence the browser in

The page answers GET and HEAD alone, so nothing can be changed through it. The Host header has to name this machine:
else another site could have its own name point here and read the page through a visitor's browser. On any address but
loopback a token is needed: once in the address the command prints, then in a cookie; scrapers send it as `Bearer`.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts, styles and data from here alone; Plotly styles its elements one by one."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
LEAST_TOKEN = 16


@dataclass(frozen=True)
class Rules:
    """What is let in: the address that is bound, its port, more names it is known by, and the token (None: not asked
    for, which goes for loopback alone).
    """

    address: str
    port: int
    names: tuple[str, ...] = ()
    token: str | None = None

    @property
    def cookie(self) -> str:
        """The cookie of the token: browsers share cookies between ports."""
        return f"windrow-{self.port}"

    def is_host(self, header: str) -> bool:
        """Whether a Host header names this page.

        >>> rules = Rules("127.0.0.1", 8123)
        >>> [rules.is_host(host) for host in ("localhost:8123", "127.0.0.1:8123", "[::1]:8123", "evil.example:8123")]
        [True, True, True, False]
        >>> rules.is_host("127.0.0.1:80"), rules.is_host("10.0.0.1:8123"), rules.is_host("")
        (False, False, False)
        >>> Rules("0.0.0.0", 8123, ("box",), "t" * 16).is_host("10.0.0.1:8123")
        True
        """
        host, port = split_host(header)
        if port is not None and port != self.port:
            return False
        if host in (*LOOPBACK_NAMES, self.address.lower(), *(name.lower() for name in self.names)):
            return True
        return not is_loopback(self.address) and _is_number(host)  # a name can be made to point here, a number cannot

    def is_token(self, given: str | None) -> bool:
        """Whether a token is the one; takes as long for any."""
        if self.token is None:
            return True
        return given is not None and secrets.compare_digest(given.encode(), self.token.encode())


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(address) for address in ("127.0.0.1", "::1", "localhost", "127.9.9.9", "0.0.0.0", "example.org")]
    [True, True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def split_host(header: str) -> tuple[str, int | None]:
    """Name and port of a Host header; an empty name for one that is none.

    >>> split_host("[::1]:80"), split_host("Box.local."), split_host("a:b:c"), split_host("box:http")
    (('::1', 80), ('box.local', None), ('', None), ('', None))
    """
    text = header.strip().lower()
    host, bracket, port = text.rpartition("]") if text.startswith("[") else ("", "", "")
    if bracket:
        host = host[1:]
        port = port[1:] if port.startswith(":") else port and "?"
    else:
        host, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and len(port) < 6):
        return "", None
    return host.removesuffix("."), int(port) if port else None


class Guard:
    """Lets through to `app` what the rules allow."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [None])[0]
        if self._rules.token is not None and given is not None and scope["path"] == "/":
            await self._remember(send, given)
            return

        async def fenced(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        await self._app(scope, receive, fenced)

    def _refusal(self, scope: Scope) -> tuple[int, str, tuple[tuple[bytes, bytes], ...]] | None:
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "only GET is answered", ((b"allow", b"GET, HEAD"),)
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._rules.is_host(hosts[0]):
            return 421, "this page is not known by that name", ()
        if self._rules.token is not None and not any(map(self._rules.is_token, self._given(scope))):
            return 401, "a token is needed: open the address that windrow dashboard printed", (
                (b"www-authenticate", b'Bearer realm="windrow"'),
            )  # fmt: skip
        return None

    def _given(self, scope: Scope) -> list[str]:
        """The tokens a request brings: in the address of the page alone, a cookie, or a header."""
        found = []
        if scope["path"] == "/":
            found += parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        for name, value in scope["headers"]:
            text = value.decode("latin-1")
            if name == b"authorization" and text[:7].lower() == "bearer ":
                found.append(text[7:].strip())
            elif name == b"cookie":
                try:
                    held = SimpleCookie(text).get(self._rules.cookie)
                except CookieError:
                    held = None
                if held is not None:
                    found.append(held.value)
        return found

    async def _remember(self, send: Send, token: str) -> None:
        """Put the token into a cookie, and take it out of the address."""
        cookie = f"{self._rules.cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
        headers = ((b"location", b"/"), (b"set-cookie", cookie.encode("latin-1")))
        await _answer(send, 303, "", headers)


def new_token() -> str:
    """A token nobody guesses."""
    return secrets.token_urlsafe(24)


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _answer(send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    body = f"{text}\n".encode() if text else b""
    kind = (b"content-type", b"text/plain; charset=utf-8")
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [kind, length, *headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
