"""Web pages that ask a server without tokens: a browser sends the requests of any page to this machine."""

import http.server
import pathlib
import socket
import sys
import threading

import pytest
from replica import TIMEOUT_S, Replica, process

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
import browser

NAMES = ["invoice=segment store=memory compat=leaf,tinyid", "plain=segment store=memory"]
MINTING = [
    ("POST", "/v1/invoice/next"),
    ("POST", "/v1/invoice/ranges"),
    ("GET", "/api/segment/get/invoice"),
    ("GET", "/id/nextIdSimple?bizType=invoice"),
    ("GET", "/tinyid/id/nextSegmentId?bizType=invoice"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Replica(tmp_path_factory.mktemp("pages"), *NAMES, "--hosts=ids.example, other.example") as replica:
        yield replica


def numbers(server):
    """The next number, and with it whether any was taken."""
    with server.redis() as client:
        return client.incr("invoice")


def status(server, method, path, *headers, port="http", version="1.1"):
    lines = [f"{method} {path} HTTP/{version}", *headers, "Content-Length: 0", "Connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", server.ports[port]), timeout=TIMEOUT_S) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(b"".join(iter(lambda: connection.recv(65536), b"")).split()[1])


@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.example"],
        ["Host: localhost.evil.example:8080"],
        ["Host: localhost", "Origin: http://evil.example"],
        ["Host: localhost:8080", "Origin: http://localhost:3000"],
        ["Host: localhost", "Origin: null"],
        ["Host: localhost", "Sec-Fetch-Site: cross-site"],
        ["Host: localhost", "Sec-Fetch-Site: same-site"],
    ],
)
def test_a_foreign_page_is_refused(server, headers):
    before = numbers(server)
    for method, path in MINTING:
        # Tinyid's form of an error is a code in the body.
        wanted = 200 if "nextSegmentId" in path else 403
        assert status(server, method, path, *headers) == wanted, path
    for path in ("/metrics", "/readyz"):
        assert status(server, "GET", path, *headers, port="admin") == 403
    assert numbers(server) == before + 1


@pytest.mark.parametrize(
    "headers", [[], ["Host: localhost", "Host: localhost"], ["Host: localhost", "Authorization: Bearer a", "Authorization: Bearer b"]]
)
def test_a_host_that_is_missing_or_doubled(server, headers):
    assert status(server, "POST", "/v1/invoice/next", *headers) == 400
    assert status(server, "GET", "/metrics", *headers, port="admin") == 400
    assert status(server, "POST", "http://127.0.0.1/v1/invoice/next", "Host: localhost") == 400


def test_who_is_served(server):
    for headers in (
        ["Host: localhost"],
        ["Host: 127.0.0.1:8080"],
        ["Host: [::1]:8080"],
        ["Host: IDS.example:80"],
        ["Host: other.example"],
        ["Host: ids.example", "Origin: http://ids.example", "Sec-Fetch-Site: same-origin"],
        ["Host: localhost", "Sec-Fetch-Site: none"],
    ):
        assert status(server, "POST", "/v1/invoice/next", *headers) == 200, headers
    # As some balancers ask.
    assert status(server, "GET", "/readyz", port="admin", version="1.0") == 200


def test_get_mints_only_where_a_name_asks_for_it(server):
    before = numbers(server)
    for path in ("/api/segment/get/plain", "/id/nextIdSimple?bizType=plain"):
        code, _, body = server.ask("GET", path)
        assert code == 404 and b"compat=" in body
    for method in ("HEAD", "PUT", "DELETE", "TRACE", "OPTIONS"):
        for path in ("/api/segment/get/invoice", "/id/nextIdSimple?bizType=invoice"):
            assert server.ask(method, path)[0] == 405, method
    for header in ({"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}, {"X-Moz": "prefetch"}):
        assert server.ask("GET", "/api/segment/get/invoice", header)[0] == 403
    assert numbers(server) == before + 1


def test_a_wrong_system_is_named(tmp_path):
    with (
        pytest.raises(AssertionError, match=r"invoice: .*compat=.*tinyd.*did you mean"),
        Replica(tmp_path, "invoice=segment store=memory compat=tinyd"),
    ):
        pass


class Blank(http.server.BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>a page</title>")

    def log_message(self, *_):
        pass


ATTACK = """(async base => {
    const pictures = ['/id/nextSegmentId?bizType=invoice', '/api/segment/get/invoice'].map(path => new Promise(done => {
        const picture = new Image()
        picture.onload = picture.onerror = done
        picture.src = base + path
    }))
    const asked = [['POST', '/v1/invoice/next?n=10'], ['GET', '/tinyid/id/nextIdSimple?bizType=invoice'], ['GET', '/openapi.json']]
    const fetched = asked.map(([method, path]) => fetch(base + path, { method, mode: 'no-cors' }).then(answer => answer.status, () => -1))
    await Promise.all(pictures)
    return Promise.all(fetched)
})"""


def test_a_page_in_a_real_browser_mints_nothing(server, tmp_path, monkeypatch):
    """One of another port, one of another host, and one whose name has become this machine's."""
    monkeypatch.setattr(browser, "FLAGS", [*browser.FLAGS, "--host-resolver-rules=MAP *.example 127.0.0.1"])
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    before = numbers(server)
    with browser.Browser(tmp_path) as running:

        def evaluate(session, script):
            told = running.call("Runtime.evaluate", session, expression=script, awaitPromise=True, returnByValue=True)
            assert "exceptionDetails" not in told, told
            return told["result"]["value"]

        def attack(page, target):
            opened = running.call("Target.createTarget", url="about:blank")["targetId"]
            session = running.call("Target.attachToTarget", targetId=opened, flatten=True)["sessionId"]
            running.call("Page.enable", session)
            running.call("Page.navigate", session, url=page)
            loaded = f"location.href === {page!r} && document.readyState === 'complete'"
            assert process.await_true(lambda: evaluate(session, loaded), TIMEOUT_S), page
            return evaluate(session, f"{ATTACK}({target!r})")

        own, port = pages.server_port, server.ports["http"]
        # An opaque answer has the status 0: the request was sent, and answered.
        for page in (f"http://localhost:{own}/", f"http://evil.example:{own}/"):
            assert attack(page, f"http://127.0.0.1:{port}") == [0, 0, 0]
        # The name is the server's now, and so the page would read the answers.
        assert attack(f"http://evil.example:{port}/openapi.json", f"http://evil.example:{port}") == [403, 403, 403]
        assert numbers(server) == before + 1
        # A page of the server's own name is served, which shows that the attack would mint.
        assert attack(f"http://ids.example:{port}/openapi.json", f"http://ids.example:{port}") == [200, 200, 200]
        assert numbers(server) > before + 13
    pages.shutdown()
