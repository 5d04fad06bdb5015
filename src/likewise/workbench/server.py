"""The server of a workbench: its routes, and the checks of every request. It listens on this machine only."""

from __future__ import annotations

import hmac
import json
import mimetypes
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from likewise._optional import need
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.workbench.hub import Hub
from likewise.workbench.state import ConflictError

HOST = "127.0.0.1"
PAGE = Path(__file__).parent / "index.html"
STYLE = Path(__file__).parents[1] / "report" / "templates" / "style.css"
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
        from starlette.requests import Request
        from starlette.responses import RedirectResponse, Response

        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = ((name.lower().encode(), value.encode()) for name, value in _HEADERS.items())
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        request = Request(scope)
        status, given = self._refusal(request), request.query_params.get("token")
        known = request.cookies.get(self.cookie, "")
        if status:
            closing = {"Connection": "close"} if status == 413 else None
            answer: Any = Response(status_code=status, headers=closing)
        elif scope["path"] == "/" and given is not None and self._is_token(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        elif (scope["path"] == "/" and given is not None) or not self._is_token(known):
            answer = Response(status_code=403)
        else:
            answer, receive = self.app, _limited(receive)
        await answer(scope, receive, send_safely)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _refusal(self, request: Any) -> int:
        """Status of a refusal by the headers; 0 if there is none."""
        headers = request.headers
        if headers.get("host") not in self.hosts:
            return 403
        origin = headers.get("origin")
        if (origin is not None or request.method not in ("GET", "HEAD")) and origin not in self.origins:
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


def build_app(hub: Hub, token: str, port: int) -> Any:
    """The application, guarded."""
    need("uvicorn", "The workbench")
    need("starlette", "The workbench")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    mimetypes.add_type("text/javascript", ".js")  # on Windows other programs may have changed it

    async def index(request: Request) -> Response:
        return FileResponse(PAGE)

    async def style(request: Request) -> Response:
        return FileResponse(STYLE)

    async def state(request: Request) -> Response:
        return JSONResponse(hub.snapshot())

    async def events(request: Request) -> Response:
        return StreamingResponse(hub.stream(), media_type="text/event-stream")

    async def file(request: Request) -> Response:
        found = hub.exported_file(request.path_params["name"])
        if found is None:
            return Response(status_code=404)
        return FileResponse(found, media_type="application/octet-stream", filename=found.name)

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
        Route("/static/report.css", style),
        Mount("/static", StaticFiles(directory=PAGE.parent / "static")),
        Route("/api/state", state),
        Route("/api/events", events),
        Route("/files/{name}", file),
        *(Route(f"/api/{name}", posted(work, quick=quick), methods=["POST"]) for name, (work, quick) in posts.items()),
    ]
    app = Starlette(routes=routes, lifespan=hub.lifespan)
    return Guard(app, token, port)


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
