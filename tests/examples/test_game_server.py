"""The game servers play, and their databases are merged: play.sh checks each step itself."""

import os
import re
import subprocess

from .application import ROOT


def test_two_servers_are_merged():
    environment = os.environ | {"PKG_CONFIG_PATH": f"{ROOT}/build/c/lib/pkgconfig", "FRAZIL": f"{ROOT}/target/debug/frazil"}
    played = subprocess.run([ROOT / "examples/game-server/play.sh", "2"], env=environment, capture_output=True, text=True, timeout=300)
    assert played.returncode == 0, played.stdout + played.stderr
    merged = re.findall(r"^merged: (\d+) items, \d+ mails, each with its item$", played.stdout, re.MULTILINE)
    assert len(merged) == 2 and all(int(items) > 10_000 for items in merged), played.stdout
    assert int(re.search(r"^(\d+) items of the second server have new IDs$", played.stdout, re.MULTILINE)[1]) > 0
