"""A defect of table H, shown on the commit that had it: `make defect-NAME`."""

import os
import re
import shutil
import subprocess
import sys
import time

from . import records, rerun, source


def show(name):
    """Returns 0 if the old commit shows the defect, and records it. 3 if it does not, or cannot be built."""
    known = {each["name"]: each for each in source.load("history")["defects"] if "command" in each}
    if name not in known:
        print(f"no command shows a defect {name!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    each = known[name]
    if changed := rerun.dirty():
        print(f"commit first: {', '.join(changed[:5])}", file=sys.stderr)
        return rerun.FAILED
    old = records.git("rev-parse", "--verify", f"{each['old']}^{{commit}}")
    if old is None:
        print(f"this repository does not have {each['old']}: fetch its whole history", file=sys.stderr)
        return rerun.FAILED
    tree = records.ROOT / "build/dossier" / f"defect-{name}"
    records.git("worktree", "remove", "--force", str(tree))
    shutil.rmtree(tree, ignore_errors=True)
    about, start, since = records.machine(), records.now(), time.monotonic()
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", "--force", tree, old], cwd=records.ROOT, check=True)
    try:
        for overlaid in each.get("overlay", []):
            commit, _, path = overlaid.partition(":")
            subprocess.run(["git", "checkout", "--quiet", commit, "--", path], cwd=tree, check=True)
        for added in each.get("add", []):
            own, _, path = added.partition(":")
            (tree / path).parent.mkdir(exist_ok=True)
            shutil.copy(records.ROOT / own, tree / path)
        environment = {**os.environ, "CARGO_TARGET_DIR": str(tree.parent / "target")}
        done = subprocess.run(["bash", "-c", each["command"]], cwd=tree, env=environment, check=False, capture_output=True, text=True)
    finally:
        records.git("worktree", "remove", "--force", str(tree))
    output = done.stdout + done.stderr
    print(output[-3000:])
    found = re.search(each["shows"], output, re.MULTILINE)
    if not found or found[0].startswith("0 "):
        print(f"{each['old']} does not show it: {each['shows']} is not in the output", file=sys.stderr)
        return rerun.FAILED
    commit = records.git("rev-parse", "HEAD")
    figures = {"IDs": int(found[1])} if found.re.groups else {}
    records.append({
        "row": f"H-{name}", "flag": "again" if records.read().get(f"H-{name}") else "first", "commit": commit,
        "product": records.product(commit), "start": start, "seconds": round(time.monotonic() - since), **about,
        "command": f"make defect-{name}", "figures": figures, "exit": 0, "note": f"shown at {old}",
    })  # fmt: skip
    print(f"{old[:12]} shows it: {found[0].strip()}")
    return rerun.CLEAN
