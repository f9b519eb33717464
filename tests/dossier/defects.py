"""A defect of table H, shown on the commit that had it: `make defect-NAME`. The commit that fixed it must pass the same command."""

import os
import re
import shutil
import subprocess
import sys
import time

from . import records, rerun, source


def run_at(commit, each):
    """Returns the exit status and the output of a defect's command in a worktree of a commit."""
    tree = records.ROOT / "build/dossier" / f"defect-{each['name']}"
    records.git("worktree", "remove", "--force", str(tree))
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", "--force", tree, commit], cwd=records.ROOT, check=True)
    try:
        for overlaid in each.get("overlay", []):
            other, _, path = overlaid.partition(":")
            subprocess.run(["git", "checkout", "--quiet", other, "--", path], cwd=tree, check=True)
        for added in each.get("add", []):
            own, _, path = added.partition(":")
            (tree / path).parent.mkdir(exist_ok=True)
            shutil.copy(records.ROOT / own, tree / path)
        environment = {**os.environ, "CARGO_TARGET_DIR": str(tree.parent / "target")}
        done = subprocess.run(["bash", "-c", each["command"]], cwd=tree, env=environment, check=False, capture_output=True, text=True)
    finally:
        records.git("worktree", "remove", "--force", str(tree))
    print(f"at {commit[:12]}, exit status {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}", flush=True)
    return done.returncode, done.stdout + done.stderr


def shown(each, output):
    """Returns the match of what shows the defect, or None."""
    found = re.search(each["shows"], output, re.MULTILINE)
    return found if found and not found[0].startswith("0 ") else None


def show(name):
    """Returns 0 if the old commit shows the defect and the fixed one does not, and records it. 3 if not, or if one cannot be built."""
    known = {each["name"]: each for each in source.load("history")["defects"] if "command" in each}
    if name not in known:
        print(f"no command shows a defect {name!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    each = known[name]
    if changed := rerun.dirty():
        print(f"commit first: {', '.join(changed[:5])}", file=sys.stderr)
        return rerun.FAILED
    # The commit with the fix itself may not compile.
    passes = each.get("passes", each["fixed"])
    old, fixed = (records.git("rev-parse", "--verify", f"{commit}^{{commit}}") for commit in (each["old"], passes))
    if None in (old, fixed):
        print(f"this repository does not have {each['old']} and {passes}: fetch its whole history", file=sys.stderr)
        return rerun.FAILED
    about, start, since = records.machine(), records.now(), time.monotonic()
    found = shown(each, run_at(old, each)[1])
    if not found:
        print(f"{each['old']} does not show it: {each['shows']} is not in the output", file=sys.stderr)
        return rerun.FAILED
    status, output = run_at(fixed, each)
    if status or shown(each, output):
        print(f"{passes} has the fix and does not pass the same command, which therefore shows nothing", file=sys.stderr)
        return rerun.FAILED
    commit = records.git("rev-parse", "HEAD")
    figures = {"IDs": int(found[1])} if found.re.groups else {}
    records.append({
        "row": f"H-{name}", "flag": "again" if records.read().get(f"H-{name}") else "first", "commit": commit,
        "product": records.product(commit), "start": start, "seconds": round(time.monotonic() - since), **about,
        "command": f"make defect-{name}", "figures": figures, "exit": 0, "note": f"shown at {old}, and not at {fixed}",
    })  # fmt: skip
    print(f"{old[:12]} shows it: {found[0].strip()}; {fixed[:12]} does not")
    return rerun.CLEAN
