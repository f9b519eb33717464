"""frazil-server beside redis-server and beside hyper alone, in one run: bench.py SERVER TOOLS [memory SECONDS].

The server has one thread and one core, the load the other core, where there are two. A machine that is shared gives a server now more
of its core, now less: so what is compared is requests for a second of the server's own processor time, and rounds take turns.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))
from servers import process

QUICK = bool(os.environ.get("FRAZIL_BENCH_QUICK"))
ROUNDS = 3 if QUICK else 7
SECONDS = 1 if QUICK else 3
# Requests of a round of redis-benchmark by the depth of its pipeline: some seconds each.
DEPTHS = {1: 150_000, 16: 1_500_000, 128: 3_000_000}
BATCH = 1000
RATES = (2_000, 10_000, 20_000)
IDLE = 10_000
PATIENCE_S = 60
CORES = sorted(os.sched_getaffinity(0))
# More in a millisecond than a server can send.
WIDE = "layout='time:41@1ms node:2 sequence:20 epoch:2025-01-01' node=1"
NAMES = ["orders=standard node=1", f"wide={WIDE}", "invoice=segment store=memory step=1000000"]
ONE = "POST /v1/orders/next HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n"
INCR = "*2\\r\\n$4\\r\\nINCR\\r\\n$7\\r\\ninvoice\\r\\n"


def on_core(number, command):
    return ["taskset", "--cpu-list", str(CORES[number]), *map(str, command)] if len(CORES) > 1 else [*map(str, command)]


def load(*command):
    """Runs a program that asks, and gives what it prints."""
    return subprocess.run(on_core(0, command), check=True, capture_output=True, text=True).stdout


class Server:
    """A process on its core, which ends with the `with` block."""

    def __init__(self, folder, name, command, ports):
        self.name, self.folder, self.command = name, folder, command
        self.reserved = [process.reserve_port() for _ in range(ports)]
        self.ports = [process.port_of(reserved) for reserved in self.reserved]

    def __enter__(self):
        self.running = process.spawn(on_core(-1, self.command(*self.ports)), self.folder / f"{self.name}.log")
        if not process.await_true(lambda: all(process.listens(self.running.pid, port) for port in self.ports), PATIENCE_S):
            raise SystemExit(f"{self.name} does not listen: {(self.folder / self.name).with_suffix('.log').read_text()}")
        return self

    def __exit__(self, *_):
        self.running.kill()
        self.running.wait()
        for reserved in self.reserved:
            reserved.close()

    def cpu_seconds(self):
        ticks = pathlib.Path(f"/proc/{self.running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        """Its memory in bytes."""
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.running.pid}/status").read_text())[1])

    def measure(self, ask):
        """What `ask` has counted, for a second, and for a second of the server's processor time."""
        since, used = time.monotonic(), self.cpu_seconds()
        count = ask(self)
        return count / (time.monotonic() - since), count / (self.cpu_seconds() - used)


def frazil_server(program, *more):
    def command(http, resp, admin):
        return [program, *NAMES, f"--http=:{http}", f"--resp=:{resp}", f"--admin=:{admin}", "--threads=1", *more]

    return command


def redis_server(port):
    return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]


def by_redis_benchmark(count, connections, depth, *words):
    def ask(server):
        port = server.ports[1] if server.name == "frazil-server" else server.ports[0]
        told = load("redis-benchmark", "-p", port, "-n", count, "-c", connections, "-P", depth, "--csv", *words)
        assert "ERR" not in told, told
        return count

    return ask


def by_wrk(path, *more):
    def ask(server):
        url = f"http://127.0.0.1:{server.ports[0]}{path}"
        told = load("wrk", "--threads=1", "--connections=64", f"--duration={SECONDS}s", f"--script={HERE}/post.lua", *more, url)
        assert "Non-2xx" not in told and "Socket errors" not in told, told
        return int(re.search(r"(\d+) requests in", told)[1])

    return ask


def compared(servers, ask):
    """The medians for each of the servers, whose rounds take turns."""
    rounds = [[server.measure(ask) for server in servers] for _ in range(ROUNDS)]
    return [[statistics.median(values) for values in zip(*its, strict=True)] for its in zip(*rounds, strict=True)]


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def table(*titles):
    print()
    row(*titles)
    print("|---|" + "---:|" * (len(titles) - 1))


def figure(value):
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{value:,.0f}"


def beside(title, server, peer, ask):
    """A row: of the server and its peer."""
    its, others = compared([server, peer], ask)
    row(title, *map(figure, its), *map(figure, others), f"{its[1] / others[1]:.2f}")


def in_batches(title, server, ask):
    row(title, *(figure(BATCH * value) for value in compared([server], ask)[0]))


def speed(program, tools, folder):
    server = Server(folder, "frazil-server", frazil_server(program), 3)
    redis = Server(folder, "redis-server", redis_server, 1)
    hyper = Server(folder, "hyper", lambda port: [tools / "floor", port], 1)
    with server, redis, hyper:
        table("requests; the peer", "a second", "of CPU", "peer: a second", "of CPU", "ratio, of CPU")
        for depth, count in DEPTHS.items():
            for name in ("orders", "invoice"):
                ask = by_redis_benchmark(count // (5 if QUICK else 1), 50, depth, "INCR", name)
                beside(f"`INCR {name}`, pipeline of {depth}; redis-server", server, redis, ask)
        beside("HTTP, one ID in JSON; hyper alone", server, hyper, by_wrk("/v1/orders/next"))
        table("IDs, in batches of 1,000", "a second", "of CPU")
        ask = by_redis_benchmark(4_000 if QUICK else 20_000, 8, 1, "FRAZIL.NEXT", "wide", "COUNT", BATCH)
        in_batches("`FRAZIL.NEXT wide COUNT 1000`", server, ask)
        for form in ("application/octet-stream", "text/plain", "application/json"):
            in_batches(f"HTTP, `{form}`", server, by_wrk(f"/v1/wide/next?n={BATCH}", f"--header=Accept: {form}"))
        cases = [
            ("HTTP, one ID in JSON", server.ports[0], ONE),
            ("... hyper alone", hyper.ports[0], ONE),
            ("`INCR invoice`", server.ports[1], INCR),
            ("... redis-server", redis.ports[0], INCR),
        ]
        latency(tools, cases)


def latency(tools, cases):
    """At a steady rate, whoever is late: the server and its peer in turn."""
    table("steady load, 16 connections", "requests a second", "p50, us", "p99, us", "p99.9, us")
    for rate in RATES:
        told = [[json.loads(load(tools / "pace", port, 16, SECONDS, rate, request)) for _, port, request in cases] for _ in range(ROUNDS)]
        for (title, _, _), its in zip(cases, zip(*told, strict=True), strict=True):
            reached = statistics.median(each["requests"] / each["seconds"] for each in its)
            row(title, figure(reached), *(f"{statistics.median(each[at] for each in its):,.0f}" for at in ("p50", "p99", "p999")))


def idle(program, tools, folder):
    table(f"{IDLE:,} connections that ask nothing", "memory before", "with them", "bytes each")
    for title, port, request in (("HTTP", 0, ONE), ("Redis' protocol", 1, INCR)):
        with Server(folder, "frazil-server", frazil_server(program, f"--max-connections={IDLE}"), 3) as server:
            # What the first requests allocate is there already.
            load(tools / "pace", server.ports[port], 16, 1, 1000, request)
            before = server.resident()
            command = on_core(0, [tools / "pace", server.ports[port], IDLE, 3600, 0, request])
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
                assert asking.stdout.readline() == f"{IDLE}\n"
                after = server.resident()
                asking.kill()
            row(title, f"{before / 1e6:.1f} MB", f"{after / 1e6:.1f} MB", f"{(after - before) / IDLE:,.0f}")


def memory(program, tools, folder, seconds):
    """What it has in each tenth of the time, under a load of both protocols."""
    with Server(folder, "frazil-server", frazil_server(program), 3) as server, contextlib.ExitStack() as stack:
        for port, request in enumerate((ONE, INCR)):
            command = on_core(0, [tools / "pace", server.ports[port], 16, seconds, 2_500, request])
            asking = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(asking.kill)
        table("minutes", "memory", "requests")
        since = time.monotonic()
        for part in range(11):
            until = since + 2 + part * (seconds - 4) / 10
            time.sleep(max(0, until - time.monotonic()))
            row(f"{(time.monotonic() - since) / 60:.1f}", f"{server.resident() / 1e6:.2f} MB", f"{requests(server):,}")


def requests(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.ports[2]}/metrics", timeout=PATIENCE_S) as answer:
        counts = re.findall(r'^frazil_server_requests_total\{[^}]*code="OK"[^}]*\} (\d+)', answer.read().decode(), re.MULTILINE)
    return sum(map(int, counts))


def main(program, tools, *words):
    process.exit_on_signals()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    tools = pathlib.Path(tools).resolve()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        folder = pathlib.Path(folder)
        if words:
            memory(program, tools, folder, float(words[1]))
        else:
            speed(program, tools, folder)
            idle(program, tools, folder)


main(*sys.argv[1:])
