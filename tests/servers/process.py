"""Processes that surely end, and what the kernel tells about them."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

# Below the range from which the kernel serves outgoing connections: a port stays free while its server restarts.
PORTS = range(18000, 32000)


def free_port():
    """A loopback port on which nobody listens."""
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free loopback port found")


def connect(port):
    """A fresh connection to a server of ours."""
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def bound_to_us(command, account=None):
    """A command that the kernel kills when the thread that started it ends; as root it may run under another account.

    setpriv sets the signal after the change of the account, which clears it.
    """
    switch = [f"--reuid={account}", f"--regid={account}", "--init-groups"] if account and os.geteuid() == 0 else []
    return ["setpriv", *switch, "--pdeathsig=KILL", "--", *map(str, command)]


def spawn(command, log, account=None, **options):
    """Starts a command in a session of its own: a Ctrl-C is for us, and we stop it."""
    exit_on_sigterm()
    with open(log, "ab") as out:
        return subprocess.Popen(
            bound_to_us(command, account), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **options
        )


def exit_on_sigterm():
    """Lets `with` and `finally` blocks run when this process is told to end."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def family(pid):
    """A process and all of its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            parent = parent_of(entry)
            children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def parent_of(pid):
    """The parent of a process, 0 when it is gone."""
    try:
        # The name in parentheses may hold anything.
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def send(pids, number):
    """Sends a signal to those of the processes that still run."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def gone(pid):
    """Whether a process has ended, waited for or not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (OSError, IndexError):
        return True


def await_true(holds, seconds, pause=0.02):
    """Waits until something holds, and tells whether it does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def listens(pids, port):
    """Whether one of the processes listens on a port: that it is this server which answers there, not another."""
    wanted = f":{port:04X}"
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = pathlib.Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if columns[1].endswith(wanted) and columns[3] == "0A":
                inodes.add(f"socket:[{columns[9]}]")
    for pid in pids:
        try:
            if any(os.readlink(entry.path) in inodes for entry in os.scandir(f"/proc/{pid}/fd")):
                return True
        except OSError:
            continue
    return False
