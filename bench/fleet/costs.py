#!/usr/bin/env python3
"""Measures what a start, a renewal and a release cost each store: round trips, bytes, and the server's processor time.

    bench/run.sh fleet costs                    every store; prints Markdown tables
    bench/run.sh fleet costs redis,postgresql   these
    bench/run.sh fleet tier 3000                3,000 processes on three replicas of frazil-server over one PostgreSQL

The processes are real ones (bench/rust/src/bin/crowd.rs), one lease each, on private servers (tests/servers). A server's time is that
of its whole family of processes, from /proc, less its time without requests. So other work on the machine hardly changes it.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import servers
from servers import frazil, process

LAYOUT = "layout='time:37@10ms node:22 sequence:4 epoch:2025-01-01' start=zero"
# Frequent renewals, and none while a start is measured. On Redis the first start waits for less than with a window of minutes.
OFTEN, NEVER = "window=10s renew=500ms", "window=10s renew=3s"
# Fewer than the connections that a small server admits; and the leases of one process, which are renewed together.
PROCESSES, TOGETHER = 50, 200
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


def processor_us(server):
    """The processor time of a server's family, with that of the children that have ended."""
    total = 0
    for pid in process.family(server.running.pid):
        try:
            fields = process.status(f"/proc/{pid}")
            own = int(fields[11]) + int(fields[12])
            # In ticks, or exactly without the threads that have ended.
            threads = (pathlib.Path(task, "schedstat").read_text() for task in os.scandir(f"/proc/{pid}/task"))
            total += max(own * TICK_US, sum(int(text.split()[0]) for text in threads) // 1000)
            total += (int(fields[13]) + int(fields[14])) * TICK_US
        except (OSError, IndexError):
            continue
    return total


class Crowd:
    """Processes that have started, until `stop`."""

    def __init__(self, crowd, count, leases, spec, ids=1, within=0):
        self.folder = tempfile.TemporaryDirectory()
        words = [crowd, str(count), str(leases), str(ids), str(within), self.folder.name, spec]
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.begun = time.monotonic()
        self.start = json.loads(self.child.stdout.readline())
        if self.start["failed"]:
            print(f"a process failed: {self.start['failure']}", file=sys.stderr)

    def stop(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        self.lived = time.monotonic() - self.begun
        end = json.loads(self.child.stdout.readline())
        self.child.wait()
        self.folder.cleanup()
        return end


class Counter:
    """A proxy that counts the round trips and the bytes of one connection after the other."""

    def __init__(self, port):
        self.target, self.turns, self.up, self.down = port, 0, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            last = [None]
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.forward, args=(client, server, "up", last), daemon=True).start()
            threading.Thread(target=self.forward, args=(server, client, "down", last), daemon=True).start()

    def forward(self, source, target, way, last):
        while True:
            try:
                data = source.recv(1 << 16)
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                if way == "up" and last[0] != "up":
                    self.turns += 1
                last[0] = way
                setattr(self, way, getattr(self, way) + len(data))
                target.sendall(data)
            except OSError:
                return

    def read(self):
        return (self.turns, self.up, self.down)


def less(after, before):
    return tuple(a - b for a, b in zip(after, before, strict=True))


class Measurement:
    """The requests to one store, and their cost for its servers; the one that processes reach comes first."""

    def __init__(self, crowd, name, front, others=()):
        self.crowd, self.name, self.servers = crowd, name, [front, *others]
        self.namespace = f"costs-{time.time_ns():x}"
        self.front = front

    def spec(self, times, port=None):
        url = self.front.url_at(port) if port else self.front.url
        return f"{LAYOUT} store={url} namespace={self.namespace} {times}"

    def clock(self):
        return [processor_us(server) for server in self.servers] + [time.monotonic() * 1e6]

    def since(self, before):
        """The servers' processor time, less the time that they take without requests."""
        spent = less(self.clock(), before)
        return [max(0, cpu - idle * spent[-1]) for cpu, idle in zip(spent[:-1], self.idle, strict=True)]

    def wire(self):
        """The traffic of a start, a renewal and a release: (round trips, bytes there, bytes back)."""
        proxy = Counter(self.front.port)
        crowd = Crowd(self.crowd, 1, 1, self.spec("window=10s renew=2s", proxy.port))
        start = proxy.read()
        time.sleep(9)
        held = proxy.read()
        end = crowd.stop()
        time.sleep(0.5)
        renewals = max(1, end["renewals"])
        return start, tuple(count / renewals for count in less(held, start)), less(proxy.read(), held)

    def run(self, rounds, seconds):
        Crowd(self.crowd, 1, 1, self.spec(OFTEN)).stop()
        self.idle = [0.0] * len(self.servers)
        before = self.clock()
        time.sleep(4)
        spent = less(self.clock(), before)
        self.idle = [cpu / spent[-1] for cpu in spent[:-1]]
        costs = {}
        totals = {"start": [0.0] * len(self.servers), "release": [0.0] * len(self.servers)}
        client = 0
        for _ in range(rounds):
            before = self.clock()
            crowd = Crowd(self.crowd, PROCESSES, 1, self.spec(NEVER))
            started = self.since(before)
            before = self.clock()
            client += crowd.stop()["client_us"]
            ended = self.since(before)
            for what, spent in (("start", started), ("release", ended)):
                totals[what] = [a + b for a, b in zip(totals[what], spent, strict=True)]
        count = rounds * PROCESSES
        costs["start"] = [spent / count for spent in totals["start"]]
        costs["release"] = [spent / count for spent in totals["release"]]
        costs["client_us"] = client / count
        for what, many, leases in (("renewal", PROCESSES, 1), ("renewal, together", 1, TOGETHER)):
            before_start = self.clock()
            crowd = Crowd(self.crowd, many, leases, self.spec(OFTEN), ids=0)
            opened = self.since(before_start)
            if leases > 1:
                costs["start, no connection"] = [spent / leases for spent in opened]
            before, begun = self.clock(), crowd.begun
            waited = time.monotonic() - begun
            time.sleep(seconds)
            spent = self.since(before)
            end = crowd.stop()
            renewals = max(1, end["renewals"] * seconds / (seconds + waited / 2))
            costs[what] = [part / renewals for part in spent]
        costs["wire"] = self.wire()
        return costs


def show(name, costs):
    start, renewal, release = costs["wire"]

    def wire(what):
        return f"{what[0]:.3g}; {what[1]:,.0f}; {what[2]:,.0f}"

    def cpu(what):
        return " + ".join(f"{spent:,.0f}" for spent in costs[what])

    print(
        f"| {name} | {wire(start)} | {cpu('start')} | {cpu('start, no connection')} | {wire(renewal)} | {cpu('renewal')} "
        f"| {cpu('renewal, together')} | {wire(release)} | {cpu('release')} | {costs['client_us']:,.0f} |",
        flush=True,
    )


def folder(crowd, rounds):
    """The cost of a folder, which has no server: the work of its processes, beside that with `store=memory`."""
    with tempfile.TemporaryDirectory() as place:
        times = "window=10s renew=500ms"
        namespace = f"{LAYOUT} store=file:{place}/store namespace=costs {times}"
        Crowd(crowd, 1, 1, namespace).stop()
        short = sum(Crowd(crowd, PROCESSES, 1, namespace, ids=0).stop()["client_us"] for _ in range(rounds))
        running = Crowd(crowd, PROCESSES, 1, namespace, ids=0)
        time.sleep(10)
        end = running.stop()
        memory = sum(Crowd(crowd, PROCESSES, 1, f"{LAYOUT} store=memory {times}", ids=0).stop()["client_us"] for _ in range(rounds))
    whole = (short - memory) / rounds / PROCESSES
    renewal = (end["client_us"] - short / rounds) / max(1, end["renewals"])
    print(f"| folder | | start and release {whole:,.0f} | | | {renewal:,.0f} | | | | |", flush=True)


def measure(crowd, names, rounds, seconds):
    print(f"{rounds * PROCESSES} starts of one process each; load {os.getloadavg()[0]:.1f}; us of the server's processor time\n")
    print(
        "| store | start: round trips; bytes there; back | us | us without the connection | renewal: the same | us | us, 200 together "
        "| release: the same | us | the process's own us, start to end |\n|---|---|---:|---:|---|---:|---:|---|---:|---:|",
        flush=True,
    )
    for name in names:
        if name == "folder":
            folder(crowd, rounds)
        elif name == "frazil":
            with servers.start("postgresql") as store, servers.Frazil(store.url) as replica:
                replica.launch()
                replica.wait()
                show("frazil:// + PostgreSQL", Measurement(crowd, name, replica, [store]).run(rounds, seconds))
        else:
            with servers.start(name) as server:
                show(name, Measurement(crowd, name, server).run(rounds, seconds))


def connections(store):
    """The number of PostgreSQL's connections, each of which is a process."""
    names = (pathlib.Path(f"/proc/{pid}/cmdline") for pid in process.family(store.running.pid))
    count = 0
    for name in names:
        try:
            count += b"frazil frazil" in name.read_bytes()
        except OSError:
            continue
    return count


def tier(crowd, count, within, seconds):
    """One lease for each of `count` processes, which start within a time; later one replica is killed and started again."""
    with servers.start("postgresql") as store, servers.Frazil(store.url) as first:
        first.launch()
        first.wait()
        with first.beside() as second, first.beside() as third:
            hosts = ",".join(f"127.0.0.1:{server.port}" for server in (first, second, third))
            spec = f"{LAYOUT} store=frazil://{hosts} namespace=tier"
            before = [processor_us(server) for server in (store, first, second, third)]
            most, done = [0], threading.Event()

            def watch():
                while not done.wait(0.2):
                    most[0] = max(most[0], connections(store))

            threading.Thread(target=watch, daemon=True).start()
            running = Crowd(crowd, count, 1, spec, ids=2, within=within)
            started = running.start
            time.sleep(seconds / 2)
            first.restart()
            time.sleep(seconds / 2)
            spent = [processor_us(server) for server in (store, first, second, third)]
            end = running.stop()
            done.set()
    print(f"start: {json.dumps(started)}\nend: {json.dumps(end)}\nPostgreSQL had at most {most[0]} connections")
    names = ("PostgreSQL", "replica 1, since its restart", "replica 2", "replica 3")
    cpu = ", ".join(f"{name} {max(0, after - first) / 1e6:.1f}" for name, after, first in zip(names, spent, [before[0], 0, *before[2:]]))
    print(f"processor seconds: {cpu}; load {os.getloadavg()[0]:.1f}")
    if started["failed"] or end["refused"] or end["duplicates"] or end["ended"] != count:
        sys.exit("a promise was not kept")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["costs", "tier"])
    parser.add_argument("which", nargs="?", help="the stores; or the processes of the tier, 3,000")
    parser.add_argument("--crowd", required=True, help="the program of the processes")
    parser.add_argument("--server", required=True, type=pathlib.Path, help="frazil-server, as it is released")
    parser.add_argument("--within", type=int, default=60, help="in how many seconds the processes of the tier start; 0: at one instant")
    parser.add_argument("--rounds", type=int, default=4, help=f"how often {PROCESSES} processes start")
    parser.add_argument("--seconds", type=int, default=10, help="how long leases are renewed; those of the tier for 90 s")
    options = parser.parse_args()
    process.exit_on_signals()
    frazil.PROGRAM, servers.Frazil.program = options.server, str(options.server.resolve())
    if options.what == "tier":
        return tier(options.crowd, int(options.which or 3_000), options.within, 90)
    names = options.which.split(",") if options.which else [*servers.KINDS, "folder", "frazil"]
    measure(options.crowd, names, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
