#!/usr/bin/env python3
"""Measures what a start costs in a namespace with many records, for each store that an environment variable names.

    make build && python3 tests/servers all -- bench/fleet/starts.py --frazil target/release/frazil
    bench/fleet/starts.py --records 10,1000 redis file

The records are written without frazil, each held until an hour from now. Then `frazil next` runs again and again, with a layout of 2^22
node numbers: a process starts, leases a number, prints an ID and releases the number. Redis' slow log says what one command took at most.
"""

import argparse
import base64
import http.client
import json
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import time
import urllib.parse

LAYOUT = "time:37@10ms node:22 sequence:4 epoch:2025-01-01"
EPOCH_MS = 1_735_689_600_000
STORES = ("redis", "postgresql", "mariadb", "etcd", "zookeeper", "file")


def record(node):
    """The record of a number that another process holds for an hour."""
    tick = (int(time.time() * 1000) + 3_600_000 - EPOCH_MS) // 10
    return f"1 held token={node + 1:016x} version=1 bound={tick << 4 | 15} holder=bench:{node}"


def fill_redis(url, namespace, first, last):
    """Writes records with one script for ten thousand."""
    script = "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end"
    with socket.create_connection((url.hostname, url.port)) as server, server.makefile("rb") as replies:
        for begin in range(first, last, 10_000):
            words = ["EVAL", script, "1", f"frazil:{{{namespace}}}:slots"]
            for node in range(begin, min(begin + 10_000, last)):
                words += [str(node), record(node)]
            server.sendall(f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words))
            replies.readline()


def fill_sql(url, namespace, first, last):
    """Writes records with one statement for each thousand."""
    if url.scheme == "postgresql":
        command, ignore, rest = ["psql", "-q", url.geturl()], "", "ON CONFLICT DO NOTHING"
    else:
        login = ["-u", url.username, f"-p{urllib.parse.unquote(url.password or '')}"]
        command = ["mariadb", "-h", url.hostname, "-P", str(url.port), *login, url.path[1:]]
        ignore, rest = "IGNORE", ""
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL) as client:
        for begin in range(first, last, 1000):
            rows = (f"('{namespace}', {node}, '{record(node)}')" for node in range(begin, min(begin + 1000, last)))
            client.stdin.write(f"INSERT {ignore} INTO frazil (namespace, slot, record) VALUES {', '.join(rows)} {rest};\n")
        if url.scheme == "postgresql":
            client.stdin.write("ANALYZE frazil;\n")
        client.stdin.close()


def fill_etcd(url, namespace, first, last):
    """Writes records in transactions of a hundred."""
    server = http.client.HTTPConnection(url.hostname, url.port)

    def text(value):
        return base64.b64encode(value.encode()).decode()

    for begin in range(first, last, 100):
        puts = [
            {"request_put": {"key": text(f"/frazil/{namespace}/slot/{node:020}"), "value": text(record(node))}}
            for node in range(begin, min(begin + 100, last))
        ]
        server.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
        server.getresponse().read()


def fill_zookeeper(url, namespace, first, last):
    """Creates znodes, five hundred on their way at once."""

    def string(value):
        return struct.pack(">i", len(value)) + value.encode()

    with socket.create_connection((url.hostname, url.port)) as server, server.makefile("rb") as replies:

        def reply():
            (length,) = struct.unpack(">i", replies.read(4))
            return replies.read(length)

        hello = struct.pack(">iqiqi16s?", 0, 0, 30_000, 0, 16, b"", False)
        server.sendall(struct.pack(">i", len(hello)) + hello)
        reply()
        acl = struct.pack(">ii", 1, 31) + string("world") + string("anyone")
        for begin in range(first, last, 500):
            nodes = range(begin, min(begin + 500, last))
            for node in nodes:
                path = string(f"/frazil/{namespace}/slots/{node:020}")
                message = struct.pack(">ii", node + 1, 1) + path + string(record(node)) + acl + struct.pack(">i", 0)
                server.sendall(struct.pack(">i", len(message)) + message)
            for _ in nodes:
                reply()


def fill_file(url, namespace, first, last):
    """Copies the record of the first start, which does not name a holder."""
    folder = pathlib.Path(url.path, namespace)
    whole = next(file for file in folder.iterdir() if file.name.isdigit()).read_bytes()
    for node in range(first, last):
        (folder / str(node)).write_bytes(whole)


FILLS = {
    "redis": fill_redis,
    "postgresql": fill_sql,
    "mariadb": fill_sql,
    "etcd": fill_etcd,
    "zookeeper": fill_zookeeper,
    "file": fill_file,
}


def start(frazil, *words):
    """The seconds that `frazil next` takes."""
    begun = time.perf_counter()
    subprocess.run([frazil, "next", f"layout={LAYOUT!r}", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def slowest(url):
    """The longest command of Redis since the last look (ms), its own included."""
    slow = ["redis-cli", "-u", url.geturl(), "--json", "SLOWLOG", "GET", "128"]
    entries = json.loads(subprocess.run(slow, check=True, capture_output=True, text=True).stdout)
    subprocess.run([*slow[:3], "SLOWLOG", "RESET"], check=True, capture_output=True)
    return max((entry[2] for entry in entries), default=0) / 1000


def measure(name, url, counts, times, frazil):
    """One line for each count of records."""
    namespace = f"fleet-{time.time_ns():x}"
    store = f"store={url}"
    if name == "redis":
        begin = [frazil, "nodes", url, "--namespace", namespace, "--begin", f"layout={LAYOUT!r}"]
        subprocess.run(begin, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["redis-cli", "-u", url, "CONFIG", "SET", "slowlog-log-slower-than", "0"], check=True, capture_output=True)
    start(frazil, store, f"namespace={namespace}")
    written, first = 0, None
    for count in counts:
        parts = urllib.parse.urlsplit(url.replace("file:", "file://", 1) if name == "file" else url)
        FILLS[name](parts, namespace, written, count)
        written = count
        if name == "redis":
            slowest(parts)
        took = [start(frazil, store, f"namespace={namespace}") for _ in range(times)]
        median = statistics.median(took) * 1000
        first = first or median
        slow = f"   slowest command {slowest(parts):6.2f} ms" if name == "redis" else ""
        print(f"{name:>10} {count:>9,} records: {median:9.1f} ms   {median / first:6.2f} x{slow}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*", default=STORES, help=", ".join(STORES))
    parser.add_argument("--frazil", default=shutil.which("frazil"), help="the command")
    parser.add_argument("--records", default="10,1000,100000", help="how many, ascending")
    parser.add_argument("--times", type=int, default=21, help="how often each start is measured")
    options = parser.parse_args()
    counts = [int(count) for count in options.records.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.stores:
            url = f"file:{folder}/store" if name == "file" else os.environ.get(f"FRAZIL_TEST_{name.upper()}")
            if url:
                measure(name, url, counts, options.times, options.frazil)


if __name__ == "__main__":
    main()
