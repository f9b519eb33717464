"""Web pages that send requests to a server without tokens. A browser sends any page's requests to this machine."""

import contextlib
import http.client
import http.server
import json
import pathlib
import re
import socket
import sys
import threading

import httpx
import pytest
from replica import TIMEOUT_S, Replica, process, run

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
    """Takes the next number, which shows whether others were taken."""
    with server.redis() as client:
        return client.incr("invoice")


def status(server, method, path, *headers, port="http", version="1.1", address="127.0.0.1"):
    lines = [f"{method} {path} HTTP/{version}", *headers, "Content-Length: 0", "Connection: close", "", ""]
    with socket.create_connection((address, server.ports[port]), timeout=TIMEOUT_S) as connection:
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
        *(
            [f"Host: {host}"]
            for host in ("0.0.0.0", "0.0.0.0:8080", "[::]:80", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]:8080", "[::127.0.0.1]")
        ),
        *([f"Host: {host}"] for host in ("0", "2130706433", "0x7f.1", "127.1", "a.localhost", "localhost.", "[::1%lo]", "10.0.0.5:8080")),
    ],
)
def test_a_foreign_page_is_refused(server, headers):
    before = numbers(server)
    for method, path in MINTING:
        # Tinyid reports errors as a code in the body.
        wanted = 200 if "nextSegmentId" in path else 403
        assert status(server, method, path, *headers) == wanted, path
    for path in ("/metrics", "/readyz"):
        # This path mints nothing, so an address of this machine's network is allowed, like the server's own.
        is_plain = headers in (["Host: 10.0.0.5:8080"], ["Host: [::127.0.0.1]"])
        assert status(server, "GET", path, *headers, port="admin") == (200 if is_plain else 403)
    assert numbers(server) == before + 1


@pytest.mark.parametrize(
    "referer", ["http://evil.example/", "http://localhost:3000/page?a", "http://localhost.evil.example", "about:blank", ""]
)
def test_a_foreign_page_is_known_by_its_referer_too(server, referer):
    """Browsers mark a page's request to an address on this machine by its referer alone."""
    before = numbers(server)
    for method, path in MINTING:
        wanted = 200 if "nextSegmentId" in path else 403
        assert status(server, method, path, "Host: localhost", f"Referer: {referer}") == wanted, path
    for path in ("/api/segment/get/invoice", "/id/nextIdSimple?bizType=invoice"):
        assert status(server, "POST", path, "Host: localhost", f"Referer: {referer}", "Content-Type: text/plain") == 403
        assert status(server, "HEAD", path, "Host: localhost", f"Referer: {referer}") in (403, 405)
        assert status(server, "GET", path, f"Referer: {referer}", version="1.0") == 403
    assert numbers(server) == before + 1
    # A page may link to a path that only reads.
    assert status(server, "GET", "/openapi.json", "Host: localhost", f"Referer: {referer}") == 200
    assert status(server, "GET", "/metrics", "Host: localhost", f"Referer: {referer}", port="admin") == 200


def test_a_refusal_shows_no_password_of_a_page(server):
    for header in ("Origin", "Referer"):
        for page in ("https://me:hunter2@evil.example/", "http://me:hunter2@localhost:1"):
            answer = server.ask("POST", "/v1/invoice/next", {header: page})
            assert answer[0] == 403 and b"hunter2" not in answer[-1] and b"me:" not in answer[-1], answer
    assert "hunter2" not in server.log.read_text()


def test_a_page_of_the_host_may_ask(server):
    before = numbers(server)
    for host in ("localhost:8080", "127.0.0.1", "[::1]:80", "ids.example"):
        for referer in (f"http://{host}", f"http://{host.upper()}/a?b#c", f"https://{host}/"):
            assert status(server, "GET", "/api/segment/get/invoice", f"Host: {host}", f"Referer: {referer}") == 200
    assert numbers(server) == before + 13


@pytest.mark.parametrize(
    "headers", [[], ["Host: localhost", "Host: localhost"], ["Host: localhost", "Authorization: Bearer a", "Authorization: Bearer b"]]
)
def test_a_host_that_is_missing_or_doubled(server, headers):
    assert status(server, "POST", "/v1/invoice/next", *headers) == 400
    assert status(server, "GET", "/metrics", *headers, port="admin") == 400
    assert status(server, "POST", "http://127.0.0.1/v1/invoice/next", "Host: localhost") == 400


def test_which_hosts_are_served(server):
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
    # Some balancers send this.
    assert status(server, "GET", "/readyz", port="admin", version="1.0") == 200


def test_http_2_names_its_host_in_a_pseudo_header(server):
    with httpx.Client(http1=False, http2=True, timeout=TIMEOUT_S) as client:
        for host, wanted in (("localhost:8080", 200), ("0.0.0.0:80", 403), ("[::ffff:7f00:1]", 403), ("10.0.0.5", 403)):
            url = f"http://127.0.0.1:{server.ports['http']}/v1/invoice/next"
            assert client.post(url, headers={"Host": host}).status_code == wanted, host


def outside():
    """Returns this machine's address for other machines, or the loopback address if it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


@contextlib.contextmanager
def published(address):
    """Opens a port that forwards connections, like a container's published port. Clients do not know the server's own address."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def copy(source, target):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    target.sendall(data)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(address, timeout=TIMEOUT_S)
                    for ends in ((client, server), (server, client)):
                        threading.Thread(target=copy, args=ends, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("host", ["10.0.0.5:8080", "[fd00::5]:8080", "ids_backend", "ids.internal:80"])
def test_through_a_published_port(tmp_path, host):
    """The refusal names the setting with its whole value. With that setting, the client is served."""

    def ask(server, path, **headers):
        with published((outside(), server.ports["http"])) as port:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
            client.request("POST", path, headers={"Host": host, "Content-Length": "0"} | headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

    settings = [*NAMES, "--insecure", "--hosts=ids.example"]
    with Replica(tmp_path, *settings, host="0.0.0.0") as server:
        code, body = ask(server, "/v1/invoice/next")
        assert (code, body["error"]["code"]) == (403, "FORBIDDEN")
        option = re.search(r"set (--hosts=\S+),", body["error"]["message"])[1]
        assert option.startswith("--hosts=ids.example,")
        # A client of Tinyid gets the setting, and no error about a token.
        code, tinyid = ask(server, "/id/nextId?bizType=invoice")
        assert (code, tinyid["code"], option in tinyid["message"]) == (200, 6, True)
        # The server's own address needs no setting, nor do the probes of a balancer.
        assert status(server, "POST", "/v1/invoice/next", f"Host: {outside()}:1", address=outside()) == 200
        probed = [f"Host: {host}"] if re.match(r"[\d\[]", host) else [f"Host: {outside()}"]
        for path in ("/healthz", "/readyz", "/metrics"):
            assert status(server, "GET", path, *probed, port="admin", address=outside()) == 200
    with Replica(tmp_path, *settings[:-1], option, host="0.0.0.0") as server:
        assert ask(server, "/v1/invoice/next")[0] == 200
        assert ask(server, "/id/nextId?bizType=invoice")[1]["code"] == 200
        assert ask(server, "/v1/invoice/next", Host="10.0.0.6")[0] == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "::", "::ffff:127.0.0.1", "[::ffff:10.0.0.5]"])
def test_a_wildcard_or_mapped_address_is_not_a_host(host):
    refused = run("check", *NAMES, f"--hosts=ids.example,{host}")
    assert refused.returncode and "is not a host name or the address of one machine" in refused.stderr


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
    """A page of a foreign site."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        hides = b"<meta name=referrer content=no-referrer>" if "quiet" in self.path else b""
        self.wfile.write(hides + b"<title>a page</title><body>")

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


@pytest.fixture(scope="module")
def pages():
    """Serves the foreign site, and yields its port."""
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield served.server_port
    served.shutdown()


class Tab:
    """A tab of a browser in which `*.example` is this machine."""

    def __init__(self, running):
        self.running = running
        opened = running.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = running.call("Target.attachToTarget", targetId=opened, flatten=True)["sessionId"]
        running.call("Page.enable", self.session)

    def evaluate(self, script):
        answer = self.running.call("Runtime.evaluate", self.session, expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def open(self, page):
        self.running.call("Page.navigate", self.session, url=page)
        self.await_page(f"location.href === {page!r}", page)

    def await_page(self, condition, link):
        """Waits until a loaded page meets a condition."""

        def is_there():
            try:
                return self.evaluate(f"{condition} && document.readyState === 'complete'")
            except browser.PageLeft:
                return False

        assert process.await_true(is_there, TIMEOUT_S), link

    def attack(self, page, target):
        self.open(page)
        return self.evaluate(f"{ATTACK}({target!r})")

    def follow(self, page, link):
        """Clicks on a link, and waits for the new page. A link that is not an address opens no page."""
        self.open(page)
        # The mark is on the page, so it disappears with the page.
        click = "(link => { const a = document.createElement('a'); a.href = link; window.stays = 1; a.click(); return a.hostname !== '' })"
        if self.evaluate(f"{click}({link!r})"):
            self.await_page("!window.stays", link)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browser, "FLAGS", [*browser.FLAGS, "--host-resolver-rules=MAP *.example 127.0.0.1"])
        with browser.Browser(tmp_path_factory.mktemp("browser")) as running:
            yield Tab(running)


def test_a_page_in_a_real_browser_mints_nothing(server, pages, tab):
    """Pages of another port and of another host, and a page whose name now resolves to this machine (DNS rebinding)."""
    before, port = numbers(server), server.ports["http"]
    # An opaque answer has the status 0. The request was sent and answered.
    for page in (f"http://localhost:{pages}/", f"http://evil.example:{pages}/"):
        assert tab.attack(page, f"http://127.0.0.1:{port}") == [0, 0, 0]
    # The name now resolves to the server, so the page could read the answers.
    assert tab.attack(f"http://evil.example:{port}/openapi.json", f"http://evil.example:{port}") == [403, 403, 403]
    assert numbers(server) == before + 1
    # A page of the server's own name is served, which shows that the attack would mint.
    assert tab.attack(f"http://ids.example:{port}/openapi.json", f"http://ids.example:{port}") == [200, 200, 200]
    assert numbers(server) > before + 13


# The ways in which a page may write the address of this machine.
SPELLINGS = [
    *("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.8.9.10", "127.1", "2130706433", "0x7f.1", "0177.0.0.1"),
    *("0.0.0.0", "0", "0x0", "[::1]", "[0:0:0:0:0:0:0:1]", "[::]"),
    *("[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[::ffff:0.0.0.0]", "[::1%25lo]", "%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", outside()),
]
FORMS = """(bases => Promise.all(bases.flatMap(base => ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'].map(kind => {
    if (!URL.canParse(base)) return null
    const [frame, form] = ['iframe', 'form'].map(name => document.createElement(name))
    frame.name = form.target = base + kind
    document.body.append(frame, form)
    Object.assign(form, { method: 'POST', enctype: kind, action: base + '/id/nextIdSimple?bizType=invoice' })
    return new Promise(done => { frame.onload = done, form.submit() })
}))).then(() => 'all'))"""


@pytest.mark.parametrize("host, settings", [("", ()), ("[::1]", ()), ("[::]", ("--insecure",))])
def test_no_spelling_of_this_machine_lets_a_page_mint(tmp_path, pages, tab, host, settings):
    with Replica(tmp_path, *NAMES, *settings, host=host) as server:
        port = server.ports["http"]

        def taken(page, spellings, links):
            """Counts the numbers that a page takes: by images and requests for all spellings, and by forms and links for some."""
            first = own(server)
            bases = [f"http://{spelling}:{port}" for spelling in spellings]
            tab.open(page)
            tab.evaluate(f"Promise.all({bases!r}.map({ATTACK}))")
            second = own(server)
            for base in bases[:links]:
                assert tab.evaluate(f"{FORMS}({[base]!r})") == "all"
            third = own(server)
            for base in bases[:links]:
                tab.follow(page, f"{base}/api/segment/get/invoice")
            return [second - first - 1, third - second - 1, own(server) - third - 1]

        def own(server):
            with socket.create_connection((server.address, server.ports["resp"]), timeout=TIMEOUT_S) as connection:
                connection.sendall(b"INCR invoice\r\n")
                return int(connection.recv(64)[1:])

        assert taken(f"http://evil.example:{pages}/", SPELLINGS, links=len(SPELLINGS)) == [0, 0, 0]
        assert taken(f"http://localhost:{pages}/", SPELLINGS, links=2) == [0, 0, 0]
        # A request that hides its origin differs from a program's request only in the headers that the browser adds.
        assert taken(f"http://evil.example:{pages}/?quiet", SPELLINGS[:-1], links=2) == [0, 0, 0]
        # A page of the server itself shows that each way would mint.
        assert all(taken(f"http://localhost:{port}/openapi.json", ["localhost"], links=1))
