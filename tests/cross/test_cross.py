"""Python, Node and C processes mint at once under node numbers of their own: none of their IDs occurs twice."""

import os
import pathlib
import subprocess
import sys

import frazil
import numpy

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
TOTAL = int(os.environ.get("FRAZIL_CROSS_IDS", "3000000"))


def test_three_languages_mint_at_once(tmp_path):
    c = tmp_path / "mint"
    lib = ROOT / "build/c/lib"
    flags = ["-std=c99", "-O2", f"-I{ROOT}/build/c/include", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    subprocess.run(["cc", *flags, HERE / "mint.c", "-lfrazil", "-o", c], check=True)
    commands = {
        "python": [sys.executable, HERE / "mint.py"],
        "node": ["node", HERE / "mint.js"],
        "c": [c],
    }
    count = TOTAL // len(commands)
    running = {}
    for node, (language, command) in enumerate(commands.items(), start=1):
        spec, path = f"standard node={node}", tmp_path / f"{language}.ids"
        running[language] = subprocess.Popen([*command, spec, str(count), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Nobody begins before all are ready, and nobody mints a second half before all have minted a first one.
    for place in ("ready", "half"):
        assert {language: process.stdout.readline() for language, process in running.items()} == dict.fromkeys(commands, f"{place}\n")
        for process in running.values():
            print("go", file=process.stdin, flush=True)
    for process in running.values():
        process.stdin.close()
        process.stdout.close()
    assert {language: process.wait(600) for language, process in running.items()} == dict.fromkeys(commands, 0)

    layout = frazil.Layout("standard")
    spans, minted = [], []
    for node, language in enumerate(commands, start=1):
        ids = numpy.fromfile(tmp_path / f"{language}.ids", dtype=numpy.int64)
        assert len(ids) == count
        assert (numpy.diff(ids) > 0).all(), f"{language}: IDs increase"
        assert ((ids >> 12 & 1023) == node).all(), f"{language}: every ID has the node number"
        spans.append((layout.decode(int(ids[0])).time, layout.decode(int(ids[-1])).time))
        minted.append(ids)
    everything = numpy.concatenate(minted)
    assert len(numpy.unique(everything)) == len(everything) == count * len(commands)
    assert max(begin for begin, _ in spans) < min(end for _, end in spans), f"they minted at the same time: {spans}"


def test_one_language_reads_what_another_wrote(tmp_path):
    """Python and Node agree on layouts, IDs, parts and texts."""
    layout = "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01"
    ids = frazil.Snowflake(layout=layout, business=3, machine=5, detached=True)
    minted = ids.batch(100)
    script = """
        const { Layout, formatId } = require(process.argv[1])
        const layout = new Layout(process.argv[2])
        for (const id of process.argv.slice(3)) {
          const p = layout.decode(id)
          console.log([p.time.getTime(), p.business, p.machine, p.sequence, formatId(id, 'base62')].join(' '))
        }
    """
    told = subprocess.run(["node", "-e", script, ROOT / "node", layout, *map(str, minted)], check=True, capture_output=True, text=True)
    for id, line in zip(minted, told.stdout.splitlines(), strict=True):
        parts = ids.layout.decode(id)
        unix_ms = round(parts.time.timestamp() * 1000)
        text = frazil.format_id(id, "base62")
        assert line == f"{unix_ms} {parts.business} {parts.machine} {parts.sequence} {text}"
