"""Runs the trials of ID libraries, and replaces their records in trial/results.jsonl.

trial/run.py                         # every trial of every library
trial/run.py [TRIAL|LANGUAGE/LIBRARY]...  # some of them, for example: trial/run.py back node/sapphire

The trials are the functions below with a sentence as documentation. Each starts the library's program, which writes its IDs into files.
"""

import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

import numpy

TRIAL = Path(__file__).resolve().parent
ROOT = TRIAL.parent
sys.path.insert(0, str(ROOT / "tests"))
import clock

LIBRARIES = {
    f"{language}/{name}": row
    for language, rows in tomllib.loads((TRIAL / "libraries.toml").read_text()).items()
    for name, row in rows.items()
}
RESULTS = TRIAL / "results.jsonl"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TRIAL / "target"))
PACED = 0.001
"""Pause after each ten IDs, in seconds: the program then mints through several seconds, with a few IDs in each millisecond."""
STEP_S = 2
"""Seconds by which the clock is set back."""
JUMP_S = 30
"""Seconds by which the positive control sets it ahead."""
NO_LIMIT = 10**9
LIMIT_S = 60
"""Time after which a process is killed, so that its IDs so far are counted: its trial ends within 40 s."""
PARSE = "const {json, exact} = JSON.parse(require('fs').readFileSync(0)); const value = id => id?.type === 'Buffer' ? Buffer.from(id.data).readBigUInt64BE() : id;"
PARSE += "console.log(JSON.parse(json).filter((id, n) => String(value(id)) !== exact[n]).length)"


class Trial:
    """One trial of one library: its processes, their files, and what they printed."""

    def __init__(self, key, folder):
        self.language, self.name = key.split("/")
        self.folder = folder
        self.files, self.printed = [], []
        self.cut = False
        self.clock = folder / "clock"
        # frazil's folder store, and the files by which it notices a number that is in use.
        self.environment = os.environ | {"FRAZIL_HOME": str(folder / "home"), "FRAZIL_GUARD_SCOPE": str(folder / "guard")}

    def keep_time(self):
        """Makes the processes that start after this follow the trial's clock."""
        self.environment |= clock.under(self.clock)

    def turn(self, seconds):
        clock.turn(seconds, self.clock)

    def start(self, way="run", count=NO_LIMIT, seconds=2.0, pause=0.0):
        file = self.folder / f"ids{len(self.files)}"
        self.files.append(file)
        command = {
            "python": [sys.executable, "programs/libraries.py"],
            "node": ["node", "programs/libraries.mjs"],
            "rust": [TARGET / "debug/libraries"],
        }[self.language]
        arguments = [self.name, way, "1", str(count), str(seconds), str(pause), str(file)]
        return subprocess.Popen(
            [*command, *arguments],
            env=self.environment,
            cwd=TRIAL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def started(self, process):
        """Waits until the process has written IDs, or has ended."""
        while process.poll() is None and not (self.files[-1].exists() and self.files[-1].stat().st_size):
            time.sleep(0.001)

    def ended(self, process, killed=False):
        try:
            printed, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            # The process and its forked children.
            os.killpg(process.pid, signal.SIGKILL)
            printed, errors = process.communicate()
            self.cut = killed = True
        if process.returncode and not killed:
            raise RuntimeError(f"{self.name} failed: {errors}")
        # Forked processes may write at once, so a line may have several objects.
        self.printed += [json.loads(line) for line in printed.replace("}{", "}\n{").splitlines() if line]

    def ids(self):
        paths = [path for file in self.files for path in (file, *(file.with_name(f"{file.name}.{n}") for n in (1, 2))) if path.exists()]
        return [numpy.fromfile(path, dtype="<u8") for path in paths]


def burst(trial):
    """One process mints at full rate, up to 10^8 IDs in Rust, 10^7 in Python and Node, for at most 40 s."""
    trial.ended(trial.start(count=10**8 if trial.language == "rust" else 10**7, seconds=40))


def two(trial):
    """One process has two generators with one number, and mints 200,000 IDs from them in turn."""
    trial.ended(trial.start("two", count=200_000, seconds=20))


def fork(trial):
    """A process that has minted forks twice, and all three mint for 2 s."""
    if trial.language != "node":
        trial.ended(trial.start("fork", pause=PACED))


def prefork(trial):
    """Four processes with one number mint for 2 s."""
    for process in [trial.start(pause=PACED) for _ in range(4)]:
        trial.ended(process)


def back(trial):
    """The clock is set back by 2 s while a process mints, which mints for 4 s more."""
    trial.keep_time()
    process = trial.start(seconds=5, pause=PACED)
    trial.started(process)
    time.sleep(1)
    trial.turn(-STEP_S)
    trial.ended(process)


def restart(trial):
    """A process ends, the clock is set back by 2 s, and the next process with its number mints for 4 s."""
    trial.keep_time()
    trial.ended(trial.start(seconds=1, pause=PACED))
    trial.turn(-STEP_S)
    trial.ended(trial.start(seconds=4, pause=PACED))


def kill(trial):
    """A process that mints at full rate is killed, and the next one with its number mints at full rate for 1 s."""
    process = trial.start(seconds=10)
    trial.started(process)
    time.sleep(1)
    process.kill()
    trial.ended(process, killed=True)
    trial.ended(trial.start(seconds=1))


def pause(trial):
    """A process is stopped for 2 s while it mints, and then continues."""
    process = trial.start(seconds=4, pause=PACED)
    trial.started(process)
    time.sleep(1)
    process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    process.send_signal(signal.SIGCONT)
    trial.ended(process)


def as_json(trial):
    """A thousand IDs are written as JSON, and read by JavaScript's `JSON.parse`."""
    trial.ended(trial.start("json", count=1000))


def control(trial):
    """A positive control: the clock is set ahead by 30 s while a process mints, and by 30 s more before another process starts."""
    trial.keep_time()
    process = trial.start(seconds=2, pause=PACED)
    trial.started(process)
    begun = time.monotonic()
    time.sleep(1)
    trial.before = trial.files[0].stat().st_size // 8, time.monotonic() - begun
    trial.turn(JUMP_S)
    trial.ended(process)
    trial.turn(2 * JUMP_S)
    trial.ended(trial.start(seconds=0.5, pause=PACED))


TRIALS = {
    "burst": burst,
    "two": two,
    "fork": fork,
    "prefork": prefork,
    "back": back,
    "restart": restart,
    "kill": kill,
    "pause": pause,
    "json": as_json,
    "control": control,
}


def followed(trial):
    """Returns whether a running process, and then a starting one, followed the clock that was set ahead, or refused to.

    An ID grows by the same amount in each second, whatever its layout is.
    """
    first, *more = ([int(id) for id in ids] for ids in trial.ids())
    count, seconds = trial.before
    per_jump = (first[count - 1] - first[0]) / seconds * JUMP_S
    jumps = [(ids[-1] - first[0]) / per_jump for ids in (first, *more) if ids]
    refused = [bool(printed["errors"]) for printed in trial.printed]
    return {"running": refused[0] or 0.5 < jumps[0] < 1.5, "starting": refused[1] or 1.5 < jumps[-1] < 3}


def judged(name, trial):
    """Returns the figures of a trial's record."""
    if name == "json":
        [printed] = trial.printed
        if "errors" in printed:
            return {"ids": 0, "errors": printed["errors"]}
        parsed = subprocess.run(["node", "-e", PARSE], input=json.dumps(printed), capture_output=True, text=True, check=True)
        return {"ids": len(printed["exact"]), "changed": int(parsed.stdout)}
    ids = trial.ids()
    errors = Counter()
    for printed in trial.printed:
        errors.update(printed["errors"])
    figures = {
        "ids": sum(map(len, ids)),
        "errors": dict(errors),
        "longest": max((printed["longest"] for printed in trial.printed), default=0),
    }
    if trial.cut:
        figures["cut"] = True
    if name == "control":
        return figures | followed(trial)
    if name in ("burst", "back", "pause"):
        figures["descents"] = int(sum((each[1:] < each[:-1]).sum() for each in ids))
    # Sorted in place, because a burst has up to 10^8.
    every = numpy.concatenate(ids) if len(ids) > 1 else ids[0]
    every.sort()
    figures["duplicates"] = int((every[1:] == every[:-1]).sum())
    return figures


def processor():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores"


def version(key):
    """Returns the pinned version of a library, or frazil's own."""
    language, library = key.split("/")[0], LIBRARIES[key]["library"]
    if library == "frazil":
        return re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    file, pattern = {
        "python": ("requirements.txt", rf"^{library}==(.*)$"),
        "node": ("package.json", rf'"{library}": "(.*)"'),
        "rust": ("Cargo.toml", rf'^{library} = .*"=([\d.]+)"'),
    }[language]
    return re.search(pattern, (TRIAL / file).read_text(), re.MULTILINE)[1]


def runtime(language):
    command = {"python": ["python3", "--version"], "node": ["node", "--version"], "rust": ["rustc", "--version"]}[language]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {"python": f"Python {printed[-1]}", "node": f"Node {printed[0]}", "rust": f"rustc {printed[1] if len(printed) > 1 else ''}"}[
        language
    ]


def save(record):
    """Replaces one record. Reads the others again, because another run may have changed them."""
    records = (
        {(each["library"], each["trial"]): each for each in map(json.loads, RESULTS.read_text().splitlines())} if RESULTS.exists() else {}
    )
    records[record["library"], record["trial"]] = record
    order = sorted(records, key=lambda each: ([*LIBRARIES].index(each[0]), [*TRIALS].index(each[1])))
    RESULTS.write_text("".join(json.dumps(records[each]) + "\n" for each in order))


def main(arguments):
    unknown = [each for each in arguments if each not in TRIALS and each not in LIBRARIES]
    if unknown:
        sys.exit(f"{unknown[0]} is neither a trial ({', '.join(TRIALS)}) nor a library ({', '.join(LIBRARIES)})")
    for key in [each for each in arguments if each in LIBRARIES] or LIBRARIES:
        for name in [each for each in arguments if each in TRIALS] or TRIALS:
            with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
                trial = Trial(key, Path(folder))
                date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                TRIALS[name](trial)
                figures = judged(name, trial) if trial.files else {"not_applicable": True}
            record = {"library": key, "version": version(key), "trial": name, **figures, "command": f"trial/run.sh {name} {key}"}
            record |= {
                "date": date,
                "processor": processor(),
                "kernel": f"{platform.system()} {platform.release()}",
                "runtime": runtime(key.split("/")[0]),
            }
            print(key, name, figures, flush=True)
            save(record)


if __name__ == "__main__":
    main(sys.argv[1:])
