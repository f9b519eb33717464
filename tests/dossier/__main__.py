"""The commands of the dossier.

python3 tests/dossier page            # writes docs/assurance.md (make dossier)
python3 tests/dossier evidence C1     # runs a row of table C again, and records it (make evidence ROW=C1)
python3 tests/dossier evidence C6 --log FILE --commit HASH --start TIME   # takes it from the log of `make test`
python3 tests/dossier try-to-break    # attacks frazil with real processes for at most 10 minutes (make try-to-break)
python3 tests/dossier defect fixed    # shows a defect of table H on its old commit (make defect-fixed)
python3 tests/dossier replay FILE     # repeats the failing seed of the simulation whose output is in FILE
python3 tests/dossier status          # the product's files that have changed since each record

Exit statuses: 0 clean, 1 the claim is broken, 3 the harness failed, 2 a wrong command line.
"""

import argparse
import dataclasses
import re
import subprocess
import sys
import traceback
from pathlib import Path

if not __package__:
    # Python puts the folder itself on the path, but the package is in its parent.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from dossier import page, records, rerun, source

USAGE = 2
REPLAY = re.compile(r"^replay: ((?:FRAZIL_\w+=\d+ ?)+)$", re.MULTILINE)


def evidence(given):
    rows, name = source.rows(), given.row
    if name not in rows:
        print(f"ROW={name} is unknown: use one of {', '.join(rows)}", file=sys.stderr)
        return USAGE
    if given.log:
        return rerun.from_log(rows[name], given.log, given.commit, given.start, given.note)
    return rerun.rerun(rows[name], given.note)


def status():
    for row, runs in records.read().items():
        commit = runs[-1]["commit"]
        changed = records.git("diff", "--name-only", commit, "HEAD", "--", *records.PRODUCT)
        what = f"{len(changed.split())} files of the product changed since" if changed is not None else "not in this repository"
        print(f"{row:12} {runs[-1]['start']} {commit[:12]} {what}")
    return rerun.CLEAN


def replay(file):
    """Repeats a seed, with its log."""
    found = REPLAY.search(Path(file).read_text())
    if not found:
        print(f"{file} has no line that begins with `replay:`", file=sys.stderr)
        return rerun.FAILED
    row = source.rows()["C1"]
    simulation, changed = re.subn(r"FRAZIL_SEEDS=\d+", found[1], row.command)
    if not changed:
        raise records.Fault("C1: its command has no FRAZIL_SEEDS that a seed could replace")
    one = dataclasses.replace(row, amount={"stamps": r"^seed \d+: (\d+) stamps"}, faults={}, lists={})
    return rerun.judge(one, *rerun.stream(simulation))[0]


def main():
    parser = argparse.ArgumentParser(
        prog="python3 tests/dossier", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page")
    one = commands.add_parser("evidence")
    one.add_argument("row")
    for option in ("--note", "--commit", "--start"):
        one.add_argument(option, default="")
    one.add_argument("--log", type=Path)
    attack = commands.add_parser("try-to-break")
    attack.add_argument("--seconds", type=float, default=240)
    attack.add_argument("--only", default="")
    commands.add_parser("defect").add_argument("name")
    commands.add_parser("replay").add_argument("file")
    commands.add_parser("status")
    given = parser.parse_args()
    try:
        match given.command:
            case "page":
                page.PAGE.write_text(page.make())
                return rerun.CLEAN
            case "evidence":
                return evidence(given)
            case "try-to-break":
                from dossier import attacks

                return attacks.main(given.seconds, given.only)
            case "defect":
                from dossier import defects

                return defects.show(given.name)
            case "replay":
                return replay(given.file)
            case _:
                return status()
    except (records.Fault, OSError, subprocess.SubprocessError) as error:
        print(f"the harness failed: {error}", file=sys.stderr)
        return rerun.FAILED
    except Exception:  # noqa: BLE001
        # Python would end with 1, which is a broken claim.
        traceback.print_exc()
        return rerun.FAILED


if __name__ == "__main__":
    sys.exit(main())
