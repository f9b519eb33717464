"""The game servers play, are killed and resumed, and their databases are merged; play.sh checks each step. The guide's commands run, too.

FRAZIL_RESUMED_IDS, a number of IDs, makes the test of the guide's loop longer.
"""

import os
import random
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from .application import ROOT

COMMAND = ROOT / "target/debug"
LIB = ROOT / "build/c/lib"
FLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/build/c/include", f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-lfrazil"]
RESUMED_IDS = int(os.environ.get("FRAZIL_RESUMED_IDS", "300000"))
IN_USE = "is in use on this machine by process"


@pytest.fixture(autouse=True)
def scope(tmp_path, monkeypatch):
    """Gives each test its own scope: its processes see each other's numbers, and no others."""
    monkeypatch.setenv("FRAZIL_GUARD_SCOPE", str(tmp_path))


def build(source, folder, *more):
    program = folder / source.stem
    subprocess.run(["c++", source, *FLAGS, *more, "-o", program], check=True)
    return program


def until(true, running):
    """Waits until the program has made a condition true."""
    end = time.monotonic() + 60
    while not true():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < end
        time.sleep(0.001)


def kill(running):
    running.send_signal(signal.SIGKILL)
    running.wait()


def play_and_kill(program, spec, folder, most):
    """Plays the world in a folder, and kills the program at random times until it has `most` IDs. Returns the number of kills."""
    table, kills, choose = folder / "ids", 0, random.Random(11)
    folder.mkdir()
    while not table.exists() or table.stat().st_size < 8 * most:
        begun = table.stat().st_size if table.exists() else 0
        running = subprocess.Popen([program, spec, folder], stderr=subprocess.PIPE, text=True)
        goal = begun + 8 * choose.randrange(1, most // 20)
        until(lambda goal=goal: table.exists() and table.stat().st_size > goal, running)
        if kills == 0:
            second = subprocess.run([program, spec, folder], check=False, capture_output=True, text=True, timeout=60)
            assert second.returncode == 1 and IN_USE in second.stderr, second
        kill(running)
        kills += 1
    counted = subprocess.run([program, "--repeated", folder], check=True, capture_output=True, text=True, timeout=600).stdout
    saved, repeated = map(int, counted.split())
    return saved, repeated, kills


@pytest.mark.parametrize("spec", ["game server=4713", "game16 server=4713", "standard node=13"])
def test_a_game_loop_that_is_killed_and_resumed_repeats_no_id(spec, tmp_path):
    program = build(ROOT / "tests/c/resume.cpp", tmp_path)
    saved, repeated, kills = play_and_kill(program, f"{spec} clock=manual", tmp_path / "world", RESUMED_IDS)
    print(f"{spec}: {saved} IDs, {repeated} repeated, {kills} kills")
    assert repeated == 0 and saved >= RESUMED_IDS and kills > 5
    # The control: a loop that relies only on the saved time repeats IDs.
    _, repeated, _ = play_and_kill(program, f"{spec} clock=manual CONTROL", tmp_path / "control", 300_000)
    assert repeated > 0


def test_the_example_is_killed_and_resumed_and_its_number_is_guarded(tmp_path):
    environment = os.environ | {"PKG_CONFIG_PATH": f"{LIB}/pkgconfig"}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "sqlite3"], check=True, capture_output=True, text=True, env=environment)
    program = build(ROOT / "examples/game-server/server.cpp", tmp_path, *flags.stdout.split())
    world = tmp_path / "world.db"

    def saved():
        # The program may be creating the tables.
        with sqlite3.connect(f"file:{world}?mode=ro", uri=True) as database:
            try:
                [row] = database.execute("SELECT count(*), max(id), (SELECT max(tick) FROM world) FROM items")
            except sqlite3.OperationalError:
                row = (0, 0, 0)
        database.close()
        return row

    play, highest, count = [program, world, "7", "3000"], 0, 0
    for run in range(6):
        running = subprocess.Popen(play, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda count=count: world.exists() and saved()[0] > count + 200, running)
        if run == 0:
            second = [program, tmp_path / "second.db", "7", "3000"]
            second = subprocess.run(second, check=False, capture_output=True, text=True, timeout=60)
            assert second.returncode == 1 and IN_USE in second.stderr, second
        kill(running)
        before, (count, highest, tick) = highest, saved()
        assert highest > before and tick > 0
    # The program continues at the saved tick. The primary key of its table would refuse a repeated ID.
    done = subprocess.run([program, world, "7", str(tick // 3600 + 1)], check=True, capture_output=True, text=True, timeout=300)
    assert saved()[0] > count and "items" in done.stdout, done


def test_two_servers_are_merged():
    environment = os.environ | {"PKG_CONFIG_PATH": f"{ROOT}/build/c/lib/pkgconfig", "FRAZIL": f"{COMMAND}/frazil"}
    played = subprocess.run(
        [ROOT / "examples/game-server/play.sh", "2"], check=False, env=environment, capture_output=True, text=True, timeout=300
    )
    assert played.returncode == 0, played.stdout + played.stderr
    merged = re.findall(r"^merged: (\d+) items, \d+ mails, each with its item$", played.stdout, re.MULTILINE)
    assert len(merged) == 2 and all(int(items) > 10_000 for items in merged), played.stdout
    assert int(re.search(r"^(\d+) items of the second server have new IDs$", played.stdout, re.MULTILINE)[1]) > 0


def test_the_guide(tmp_path):
    # IDs of `game`, server 7, from a day in 2026. Both worlds have those from 500 to 599.
    ids = [(n + 40_000_000) << 32 | 7 << 12 for n in range(1000)]
    for world, items in {"eu": ids[:600], "us": ids[500:]}.items():
        with sqlite3.connect(tmp_path / f"{world}.db") as database:
            database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY)")
            database.execute("CREATE TABLE mails (item INTEGER NOT NULL REFERENCES items)")
            for table in "items", "mails":
                database.executemany(f"INSERT INTO {table} VALUES (?)", [(item,) for item in items])
        database.close()
    guide = (ROOT / "docs/merge-audit.md").read_text()
    environment = os.environ | {"PATH": f"{COMMAND}:{os.environ['PATH']}"}
    for code in re.findall(r"^```sh\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        subprocess.run(["sh", "-ec", code], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert (tmp_path / "after/duplicates.csv").read_text() == "id,source,line\n"
    assert len((tmp_path / "merge-audit/remap.csv").read_text().splitlines()) == 101
    database = sqlite3.connect(tmp_path / "us.db")
    [(renamed, mails)] = database.execute("SELECT count(*), sum(id IN (SELECT item FROM mails)) FROM items WHERE id >> 12 & 0xfffff = 99")
    database.close()
    assert (renamed, mails) == (100, 100)
