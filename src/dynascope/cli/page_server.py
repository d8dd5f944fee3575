"""A local server for one page that changes over time."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dynascope.errors import InputError

__all__ = ["PageServer"]

_HOST = "127.0.0.1"
_SECONDS = 3.0  # minimum time between two renderings
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; frame-src 'self'; connect-src 'self'"
)


class PageServer(ThreadingHTTPServer):
    """Serves a page on 127.0.0.1 to requests with the correct token, and renders it again when its data change.

    The address shows a frame with the page. Every few seconds, a script in the frame requests the state of the data and
    replaces the page if the state has changed.

    Args:
        render: Function that returns the page.
        state: Function that returns a number, which changes with the data of the page.
        port: The port; 0 selects a free port.

    Attributes:
        address: The address of the page, with the token.
        page: The page as it was last rendered.
        shown: The state of the data on this page.

    Raises:
        InputError: The page cannot be rendered, or the port is not available.
    """

    daemon_threads = True

    def __init__(self, render: Callable[[], str], state: Callable[[], int], *, port: int):
        self._render, self._state = render, state
        self._lock, self._rendered = threading.Lock(), 0.0
        self.page, self.shown = "", None
        self.token = secrets.token_urlsafe(24)
        self.refreshed()
        try:
            super().__init__((_HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"port {port} is not available ({getattr(error, 'strerror', None) or error})",
                argument="port",
                value=port,
                remedy="choose another port, or omit --port",
            ) from None
        self.address = f"http://{_HOST}:{self.server_port}/?token={self.token}"

    def refreshed(self) -> int | None:
        """Render the page if its data have changed, at most every few seconds, and return the state of its data."""
        with self._lock:
            state = self._state()
            if state != self.shown and (self.shown is None or time.monotonic() - self._rendered >= _SECONDS):
                self.page, self.shown = self._render(), state
                self._rendered = time.monotonic()
            return self.shown


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        """Answer a request for the frame, the page or the state of its data."""
        place = urlsplit(self.path)
        given = parse_qs(place.query).get("token", [""])[0]
        if not secrets.compare_digest(given.encode(), self.server.token.encode()):
            self._answer(403, "text/plain", "The address lacks the token; copy the complete address from the terminal.")
        elif place.path == "/":
            nonce = secrets.token_urlsafe(16)
            frame = files("dynascope.cli").joinpath("watch.html").read_text("utf-8")
            frame = frame.replace("NONCE", nonce).replace("STATE", str(self.server.shown))
            self._answer(200, "text/html", frame, policy=_POLICY.format(nonce=nonce))
        elif place.path == "/page":
            self._answer(200, "text/html", self.server.page)
        elif place.path == "/state":
            try:
                answer = 200, str(self.server.refreshed())
            except (InputError, OSError) as error:  # the record was moved, for example
                answer = 503, str(error)
            self._answer(answer[0], "text/plain", answer[1])
        else:
            self._answer(404, "text/plain", "This page does not exist.")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing to the terminal."""

    def _answer(self, code: int, kind: str, content: str, *, policy: str = "") -> None:
        body = content.encode()
        self.send_response(code)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "SAMEORIGIN",
            **({"Content-Security-Policy": policy} if policy else {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        with contextlib.suppress(ConnectionError):  # the browser may have left
            self.end_headers()
            self.wfile.write(body)
