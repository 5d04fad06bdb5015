"""The server of a workbench: its routes, and the checks of every request. It listens on this machine only."""

from __future__ import annotations

import hmac
import json
import re
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from likewise._optional import need
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.workbench.hub import Hub
from likewise.workbench.state import ConflictError

HOST = "127.0.0.1"
MAX_BYTES = 1_000_000
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_STATIC = re.compile(r"[a-z_]+\.(css|js)")

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Guard:
    """Refuses requests without the token, from another host or origin, or with a large body; with empty answers.

    A browser on this machine may be shown any page. The check of Host stops names that are made to point here (DNS
    rebinding), the check of Origin stops other pages that post here, and the token stops other users of this machine.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token, self.port = app, token, port
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.cookie = f"likewise-workbench-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.lower().encode(), value.encode()) for name, value in _HEADERS.items()),
                ]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        status = self._refusal(scope, headers)
        if status:
            await _empty(send_safely, status)
            return
        given = _query_token(scope)
        if scope["path"] == "/" and given is not None:
            if hmac.compare_digest(given.encode(), self.token.encode()):
                cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                await _empty(send_safely, 303, [(b"location", b"/"), (b"set-cookie", cookie.encode())])
            else:
                await _empty(send_safely, 403)
            return
        if not hmac.compare_digest(_cookies(headers).get(self.cookie, "").encode(), self.token.encode()):
            await _empty(send_safely, 403)
            return
        await self.app(scope, _limited(receive), send_safely)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> int:
        """Status of a refusal by the headers; 0 if there is none."""
        if headers.get("host") not in self.hosts:
            return 403
        origin = headers.get("origin")
        if (origin is not None or scope["method"] not in ("GET", "HEAD")) and origin not in self.origins:
            return 403
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BYTES:
            return 413
        return 0


class _TooLargeError(Exception):
    """A body above `MAX_BYTES`."""


def _limited(receive: Receive) -> Receive:
    """Stop reading a body, whatever its headers say, above the limit."""
    total = 0

    async def limited() -> Any:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > MAX_BYTES:
            raise _TooLargeError
        return message

    return limited


def _query_token(scope: Scope) -> str | None:
    found = re.fullmatch(rb"token=([\w-]{1,200})", scope.get("query_string", b""))
    return found[1].decode() if found else None


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs}


async def _empty(send: Send, status: int, headers: Any = ()) -> None:
    closing = [(b"connection", b"close")] if status == 413 else []
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-length", b"0"), *headers, *closing],
    }
    await send(start)
    await send({"type": "http.response.body", "body": b""})


def build_app(hub: Hub, token: str, port: int) -> Any:
    """The application, guarded."""
    need("uvicorn", "The workbench")
    need("starlette", "The workbench")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    assets = load_assets()

    def asset(name: str) -> Response:
        if name not in assets:
            return Response(status_code=404)
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(assets[name], media_type=f"{kind}; charset=utf-8")

    async def index(request: Request) -> Response:
        return asset("index.html")

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        return asset(name) if _STATIC.fullmatch(name) else Response(status_code=404)

    async def state(request: Request) -> Response:
        return JSONResponse(hub.snapshot())

    async def events(request: Request) -> Response:
        return StreamingResponse(hub.stream(), media_type="text/event-stream")

    async def file(request: Request) -> Response:
        found = hub.exported_file(request.path_params["name"])
        if found is None:
            return Response(status_code=404)
        name = request.path_params["name"]
        data = await run_in_threadpool(found.read_bytes)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(data, media_type="application/octet-stream", headers=headers)

    def posted(work: Callable[[dict[str, Any]], Any], *, quick: bool) -> Any:
        """An endpoint: JSON in, JSON out, errors in one line."""

        async def endpoint(request: Request) -> Response:
            try:
                body = await request.body()
            except _TooLargeError:
                return Response(status_code=413, headers={"Connection": "close"})
            try:
                given = json.loads(body)
            except (ValueError, RecursionError):
                return JSONResponse({"error": "The request was not JSON."}, 400)
            if not isinstance(given, dict):
                return JSONResponse({"error": "The request was not a JSON object."}, 400)
            try:
                return JSONResponse(work(given) if quick else await run_in_threadpool(work, given))
            except ConflictError as error:
                return JSONResponse({"error": str(error)}, 409)
            except (LikewiseError, ValueError, OSError) as error:
                return JSONResponse({"error": " ".join(str(error).split())[:500]}, 400)

        return endpoint

    posts: dict[str, tuple[Callable[[dict[str, Any]], Any], bool]] = {
        "act": (hub.act, True),
        "start": (hub.start, True),
        "scale": (hub.scale, True),
        "round": (hub.round, True),
        "export": (hub.export, True),
        "question": (hub.question, False),
        "pair": (hub.pair, False),
        "person": (hub.person, False),
        "compare": (hub.compare, False),
        "versions": (hub.side_by_side, False),
    }
    routes = [
        Route("/", index),
        Route("/static/{name}", static),
        Route("/api/state", state),
        Route("/api/events", events),
        Route("/files/{name}", file),
        *(Route(f"/api/{name}", posted(work, quick=quick), methods=["POST"]) for name, (work, quick) in posts.items()),
    ]
    app = Starlette(routes=routes, lifespan=hub.lifespan)
    return Guard(app, token, port)


def load_assets() -> dict[str, str]:
    """The page's own files by name, and the report's style sheet."""
    folder = files("likewise.workbench") / "static"
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if "." in path.name}
    found["report.css"] = (files("likewise.report") / "templates" / "style.css").read_text(encoding="utf-8")
    return found


def bind(port: int) -> socket.socket:
    """A socket on this machine only; port 0 takes a free one."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
        bound.listen()  # a browser that is faster than the server waits
    except OSError as error:
        bound.close()
        raise InvalidInputError(f"--port {port} cannot be used: {error.strerror}. Give another one, or 0.") from None
    return bound


def make_server(hub: Hub, token: str, bound: socket.socket) -> Any:
    """A server that is not running yet: ``server.run(sockets=[bound])``; ``server.should_exit = True`` ends it."""
    uvicorn = need("uvicorn", "The workbench")
    config = uvicorn.Config(
        build_app(hub, token, bound.getsockname()[1]),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=5,
    )
    return uvicorn.Server(config)
