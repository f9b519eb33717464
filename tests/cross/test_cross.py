"""All languages at once: no ID occurs twice, and each reads the texts that it has written."""

import os
import pathlib
import subprocess
import sys

import frazil
import numpy
import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
TOTAL = int(os.environ.get("FRAZIL_CROSS_IDS", "3000000"))
TEXTS = int(os.environ.get("FRAZIL_CHECK_IDS", "20000"))


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
    # No process begins before all are ready. No process mints its second half before all have minted their first half.
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
    result = subprocess.run(["node", "-e", script, ROOT / "node", layout, *map(str, minted)], check=True, capture_output=True, text=True)
    for id, line in zip(minted, result.stdout.splitlines(), strict=True):
        parts = ids.layout.decode(id)
        unix_ms = round(parts.time.timestamp() * 1000)
        text = frazil.format_id(id, "base62")
        assert line == f"{unix_ms} {parts.business} {parts.machine} {parts.sequence} {text}"


# A generator of pseudo-random IDs, as in core/tests/values/check.rs, where Rust does the same. Each program prints the last text.
FIRST, FACTOR, STEP = 1541815603606036480, 6364136223846793005, 1442695040888963407
NODE = f"""
const {{ formatId, parseId }} = require(process.argv[1])
let number = {FIRST}n, text
for (let i = 0; i < {TEXTS}; i++) {{
  number = BigInt.asUintN(64, number * {FACTOR}n + {STEP}n)
  const id = String(number >> 1n)
  text = formatId(id, 'check')
  if (parseId(text, 'check') !== id) throw new Error(`${{id}} ${{text}}`)
}}
console.log(text)
"""
C = f"""
#include <frazil.h>
#include <stdio.h>

int main(void) {{
    uint64_t number = {FIRST}u;
    char text[FRAZIL_ID_TEXT_SIZE];
    for (long i = 0; i < {TEXTS}; i++) {{
        number = number * {FACTOR}u + {STEP}u;
        int64_t id = (int64_t)(number >> 1), read = -1;
        if (frazil_id_format(id, FRAZIL_CHECK, text, sizeof text) != FRAZIL_OK) return 1;
        if (frazil_id_parse(text, FRAZIL_CHECK, &read) != FRAZIL_OK || read != id) return 2;
    }}
    puts(text);
    return 0;
}}
"""


def last_text():
    number = FIRST
    for _ in range(TEXTS):
        number = number * FACTOR + STEP & 2**64 - 1
    return frazil.format_id(number >> 1, "check")


def in_python(_):
    number = FIRST
    for _ in range(TEXTS):
        number = number * FACTOR + STEP & 2**64 - 1
        text = frazil.format_id(number >> 1, "check")
        assert frazil.parse_id(text, "check") == number >> 1, text
    return text


def in_node(_, package="node"):
    return printed(["node", "-e", NODE, ROOT / package])


def in_lite(folder):
    return in_node(folder, "node/lite/cjs/index.js")


def in_c(folder):
    lib = ROOT / "build/c/lib"
    (folder / "texts.c").write_text(C)
    flags = ["-std=c99", "-O2", "-Wall", "-Werror", f"-I{ROOT}/build/c/include", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    subprocess.run(["cc", *flags, folder / "texts.c", "-lfrazil", "-o", folder / "texts"], check=True)
    return printed([folder / "texts"])


def printed(command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600).stdout.strip()


@pytest.mark.parametrize("language", [in_python, in_node, in_lite, in_c], ids=lambda language: language.__name__)
def test_every_text_with_a_check_symbol_is_read_as_its_id(language, tmp_path):
    assert language(tmp_path) == last_text()
