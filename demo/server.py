"""Three replicas of frazil-server on PostgreSQL, and six clients, while everything around them breaks; then checks every ID."""

import contextlib
import pathlib
import shlex
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/server")]
import servers
from servers import process
from show import Show

TERMINAL = sys.stdout.isatty()
BOLD, DIM, PLAIN, CLEAR = ("\033[1m", "\033[2m", "\033[0m", "\r\033[K") if TERMINAL else ("", "", "", "")
REFRESH_S = 0.1


def ask(*command):
    """Shows a command and its output, and returns the output."""
    print(f"  {BOLD}$ {shlex.join(command)}{PLAIN}")
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    print("".join(f"  {line}\n" for line in output.splitlines()), flush=True)
    return output


def show_what_a_user_gets(ports):
    url = f"http://127.0.0.1:{ports['http']}/v1/orders"
    curl = ("curl", "--silent", "--show-error", "--fail", "--retry", "1")
    ask(*curl, "--request", "POST", f"{url}/next?n=3")
    number = ask(*curl, "--request", "POST", "--header", "Accept: text/plain", f"{url}/next")
    ask(*curl, f"{url}/decode/{number.strip()}")
    ask("redis-cli", "-p", str(ports["resp"]), "FRAZIL.NEXT", "orders", "COUNT", "2")
    ask("redis-cli", "-p", str(ports["resp"]), "INCR", "invoice")


class Story:
    """The report, line by line; on a terminal with a last line that counts."""

    def __init__(self):
        self.since = None
        self.show = None
        self.over = threading.Event()
        self.lock = threading.Lock()

    def line(self, text):
        return f"{time.monotonic() - self.since:6.1f} s  {self.show.total():>9,} IDs  {text}"

    def log(self, text):
        with self.lock:
            print(f"{CLEAR}{self.line(text)}", flush=True)

    def count(self):
        while TERMINAL and not self.over.wait(REFRESH_S):
            with self.lock:
                print(f"{CLEAR}{DIM}{self.line('...')}{PLAIN}", end="", flush=True)


def table(show):
    print(f"\n{BOLD}{'client':<20}{'IDs':>12}{'requests':>10}{'retries':>9}{PLAIN}")
    for client in show.clients:
        print(f"{client.title:<20}{client.count():>12,}{len(client.batches):>10,}{client.retries:>9,}")


def main():
    process.exit_on_signals()
    story = Story()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frazil-demo-")))
        store = stack.enter_context(servers.start("postgresql"))
        print(
            "PostgreSQL runs. Three replicas of frazil-server take node numbers and ranges from it, and a balancer distributes requests to them:\n"
        )
        story.show = show = stack.enter_context(Show(store, folder, say=story.log))
        show_what_a_user_gets(show.balancer.ports)
        print("Meanwhile six clients ask, in four protocols, and everything around them breaks:\n", flush=True)
        story.since = time.monotonic()
        counting = threading.Thread(target=story.count)
        counting.start()
        try:
            show.round()
            story.log("all replicas serve; the clients stop")
        finally:
            story.over.set()
            counting.join()
        show.end()
    table(show)
    rolling, found = show.rolling, show.duplicates()
    print(f"\nThe rolling restart: {rolling['requests']:,} requests, {rolling['retries']} sent twice, {rolling['failed']} failed.")
    duplicates = sum(twice for _, twice in found.values())
    print(f"{BOLD}{show.total():,} IDs from three replicas to six clients, {duplicates} duplicates{PLAIN}")
    sys.exit(duplicates != 0 or rolling["failed"] != 0)


main()
