"""Runs `make demo`, and keeps in demo.json each line that it prints with its time in seconds: for the recording that draw.py draws."""

import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main():
    begin, lines = time.monotonic(), []
    command = ["make", "--no-print-directory", "demo"]
    with subprocess.Popen(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        for line in demo.stdout:
            print(line, end="", flush=True)
            lines.append([round(time.monotonic() - begin, 2), line.rstrip()])
    if demo.returncode:
        sys.exit(f"make demo failed with status {demo.returncode}")
    (HERE / "demo.json").write_text(json.dumps(lines, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
