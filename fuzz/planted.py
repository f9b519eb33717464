#!/usr/bin/env python3
"""Shows that each target can fail: plants a bug for each into a copy of the sources, and runs the targets: fuzz/planted.py [TARGET]...

An input counts only if it passes without the bugs.

Exit statuses: 0 if each target finds its bug, 1 if one misses it, 3 if the harness failed.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/mutants"))
import run

FORMS = "core/src/id"
# The file, a piece of code that occurs once in it, and the bug in its place.
BUGS = {
    "audit": ("cli/src/audit/table.rs", "if text.is_empty() {", "if text.is_empty() || text[0] == b'1' {"),
    "audit_rows": ("cli/src/audit/dump.rs", "value.get().as_bytes())", "value.get().trim_end_matches('0').as_bytes())"),
    "file_record": ("core/store/src/file/record.rs", "|sequence| sequence > newest", "|sequence| sequence > 1 + newest"),
    "foreign": (f"{FORMS}/foreign.rs", "text.trim_matches([',', ", "text.trim_matches(['0', ',', "),
    "inspect": ("cli/src/inspect/print.rs", 'json!({ "text": self.text,', 'json!({ "text": self.text[..self.text.len().min(20)],'),
    "interop": ("core/src/interop/uuid.rs", "i64::from(nanoseconds / 1_000_000)", "i64::from(nanoseconds / 1_000_001)"),
    "layout": (f"{FORMS}/layout/parse.rs", "|field| field.shift > sequence.shift", "|field| field.shift < sequence.shift"),
    "resp_parse": ("server/src/resp/parse.rs", "self.words.push(start..end);", "self.words.push(start..end.min(start + 7));"),
    "server_http": ("server/src/http/answer.rs", "if self.rest.is_empty() {", "if self.rest.len() < 10_000 {"),
    "server_resp": ("server/src/resp/reply.rs", "self.bytes.extend_from_slice(text);", "self.bytes.extend(text.iter().take(9));"),
    "spec": ("core/src/spec/line.rs", "matches!(c, '\\'' | '\"' | '\\\\')", "matches!(c, '\"' | '\\\\')"),
    "texts": (f"{FORMS}/text.rs", "times_x(sum & 0x1F ^ sum >> 5 ^ sum >> 5 << 2)", "(sum & 0x1F ^ sum >> 5 ^ sum >> 5 << 2)"),
}
MINUTES = "2"


def planted(text, name):
    """Returns a file's text with a target's bug in it."""
    file, old, new = BUGS[name]
    if text.count(old) != 1:
        sys.exit(f"{file} does not have {old!r} once: fix the list in fuzz/planted.py")
    return text.replace(old, new)


def passes_without(copy, name):
    """Returns whether the input that a target has found in the copy passes in the sources without the bugs."""
    [written] = re.findall(r"Test unit written to (\S+)", (copy / f"fuzz/target/{name}.log").read_text())
    [program] = (ROOT / "fuzz/target").glob(f"*/release/{name}")
    own = {
        "FRAZIL_GUARD_SCOPE": str(ROOT / "fuzz/target"),
        "FRAZIL_HOME": str(ROOT / "fuzz/target/home"),
        "ASAN_OPTIONS": "detect_odr_violation=0",
    }
    done = subprocess.run([program, copy / "fuzz" / written], env=os.environ | own, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: its input fails without the bug, too:\n{done.stderr[-1500:]}")
    return done.returncode == 0


def main(names):
    # Builds the targets without bugs. They run their seeds.
    plain = os.environ | {"FUZZ_RUNS": "1"}
    plain.pop("CARGO_TARGET_DIR", None)
    if subprocess.run([ROOT / "fuzz/run.sh", MINUTES, *(names or BUGS)], env=plain, check=False, stdout=subprocess.DEVNULL).returncode:
        sys.exit("a target fails without a bug: fuzz/run.sh shows it")
    copy, missed = run.copied("fuzz", []), 0
    shutil.copytree(ROOT / "fuzz", copy / "fuzz", ignore=shutil.ignore_patterns("target", "artifacts"))
    for name in BUGS:
        path = copy / BUGS[name][0]
        path.write_text(planted(path.read_text(), name))
    environment = os.environ | {"CARGO_TARGET_DIR": str(run.TARGET / "fuzzed")}
    for name in names or BUGS:
        since = time.monotonic()
        done = subprocess.run([copy / "fuzz/run.sh", MINUTES, name], env=environment, check=False, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode not in (0, 1):
            sys.exit(f"{name}: the harness failed:\n{said[-3000:]}")
        found = done.returncode == 1 and passes_without(copy, name)
        missed += not found
        print(
            f"{'found ' if found else 'MISSED'} {name} in {time.monotonic() - since:.0f} s: {said.splitlines()[0]}",
            flush=True,
        )
    total = len(names or BUGS)
    print(f"{total - missed} of {total} targets find a planted bug")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(run.harness(lambda: main(sys.argv[1:])))
