"""Opens SPEC once it reads a line, and mints until it is killed: worker.py SPEC FILE.

IDs go to FILE.ids, 8 bytes each. FILE.log gets a line of JSON for each event, for each error unless it repeats the last one, and for each
success after an error. A line has the time, the event or error, and its text.
"""

import array
import json
import logging
import os
import sys
import time

import frazil

SPEC, FILE = sys.argv[1:]
FEW = 8


def append_to(ending):
    return os.open(f"{FILE}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


IDS, LOG = append_to("ids"), append_to("log")


def note(what, text=""):
    os.write(LOG, (json.dumps([time.time(), what, str(text)]) + "\n").encode())


class Events(logging.Handler):
    def emit(self, record):
        note(record.event, record.getMessage())


def mint(ids, buffer):
    """Mints and writes down a few IDs. Returns the error, if there is one."""
    try:
        ids.fill(buffer)
    except frazil.FrazilError as error:
        os.write(IDS, memoryview(buffer)[: error.written])
        return error
    os.write(IDS, memoryview(buffer))
    return None


logging.getLogger("frazil").addHandler(Events())
logging.getLogger("frazil").setLevel(logging.INFO)
note("ready")
sys.stdin.readline()
ids, buffer, state = None, array.array("q", bytes(8 * FEW)), None
while True:
    try:
        ids = ids or frazil.Snowflake(SPEC)
        error = mint(ids, buffer)
    except frazil.FrazilError as refused:
        error = refused
    now = error.name if error else "mints"
    if now != state:
        note(now, error or "")
        state = now
    time.sleep(0.001)
