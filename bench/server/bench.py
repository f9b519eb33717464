"""frazil-server, redis-server and hyper alone, in one run and one table: bench.py SERVER TOOLS.

The server has one thread and one core. The load runs on the other core, where there are two. A shared machine gives a server more of its
core at some times and less at others, so the table compares requests per second of the server's own processor time, and rounds take
turns. Requests per second of wall-clock time are in parentheses.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile

from common import (
    HERE,
    INCR,
    NAMES,
    ONE,
    TIMEOUT_S,
    Server,
    certificate,
    figure,
    frazil_server,
    load,
    on_core,
    process,
    redis_server,
    row,
    table,
)

QUICK = bool(os.environ.get("FRAZIL_BENCH_QUICK"))
ROUNDS = 3 if QUICK else 5
SECONDS = 1 if QUICK else 2
# Requests of a round of redis-benchmark by the depth of its pipeline: a second or two each.
DEPTHS = {1: 150_000, 16: 1_500_000, 128: 3_000_000}
BATCH = 1000
RATES = (2_000, 10_000)
IDLE = 10_000
PACKED = "application/octet-stream"
# A generator's, of `standard`: 4,096 in a millisecond.
CAP = 4_096_000
GENERATORS = (1, 2, 4)


def by_redis_benchmark(count, connections, depth, *words):
    def ask(server):
        port = server.ports[1] if server.name == "frazil-server" else server.ports[0]
        output = load("redis-benchmark", "-p", port, "-n", count, "-c", connections, "-P", depth, "--csv", *words)
        assert "ERR" not in output, output
        return count

    return ask


def by_wrk(path, *more, depth=1):
    def ask(server):
        url = f"http://127.0.0.1:{server.ports[0]}{path}"
        options = ["--threads=1", "--connections=64", f"--duration={SECONDS}s", f"--script={HERE}/post.lua"]
        output = load("wrk", *options, *more, url, "--", depth)
        assert "Non-2xx" not in output and "Socket errors" not in output, output
        return int(re.search(r"(\d+) requests in", output)[1])

    return ask


def compared(servers, ask):
    """The medians for each of the servers; their rounds take turns."""
    rounds = [[server.measure(ask) for server in servers] for _ in range(ROUNDS)]
    return [[statistics.median(values) for values in zip(*its, strict=True)] for its in zip(*rounds, strict=True)]


def cell(rates):
    by_clock, of_cpu = rates
    return f"{figure(of_cpu)} ({figure(by_clock)})"


def beside(title, server, peer, ask, wanted="1"):
    """A row: of the server and its peer."""
    its, others = compared([server, peer], ask)
    row(title, cell(its), cell(others), f"{its[1] / others[1]:.2f}", wanted)


def in_batches(title, server, ask, wanted="5 million"):
    [(by_clock, of_cpu)] = compared([server], ask)
    row(title, cell((BATCH * by_clock, BATCH * of_cpu)), "", "", wanted)


def speed(program, tools, folder):
    several = [f"of{count}=standard store=memory namespace=of{count} generators={count}" for count in GENERATORS]
    server = Server(folder, "frazil-server", frazil_server(program, names=[*NAMES, *several]), 3)
    redis = Server(folder, "redis-server", redis_server, 1)
    hyper = Server(folder, "hyper", lambda port: [tools / "floor", port], 1)
    with server, redis, hyper:
        for name in ("invoice", "orders"):
            for depth, count in DEPTHS.items():
                ask = by_redis_benchmark(count // (5 if QUICK else 1), 50, depth, "INCR", name)
                beside(f"`INCR {name}`, pipeline of {depth}; redis-server", server, redis, ask)
        for depth in (1, 16):
            beside(f"HTTP, one ID in JSON, pipeline of {depth}; hyper alone", server, hyper, by_wrk("/v1/orders/next", depth=depth))
        ask = by_redis_benchmark(4_000 if QUICK else 20_000, 8, 1, "FRAZIL.NEXT", "wide", "COUNT", BATCH)
        in_batches(f"IDs of `FRAZIL.NEXT wide COUNT {BATCH}`", server, ask)
        for form in (PACKED, "text/plain", "application/json"):
            in_batches(f"IDs of HTTP, `n={BATCH}`, `{form}`", server, by_wrk(f"/v1/wide/next?n={BATCH}", f"--header=Accept: {form}"))
        for count in GENERATORS:
            ask = by_wrk(f"/v1/of{count}/next?n={BATCH}", f"--header=Accept: {PACKED}")
            in_batches(f"IDs of HTTP, `n={BATCH}`, `standard generators={count}`", server, ask, f"by the clock {figure(count * CAP)}")
        for rate in RATES:
            at_rate("HTTP, one ID in JSON; hyper alone", tools, rate, (server.ports[0], hyper.ports[0]), ONE)
            at_rate("`INCR invoice`; redis-server", tools, rate, (server.ports[1], redis.ports[0]), INCR)


def at_rate(title, tools, rate, ports, request):
    """Latency at a steady rate, of the server and its peer in turn. Delays of the load count as well."""

    def ask(port):
        return json.loads(load(tools / "pace", port, 16, SECONDS, rate, request))

    rounds = [[ask(port) for port in ports] for _ in range(ROUNDS)]
    medians = [{key: statistics.median(each[key] for each in its) for key in its[0]} for its in zip(*rounds, strict=True)]
    cells = [f"{each['p50']:,.0f}; {each['p99']:,.0f} us" for each in medians]
    row(f"p50; p99 at {rate:,} a second: {title}", *cells, f"{medians[0]['p99'] / medians[1]['p99']:.2f}", "p99 < 1,000 us")


def idle(program, tools, folder):
    holders = [
        ("HTTP", "http", ONE, hold, []),
        ("Redis' protocol", "resp", INCR, hold, []),
        ("HTTP with TLS", "http", ONE, hold_tls, certificate(folder)),
    ]
    for title, protocol, request, holder, options in holders:

        def command(port, protocol=protocol, options=options):
            # One port: each has as many connections, and a file for each.
            return [program, *NAMES, f"--{protocol}=:{port}", "--threads=1", f"--max-connections={IDLE}", *options]

        with Server(folder, "frazil-server", command, 1) as server, holder(tools, folder, server.ports[0], request):
            row(f"{IDLE:,} idle connections, {title}", f"{server.resident() / 1e6:.0f} MB", "", "", "200 MB")


@contextlib.contextmanager
def hold(tools, _folder, port, request):
    """Connections that have sent one request, and then stay idle."""
    command = on_core(0, [tools / "pace", port, IDLE, 3600, 0, request])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout.readline() == f"{IDLE}\n"
        yield
        asking.kill()


@contextlib.contextmanager
def hold_tls(_tools, folder, port, request):
    context = ssl.create_default_context(cafile=folder / "cert.pem")
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            plain = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
            connection = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            connection.sendall(request.encode().decode("unicode_escape").encode())
            assert connection.recv(4096)
        yield


def main(program, tools):
    process.exit_on_signals()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    tools = pathlib.Path(tools).resolve()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        folder = pathlib.Path(folder)
        table("for a second of the server's CPU (by the clock); the peer", "frazil-server", "peer", "ratio", "wanted")
        speed(program, tools, folder)
        idle(program, tools, folder)


main(*sys.argv[1:])
