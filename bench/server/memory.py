"""The memory of frazil-server under steady load in every protocol, each minute: memory.py SERVER TOOLS SECONDS. Fails where it grows.

Two servers, one of them with TLS. Connections come and go; some 2,000 requests a second, a few of which are refused.
"""

import contextlib
import json
import pathlib
import re
import signal
import ssl
import statistics
import sys
import tempfile
import time
import urllib.request

from common import INCR, NAMES, ONE, TIMEOUT_S, Server, certificate, frazil_server, on_core, process, row, table

# The requests of a connection, before another one replaces it.
EACH = 500
GROWTH = 1.05


def http(what):
    return f"{what} HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n"


def resp(*words):
    return f"*{len(words)}\\r\\n" + "".join(f"${len(word)}\\r\\n{word}\\r\\n" for word in words)


# The requests of pace: the index of the port (HTTP, Redis' protocol, the operator's), the rate in a second, the request.
STEADY = [
    (0, 600, ONE),
    (0, 100, http("POST /v1/wide/next?n=100")),
    (0, 100, http("POST /v1/invoice/ranges?n=500")),
    (0, 50, http("GET /v1/orders/range?from=2026-01-01&to=2026-02-01")),
    (0, 100, http("GET /api/segment/get/old")),
    (0, 100, http("GET /id/nextSegmentIdSimple?bizType=old")),
    (1, 600, INCR),
    (1, 100, resp("FRAZIL.NEXT", "wide", "COUNT", "100")),
    (1, 100, resp("INCRBY", "invoice", "10")),
    (1, 50, resp("FRAZIL.STORE", "LOAD", "shop", "1000", "*")),
    (2, 2, http("GET /metrics")),
]


def forever(*command):
    """A command that is started again and again, and whose first failure ends it."""
    return ["sh", "-c", 'while "$@"; do :; done', "sh", *map(str, command)]


def by_curl(url, *options):
    return forever("curl", "--silent", "--show-error", "--output", "/dev/null", "--rate", "50/s", "--request", "POST", *options, url)


def loads(tools, folder, plain, tls):
    http_port, tls_http, tls_resp = plain.ports[0], *tls.ports[:2]
    for port, rate, request in STEADY:
        yield [tools / "pace", plain.ports[port], 4, 365 * 24 * 3600, rate, request, EACH]
    yield by_curl(f"http://127.0.0.1:{http_port}/v1/nobody/next?n=[1-500]")
    trusted = ["--cacert", folder / "cert.pem"]
    yield by_curl(f"https://127.0.0.1:{tls_http}/v1/orders/next?n=[1-100]", "--fail", "--http1.1", *trusted)
    yield by_curl(f"https://127.0.0.1:{tls_http}/v1/orders/next?n=[1-100]", "--fail", "--http2", *trusted)
    yield forever("redis-cli", "-p", tls_resp, "--tls", *trusted, "-e", "-r", 100, "-i", 0.02, "INCR", "invoice")


def requests(server, cert=None):
    """The number of answers, refusals included."""
    context = ssl.create_default_context(cafile=cert) if cert else None
    scheme = "https" if cert else "http"
    with urllib.request.urlopen(f"{scheme}://127.0.0.1:{server.ports[2]}/metrics", timeout=TIMEOUT_S, context=context) as answer:
        counts = re.findall(r"^frazil_server_requests_total\{.*\} (\d+)", answer.read().decode(), re.MULTILINE)
    return sum(map(int, counts))


def main(program, tools, seconds):
    process.exit_on_signals()
    tools, seconds = pathlib.Path(tools).resolve(), float(seconds)
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        names = [*NAMES, "old=segment store=memory step=1000000 compat=leaf,tinyid", f"shop=lend store=file:{folder / 'lent'}"]
        plain = stack.enter_context(Server(folder, "plain", frazil_server(program, names=names), 3))
        tls = stack.enter_context(Server(folder, "tls", frazil_server(program, *certificate(folder)), 3))
        running = []
        for number, command in enumerate(loads(tools, folder, plain, tls)):
            log = folder / f"load-{number}.log"
            asking = process.spawn(on_core(0, command), log)
            stack.callback(process.send, [-asking.pid], signal.SIGKILL)
            running.append((asking, log))
        watch(plain, tls, folder / "cert.pem", running, seconds)


def watch(plain, tls, cert, running, seconds):
    table("minutes", "memory", "requests", "memory with TLS", "requests")
    since, seen = time.monotonic(), []
    # The memory that the first requests allocate is included.
    for minute in range(int(seconds // 60) + 1):
        time.sleep(max(0, since + 5 + 60 * minute - time.monotonic()))
        for asking, log in running:
            if asking.poll() is not None:
                raise SystemExit(f"{json.dumps(asking.args[-9:], default=str)} ended: {log.read_text()[-1000:]}")
        seen.append((plain.resident(), tls.resident()))
        counts = requests(plain), requests(tls, cert)
        cells = [f"{resident / 1e6:.2f} MB | {count:,}" for resident, count in zip(seen[-1], counts, strict=True)]
        row(str(minute), *cells)
    for title, its in zip(("without TLS", "with TLS"), zip(*seen, strict=True), strict=True):
        first, last, least, most = (f"{value / 1e6:.2f}" for value in (its[0], its[-1], min(its), max(its)))
        print(f"\n{title}: first {first} MB, last {last} MB, least {least} MB, most {most} MB", flush=True)
        quarter = max(1, len(its) // 4)
        # In the first quarter the heap takes what the most requests at once need.
        if statistics.median(its[-quarter:]) > GROWTH * statistics.median(its[quarter:][:quarter] or its):
            raise SystemExit(f"{title} the memory grows")


main(*sys.argv[1:])
