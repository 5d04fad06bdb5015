"""Who may ask the server, and what it answers."""

import http.client
import json
import socket

import httpx
import pytest

from committee import TOKEN, Client, applicants
from likewise.workbench.server import MAX_BYTES, PAGE

X, Y = applicants(80)
PATHS = ("/", "/api/state", "/api/events", "/static/app.js", "/files/metric.toml")


@pytest.fixture(scope="module")
def client(serve_all):
    """A client of which nothing is recorded: all it asks for is refused, or only read."""
    return serve_all(X, Y, locked=["race"])


def port_of(client):
    return client.http.base_url.port


def raw(client, head, body=b""):
    """The first bytes of an answer to a request that is written by hand."""
    with socket.create_connection(("127.0.0.1", port_of(client)), timeout=20) as connection:
        connection.sendall(head + body)
        return connection.recv(4096)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_the_token(client, path):
    for cookies in ({}, {f"likewise-workbench-{port_of(client)}": "wrong"}):
        answer = httpx.get(f"{client.http.base_url}{path}", cookies=cookies)
        assert (answer.status_code, answer.content) == (403, b"")


def test_nothing_with_a_wrong_token_in_the_address(client):
    answer = httpx.get(str(client.http.base_url), params={"token": TOKEN[:-1]})
    assert (answer.status_code, answer.content) == (403, b"")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1.evil.example:{port}", "localhost:1", ""])
def test_nothing_under_another_host(client, host):
    for path in PATHS:
        answer = client.http.get(path, headers={"Host": host.format(port=port_of(client))})
        assert (answer.status_code, answer.content) == (403, b"")


def test_nothing_from_another_origin(client):
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port_of(client) + 1}", None):
        headers = {} if origin is None else {"Origin": origin}
        cookie = f"likewise-workbench-{port_of(client)}={TOKEN}"
        note = {"kind": "note", "name": "Eve", "text": "hello"}
        answer = httpx.post(f"{client.http.base_url}/api/act", json=note, headers={"Cookie": cookie, **headers})
        assert (answer.status_code, answer.content) == (403, b"")
    answer = client.http.get("/api/state", headers={"Origin": "http://evil.example"})
    assert (answer.status_code, answer.content) == (403, b"")
    answer = client.http.get("/api/state", headers={"Sec-Fetch-Site": "same-site"})  # another port of this machine
    assert (answer.status_code, answer.content) == (403, b"")
    assert client.state()["record"] == []  # control: the same client may ask, and nothing was noted


def test_a_body_of_100_megabytes_gets_nothing(client):
    cookie = f"likewise-workbench-{port_of(client)}={TOKEN}"
    head = (
        f"POST /api/act HTTP/1.1\r\nHost: 127.0.0.1:{port_of(client)}\r\nOrigin: http://127.0.0.1:{port_of(client)}\r\n"
        f"Cookie: {cookie}\r\n"
    )
    answer = raw(client, f"{head}Content-Length: {100_000_000}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b"\r\n\r\n")
    # A body that does not say how long it is, is read up to the limit and no further.
    connection = http.client.HTTPConnection("127.0.0.1", port_of(client), timeout=20)
    chunks, sent = [b"x" * 65536] * 1526, 0

    def body():
        nonlocal sent
        for chunk in chunks:
            sent += len(chunk)
            yield chunk

    headers = {"Origin": f"http://127.0.0.1:{port_of(client)}", "Cookie": cookie, "Transfer-Encoding": "chunked"}
    status = None
    try:
        connection.request("POST", "/api/act", body=body(), headers=headers, encode_chunked=True)
        status = connection.getresponse().status
    except (ConnectionError, TimeoutError):
        pass  # the server has hung up
    finally:
        connection.close()
    assert status in (413, None)
    assert client.state()["record"] == []
    assert MAX_BYTES == 1_000_000


def test_every_answer_has_the_policy(client):
    for path in PATHS[:2] + PATHS[3:]:
        headers = client.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert client.http.get("/static/app.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_the_token_leaves_the_address_at_once(client):
    answer = httpx.get(str(client.http.base_url), params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    said = answer.headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/"} <= set(said)


@pytest.mark.parametrize(
    "path",
    ["/static/../state.py", "/static/%2e%2e%2fserver.py", "/static/index.html", "/files/..%2fpeople.likewise.json"],
)
def test_only_own_files_are_served(client, path):
    assert client.http.get(path).status_code == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"null", b'"x"'])
def test_what_is_no_request_is_refused_in_a_line(client, body):
    for route in ("act", "start", "compare", "question", "versions", "scale"):
        answer = client.http.post(f"/api/{route}", content=body)
        assert answer.status_code == 400
        assert "\n" not in answer.json()["error"]


def test_odd_values_are_refused_and_the_server_lives(client):
    for route, given in (
        ("act", {"kind": "exported", "folder": "/", "files": []}),
        ("act", {"kind": ["weights"]}),
        ("act", {"kind": "weights", "set": {"numeric": {"income": "1"}}}),
        ("scale", {"by": "2"}),
        ("scale", {"by": -1}),
        ("start", {"from": "point", "point": 3}),
        ("start", {"from": "file", "text": "x = ", "title": "<b>.toml"}),
        ("start", {"from": "file", "text": "[numeric]\nother = 1"}),
        ("start", {"from": {"a": 1}}),
        ("person", {"label": {"a": 1}}),
        ("pair", {"a": 1, "b": 1}),
        ("compare", {"a": 1, "b": None}),
        ("versions", {"one": "no", "other": 3}),
    ):
        assert client.post(route, 400, **given)["error"]
    assert client.state()["record"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[numeric]\nregion = 0.1\n[order]\nregion = ["north", "south", "west"]', "[order]"),
        ('[categorical]\nregion = 1\n[groups]\nregion = {within = 0.1, groups = [["north", "west"]]}', "[groups]"),
        (
            "[categorical]\nregion = 1\n[distances]\nregion = {north = {south = 1, west = 2}, south = {west = 1}}",
            "[dis",
        ),
        ("[categorical]\nincome = 0.1", "people.toml has 'income' as categorical, but it is numeric here"),
        ("p = 2\n[numeric]\nincome = 0.1", "p must be 1"),
    ],
)
def test_a_metric_file_that_would_become_another_distance_is_refused(client, text, said):
    answer = client.post("start", 400, **{"from": "file", "text": text, "title": "people.toml"})
    assert said in answer["error"]
    assert client.state()["record"] == []


def test_scripts_in_names_and_reasons_are_kept_as_text(serve):
    client = serve(X, Y)
    script = "<script>alert(1)</script>"
    client.name = script
    client.act("note", text=script)
    client.act("version", title=script)
    answer = client.http.get("/api/state")
    assert answer.headers["content-type"] == "application/json"
    assert {line["name"] for line in answer.json()["record"]} == {script}
    assert "<script>alert" not in answer.json()["minutes"].replace("\\<script\\>", "")


def test_the_page_fetches_nothing_and_has_no_inline_code():
    page = PAGE.read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    assert "style=" not in page
    scripts = sorted((PAGE.parent / "static").glob("*.js"))
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert "innerHTML" not in text, script
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), script
    assert len(scripts) > 5


def test_another_browser_hears_of_a_change(serve):
    client = serve(X, Y)
    with Client(str(client.http.base_url).rstrip("/"), browser="second", name="Bob") as other:
        hear(client, other)


def hear(client, other):
    with other.http.stream("GET", "/api/events") as stream:
        lines = stream.iter_lines()
        first = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
        assert first["last"] == 0
        client.act("weights", set={"numeric": {"income": 0.01}}, seen=0)
        heard = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
        changed = next(part for part in heard if part.get("last") == 1)
        income = next(column for column in changed["columns"] if column["name"] == "income")
        assert income["weight"] == 0.01
        found = next(part["result"] for part in heard if part.get("result") and part["result"]["event"] == 1)
        assert not found["constant"]
    answer = other.act("weights", set={"numeric": {"income": 0.02}}, seen=0)
    assert answer["overrode"] == ["Ann (no. 1)"]
    assert "Bob has changed the weights" in client.act("undo", 409, seen=1)["error"]
