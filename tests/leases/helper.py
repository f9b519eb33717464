"""Other processes that use a store."""

import json
import os
import pathlib
import subprocess
import sys


def elsewhere(spec, *commands, **env):
    """Runs commands in another process, whose clock is `ahead` seconds ahead. Returns the JSON that it prints for each."""
    script = f"import frazil, json, time, sys\nids = None\nspec = {spec!r}\n" + "\n".join(commands)
    ahead = env.pop("ahead", None)
    if ahead is not None:
        library = next(pathlib.Path("/usr/lib").rglob("libfaketimeMT.so.1"), None)
        assert library, "libfaketime is missing: run scripts/setup.sh"
        env |= {"LD_PRELOAD": str(library), "FAKETIME": f"{ahead:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    child = subprocess.run([sys.executable, "-c", script], env=os.environ | env, capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr
    return [json.loads(line) for line in child.stdout.splitlines()]
