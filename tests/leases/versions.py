"""Programs of two versions share a namespace on each store: rolling upgrade, downgrade, and a change of the layout.

    .venv/bin/python tests/leases/versions.py [COMMIT] [STORE...]

COMMIT is the older version (a31f65b1); its command line is built once, in `build/versions`, as is that of this checkout. Ten processes mint
with one of them, are replaced one after the other by ten of the other one, and back. No ID may repeat, and no process may lose its lease.
Then the newer one changes the layout. From then on the older one issues nothing, and says why.
"""

import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[0] = str(ROOT / "tests")

import servers
from servers import process

BUILD = ROOT / "build" / "versions"
COMMIT = "a31f65b1"
PROCESSES = 10
# A generator mints at most 1,024 IDs in a second.
LAYOUT = "time:31@1s node:10 sequence:10 epoch:2025-01-01"
NEXT = "time:31@1s node:8 sequence:12 epoch:2025-01-01"
LEASE = "window=4s renew=1s exhausted=wait rollback=wait"
# The first IDs of a second are minted at once, so a process lives for a few of them.
LIFE_S = 3


def built(commit):
    """Builds the command line of a commit, or of this checkout for `None`, and returns its path."""
    source = ROOT
    if commit:
        source = BUILD / commit
        if not source.exists():
            subprocess.run(["git", "worktree", "add", "--detach", source, commit], cwd=ROOT, check=True)
    target = BUILD / f"target-{commit or 'now'}"
    command = ["cargo", "build", "--locked", "--quiet", "-p", "frazil-cli", "--target-dir", target]
    subprocess.run(command, cwd=source, check=True)
    return target / "debug" / "frazil"


class Minting:
    """A process that mints until it is ended."""

    def __init__(self, program, url, folder, layout=LAYOUT):
        self.out, self.err = (folder / f"{time.monotonic_ns()}.{end}" for end in ("ids", "log"))
        spec = [f'layout="{layout}"', *LEASE.split(), f"store={url}", "namespace=versions"]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.child = subprocess.Popen([program, "next", *spec, "-n", "100000000"], stdout=out, stderr=err)

    def end(self, kill=False):
        """Ends the process, unless it has ended, and returns its IDs and its messages."""
        if self.child.poll() is None:
            self.child.kill() if kill else self.child.terminate()
        self.child.wait(30)
        # The last line may be cut.
        return [int(line) for line in self.out.read_bytes().split(b"\n")[:-1]], self.err.read_text()


def roll(fleet, program, url, folder, ids):
    """Replaces the processes one after the other."""
    for at in range(len(fleet)):
        more, said = fleet[at].end(kill=random.random() < 0.3)
        assert more, f"a process minted nothing: {said}"
        # The end by SIGTERM is an error, too.
        assert not re.search(r"LEASE_LOST|lease.lost|twice|error\[(?!INTERRUPTED)", said), said
        ids.append(more)
        fleet[at] = Minting(program, url, folder)
        time.sleep(LIFE_S / len(fleet))
    time.sleep(LIFE_S)


def check(kind, url, old, new, folder):
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "redis":
        begin = [old, "nodes", url, "--namespace", "versions", "--begin", f'layout="{LAYOUT}" {LEASE}']
        subprocess.run(begin, check=True, stdout=subprocess.DEVNULL)
    ids = []
    fleet = [Minting(old, url, folder) for _ in range(PROCESSES)]
    time.sleep(LIFE_S)
    for program in (new, old, new):
        roll(fleet, program, url, folder, ids)
    # One of the older version mints while the layout changes.
    late = Minting(old, url, folder)
    time.sleep(LIFE_S)
    change = [new, "nodes", url, "--namespace", "versions", "--change-layout", NEXT]
    said = subprocess.run(change, check=True, capture_output=True, text=True).stdout
    [at] = re.findall(r"end at (\S+?),", said)
    time.sleep(LEASE_S := 6)
    more, why = late.end()
    assert late.child.returncode == 1 and "format 2" in why and "newer frazil" in why, (late.child.returncode, why)
    ids.append(more)
    highest = 0
    for one in fleet:
        more, _ = one.end()
        ids.append(more)
    highest = max(value for some in ids for value in some)
    following = [Minting(new, url, folder, NEXT) for _ in range(PROCESSES)]
    time.sleep(12)
    after = [one.end()[0] for one in following]
    every = [value for some in [*ids, *after] for value in some]
    assert min(map(len, after)) > 0 and min(min(some) for some in after) > highest, (highest, at, LEASE_S)
    repeated = len(every) - len(set(every))
    print(f"{kind:12} {len(every):,} IDs, {repeated} repeated; the older version: {why.strip().splitlines()[-1][:150]}", flush=True)
    assert repeated == 0


def main(arguments):
    process.exit_on_signals()
    commit = next((word for word in arguments if re.fullmatch("[0-9a-f]{7,40}", word)), COMMIT)
    kinds = [word for word in arguments if word != commit] or ["file", *servers.ALL]
    old, new = built(commit), built(None)
    for kind in kinds:
        folder = BUILD / "ids" / f"{kind}-{time.time_ns()}"
        if kind == "file":
            check(kind, f"file:{folder / 'store'}", old, new, folder)
            continue
        with servers.start(kind) as server:
            check(kind, server.url, old, new, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
