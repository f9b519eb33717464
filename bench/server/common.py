"""The servers that are measured, and the table of the results."""

import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))
from servers import process

TIMEOUT_S = 60
CORES = sorted(os.sched_getaffinity(0))
# More IDs in a millisecond than a server can send.
WIDE = "layout='time:41@1ms node:2 sequence:20 epoch:2025-01-01' node=1"
NAMES = ["orders=standard node=1", f"wide={WIDE}", "invoice=segment store=memory step=1000000"]
# The requests that pace sends.
ONE = "POST /v1/orders/next HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n"
# The same, as curl and many libraries send it.
USUAL = "POST /v1/orders/next?n=1 HTTP/1.1\\r\\nHost: localhost:8080\\r\\nUser-Agent: ids/1.0\\r\\nAccept: */*\\r\\n\\r\\n"
INCR = "*2\\r\\n$4\\r\\nINCR\\r\\n$7\\r\\ninvoice\\r\\n"


def on_core(number, command):
    """A command on the core of this number, if there are two: one core is for the server, the other one for the load."""
    return ["taskset", "--cpu-list", str(CORES[number]), *map(str, command)] if len(CORES) > 1 else [*map(str, command)]


def load(*command):
    """Runs a program that sends requests, and returns its output."""
    done = subprocess.run(on_core(0, command), check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


class Server:
    """A process on its core, which ends with the `with` block."""

    def __init__(self, folder, name, command, ports):
        self.name, self.folder, self.command = name, folder, command
        self.reserved = [process.reserve_port() for _ in range(ports)]
        self.ports = [process.port_of(reserved) for reserved in self.reserved]

    def __enter__(self):
        log = self.folder / f"{self.name}.log"
        # Another server may have the same fixed numbers.
        env = os.environ | {"FRAZIL_GUARD_SCOPE": str(log)}
        self.running = process.spawn(on_core(-1, self.command(*self.ports)), log, env=env)
        if not process.await_true(lambda: all(process.listens(self.running.pid, port) for port in self.ports), TIMEOUT_S):
            raise SystemExit(f"{self.name} does not listen: {log.read_text()}")
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
        """The counts of `ask`, for a second, and for a second of the server's processor time."""
        since, used = time.monotonic(), self.cpu_seconds()
        count = ask(self)
        return count / (time.monotonic() - since), count / (self.cpu_seconds() - used)


def frazil_server(program, *more, names=NAMES):
    """A command for a server with its ports: HTTP, Redis' protocol, the operator's."""

    def command(http, resp, admin):
        return [program, *names, f"--http=:{http}", f"--resp=:{resp}", f"--admin=:{admin}", "--threads=1", *more]

    return command


def redis_server(port):
    return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]


def certificate(folder):
    """A certificate of this machine and its key, as arguments of frazil-server."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *curve, "-days", "2", *names, "-keyout", key, "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    return [f"--tls-cert={cert}", f"--tls-key={key}"]


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def table(*titles):
    print()
    row(*titles)
    print("|---|" + "---:|" * (len(titles) - 1), flush=True)


def figure(value):
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{value:,.0f}"
