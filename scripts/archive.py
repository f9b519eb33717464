#!/usr/bin/env python3
"""Packs folders so that the archive's bytes follow from names, contents and whether a file is a program: two builds are equal.

usage: [SOURCE_DATE_EPOCH=SECONDS] scripts/archive.py ARCHIVE FOLDER [NAME]...: all of a folder, or these in it; a .zip, or else a .tar.gz
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
    """Returns the seconds that every file is from: those of the last commit, unless they are given."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    commit = ["git", "-C", Path(__file__).parent, "log", "-1", "--format=%ct"]
    return int(given or subprocess.check_output(commit))


def every_path(folder, names):
    """Names in the archive with their paths, in one order on every machine."""
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
            # The archive is root's, whoever made it.
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
