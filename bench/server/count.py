"""The cost of a request in instructions and in system calls, beside redis-server and hyper alone, and of one that is refused beside one that is
answered: count.py SERVER TOOLS [TITLE]. With TITLE, only the rows that have it in their title.

Times differ from run to run; these counts do not. Instructions are those outside the kernel, as callgrind counts them. Under it a
reading of the clock is a system call, so the 60 or so instructions that one takes are not among them.
"""

import os
import pathlib
import re
import signal
import socket
import sys
import tempfile

from common import INCR, NAMES, ONE, TIMEOUT_S, USUAL, Server, frazil_server, process, redis_server, row, table

# A slip of "orders".
NONE = ONE.replace("orders", "ordesr")
# The difference of two runs: what starts and ends a server is the same in both.
FEW, MANY = 3_000, 13_000


def ask(port, request, depth, count):
    """Sends `count` requests on one connection, `depth` at a time. `request` has the text, and the end of each answer."""
    text, end = request
    wire = text.replace("\\r", "\r").replace("\\n", "\n").encode() * depth
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count // depth):
            connection.sendall(wire)
            left = depth
            while left:
                left -= connection.recv(1 << 16).count(end)


def run(under, folder, command, ports, asked, depth, count):
    """Starts a server under a tool, sends it requests, and ends it so that the tool prints its counts."""
    port, request = asked
    with Server(folder, "counted", lambda *ports: [*under, *command(*ports)], ports) as server:
        ask(server.ports[port], request, depth, count)
        os.kill(process.family(server.running.pid)[-1], signal.SIGTERM)
        server.running.wait(TIMEOUT_S)


def instructions(folder, *how):
    out = folder / "callgrind"
    run(["valgrind", "--quiet", "--max-threads=1000", "--tool=callgrind", f"--callgrind-out-file={out}"], folder, *how)
    return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)[1])


def calls(folder, *how):
    out = folder / "strace"
    run(["strace", "--follow-forks", "--summary-only", f"--output={out}"], folder, *how)
    return int(re.search(r"(\d+)\s+\d*\s*total$", out.read_text(), re.MULTILINE)[1])


def of_a_request(count, *how):
    return (count(*how, MANY) - count(*how, FEW)) / (MANY - FEW)


def main(program, tools, wanted=""):
    process.exit_on_signals()
    http, resp = (ONE, b'"]}'), (INCR, b"\r\n")
    frazil, floor = frazil_server(program), pathlib.Path(tools).resolve() / "floor"
    # The ports, and the one that gets the requests.
    pairs = [
        (f"HTTP; hyper alone{title}", (1, 16), (frazil, 3, (0, http)), (lambda port, more=more: [floor, port, *more], 1, (0, http)))
        for title, more in [("", []), (" with its time limit", ["limited"])]
    ]
    usual, limited = (0, (USUAL, b'"]}')), lambda port: [floor, port, "limited"]
    pairs.append(("HTTP with usual headers and `?n=1`; hyper alone with its time limit", (1,), (frazil, 3, usual), (limited, 1, usual)))
    pairs.append(("`INCR`; redis-server", (1, 16, 128), (frazil, 3, (1, resp)), (redis_server, 1, (0, resp))))
    of_10_000 = frazil_server(program, names=NAMES + [f"name-{number:05}=standard node={number % 1024}" for number in range(10_000)])
    for title, names in [("", frazil), (" of 10,000", of_10_000)]:
        missing, served = (names, 3, (0, (NONE, b'"}}'))), (names, 3, (0, http))
        pairs.append((f"HTTP, a name that is not served{title}; one that is", (1,), missing, served))
    pairs.append((f"HTTP, 10,000 names; {len(NAMES)} names", (1,), (of_10_000, 3, (0, http)), (frazil, 3, (0, http))))
    table("of a request; the peer", "instructions", "peer", "ratio", "system calls", "peer")
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        folder = pathlib.Path(folder)
        for title, depths, *servers in pairs:
            for depth in depths if wanted in title else ():
                ours, peers = (of_a_request(instructions, folder, *server, depth) for server in servers)
                our_calls, peer_calls = (of_a_request(calls, folder, *server, depth) for server in servers)
                counts = [f"{ours:,.0f}", f"{peers:,.0f}", f"{ours / peers:.2f}", f"{our_calls:.2f}", f"{peer_calls:.2f}"]
                row(f"{title}, pipeline of {depth}", *counts)


main(*sys.argv[1:])
