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


def reserve_port():
    """A socket that holds a loopback port on which nobody listens: nobody else gets it until the socket is closed.

    A server may listen there meanwhile, and again after its end, because servers bind with SO_REUSEADDR; it is set here only after the
    bind, which fails where another reservation or an old connection is.
    """
    for port in random.SystemRandom().sample(PORTS, 200):
        reserved = socket.socket()
        try:
            reserved.bind(("127.0.0.1", port))
        except OSError:
            reserved.close()
            continue
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return reserved
    raise OSError(f"no free loopback port found from {PORTS.start} to {PORTS.stop - 1}")


def port_of(reserved):
    """The port that a socket holds."""
    return reserved.getsockname()[1]


def connect(port):
    """A fresh connection to a server of ours."""
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def bound_to_us(command, account=None):
    """A command that the kernel kills when the thread that started it ends; as root it may run under another account.

    setpriv sets the signal after the change of the account, which clears it.
    """
    switch = [f"--reuid={account}", f"--regid={account}", "--init-groups"] if account and os.geteuid() == 0 else []
    return ["setpriv", *switch, "--pdeathsig=KILL", "--", *map(str, command)]


def spawn(command, log, account=None, **options):
    """Starts a command in a session of its own: a Ctrl-C is for us, and we stop it."""
    exit_on_signals()
    with open(log, "ab") as out:
        return subprocess.Popen(
            bound_to_us(command, account), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **options
        )


def exit_on_signals():
    """Lets `with` and `finally` blocks run when this process is told to end, also one that a shell has started in the background.

    Such a shell lets it ignore SIGINT. Whoever ignores SIGHUP, as nohup wants it, goes on ignoring it.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
        return int(status(f"/proc/{pid}")[1])
    except (OSError, IndexError):
        return 0


def status(folder):
    """The kernel's fields of a process or a thread after its name: the state, the parent, and more."""
    # The name in parentheses may hold anything.
    return pathlib.Path(folder, "stat").read_text().rpartition(")")[2].split()


def send(pids, number):
    """Sends a signal to those of the processes that still run."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def freeze(pids, seconds):
    """Stops processes where they stand, and waits until each of their threads stands; tells whether they do.

    To send SIGSTOP is not enough: on a busy machine the thread that takes it waits for a processor, and the others go on meanwhile.
    """
    send(pids, signal.SIGSTOP)
    return await_true(lambda: all(map(stands, pids)), seconds, pause=0.001)


def stands(pid):
    """Returns whether no thread of a process runs: it is stopped, or has ended."""
    try:
        return all(status(task)[0] in "TZX" for task in os.scandir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return gone(pid)


def gone(pid):
    """Returns whether a process has ended, waited for or not."""
    try:
        return status(f"/proc/{pid}")[0] in "ZX"
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


def listens(pid, port):
    """Returns whether a process, or a descendant of it, listens on a port: that it is this server which answers there, not another."""
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
    # To ask all processes takes long.
    for member in family(pid) if inodes else ():
        try:
            if any(os.readlink(entry.path) in inodes for entry in os.scandir(f"/proc/{member}/fd")):
                return True
        except OSError:
            continue
    return False
