"""Mints IDs with one library: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE, as trial/README.md says."""

import json
import os
import struct
import sys
import time
from collections import Counter


def mint(generators, next_id, count, seconds, pause, path):
    """Mints up to `count` IDs for up to `seconds`, and writes them to a file. An error is counted, and the call repeated."""
    errors, longest, last = Counter(), 0.0, time.monotonic()
    end = last + seconds
    with open(path, "wb", buffering=0) as file:
        while count > 0 and last < end:
            ids = []
            for n in range(min(count, 10 if pause else 1000)):
                try:
                    id = next_id(generators[n % len(generators)])
                except Exception as error:
                    errors[type(error).__name__] += 1
                    break
                if id is None:
                    errors["None"] += 1
                    break
                ids.append(id)
            time.sleep(pause)
            file.write(struct.pack(f"<{len(ids)}Q", *ids))
            count -= len(ids)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
    print(json.dumps({"errors": errors, "longest": round(longest, 3)}), flush=True)


def run(open_generator, next_id):
    """Runs the program's command line with a library's two functions."""
    way, path = sys.argv[1], sys.argv[6]
    node, count = map(int, sys.argv[2:4])
    seconds, pause = map(float, sys.argv[4:6])
    if way == "json":
        generator = open_generator(node)
        ids = [next_id(generator) for _ in range(count)]
        print(json.dumps({"json": json.dumps(ids), "exact": list(map(str, ids))}))
        return
    try:
        generators = [open_generator(node) for _ in range(2 if way == "two" else 1)]
    except Exception as error:
        print(json.dumps({"errors": {type(error).__name__: 1}, "longest": 0}))
        return
    if way == "fork":
        next_id(generators[0])
        children = []
        for number in (1, 2):
            if not (child := os.fork()):
                mint(generators, next_id, count, seconds, pause, f"{path}.{number}")
                os._exit(0)
            children.append(child)
        mint(generators, next_id, count, seconds, pause, path)
        for child in children:
            os.waitpid(child, 0)
        return
    mint(generators, next_id, count, seconds, pause, path)
