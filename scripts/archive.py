#!/usr/bin/env python3
"""Packs folders into archives whose bytes depend only on names, contents and the executable bit, so that two builds are equal.

usage: [SOURCE_DATE_EPOCH=SECONDS] scripts/archive.py ARCHIVE FOLDER [NAME]...: packs a folder, or these names in it, as .zip or else .tar.gz
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def the_time():
    """Returns the time of every file, in seconds: SOURCE_DATE_EPOCH, or else the last commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    commit = ["git", "-C", Path(__file__).parent, "log", "-1", "--format=%ct"]
    return int(given or subprocess.check_output(commit))


def every_path(folder, names):
    """Returns the names in the archive with their paths, in the same order on every machine."""
    found = {path for name in names or os.listdir(folder) for path in (folder / name, *(folder / name).rglob("*"))}
    return sorted((path.relative_to(folder).as_posix(), path) for path in found)


def tar(archive, folder, names, seconds):
    with (
        open(archive, "wb") as file,
        gzip.GzipFile("", "wb", mtime=seconds, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as opened,
    ):
        for name, path in every_path(folder, names):
            entry = opened.gettarinfo(path, name)
            # Independent of the account that packs it.
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "root", "root", seconds
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            opened.addfile(entry, io.BytesIO(path.read_bytes()) if entry.isreg() else None)


def zipped(archive, folder, names, seconds):
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, path in every_path(folder, names):
            if path.is_file():
                entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
                opened.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    pack = zipped if sys.argv[1].endswith((".zip", ".nupkg")) else tar
    pack(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], the_time())
