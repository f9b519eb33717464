"""Processes that always end with the tests, and the kernel's information about them."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

# Below the kernel's range for outgoing connections, so that a port stays free while its server restarts.
PORTS = range(18000, 32000)


def reserve_port():
    """Returns a socket that reserves a loopback port. No other reservation gets this port until the socket is closed.

    Servers can listen on the port, also after a restart, because they bind with SO_REUSEADDR. The socket itself sets that only after its
    bind, so that the bind fails if the port has another reservation or an old connection.
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
    return reserved.getsockname()[1]


def connect(port):
    """Returns a new connection to one of the tests' servers."""
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def bound_to_us(command, account=None):
    """Wraps a command so that the kernel kills it when the thread that started it ends. As root, it may run under another account.

    setpriv sets the signal after the change of the account, which clears it.
    """
    switch = [f"--reuid={account}", f"--regid={account}", "--init-groups"] if account and os.geteuid() == 0 else []
    return ["setpriv", *switch, "--pdeathsig=KILL", "--", *map(str, command)]


def spawn(command, log, account=None, **options):
    """Starts a command in a new session, so that Ctrl-C reaches only this process, which then stops the command."""
    exit_on_signals()
    with open(log, "ab") as out:
        return subprocess.Popen(
            bound_to_us(command, account), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **options
        )


def exit_on_signals():
    """Runs `with` and `finally` blocks when a signal ends this process, even if a shell has started it in the background.

    Such a shell makes a process ignore SIGINT. A process that ignores SIGHUP, as under nohup, still ignores it.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def family(pid):
    """Returns a process and all its descendants."""
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
    """Returns the parent of a process, or 0 if the process is gone."""
    try:
        return int(status(f"/proc/{pid}")[1])
    except (OSError, IndexError):
        return 0


def status(folder):
    """Returns the kernel's fields of a process or a thread after its name: the state, the parent, and more."""
    # The name in parentheses may contain any character.
    return pathlib.Path(folder, "stat").read_text().rpartition(")")[2].split()


def send(pids, number):
    """Sends a signal to the processes that still run."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def freeze(pids, seconds):
    """Stops processes, and waits until none of their threads runs. Returns whether that succeeded.

    SIGSTOP alone is not enough: on a busy machine, the thread that handles it waits for a processor while the others still run.
    """
    send(pids, signal.SIGSTOP)
    return await_true(lambda: all(map(is_stopped, pids)), seconds, pause=0.001)


def is_stopped(pid):
    """Returns whether no thread of a process runs, because it is stopped or has ended."""
    try:
        return all(status(task)[0] in "TZX" for task in os.scandir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return gone(pid)


def gone(pid):
    """Returns whether a process has ended, even if its parent has not waited for it."""
    try:
        return status(f"/proc/{pid}")[0] in "ZX"
    except (OSError, IndexError):
        return True


def await_true(holds, seconds, pause=0.02):
    """Waits until a condition holds. Returns whether it does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def listens(pid, port):
    """Returns whether a process or one of its descendants listens on a port, so that no other server answers there."""
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
    # Only these processes, because a search of all processes takes long.
    for member in family(pid) if inodes else ():
        try:
            if any(os.readlink(entry.path) in inodes for entry in os.scandir(f"/proc/{member}/fd")):
                return True
        except OSError:
            continue
    return False
