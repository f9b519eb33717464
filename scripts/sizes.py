#!/usr/bin/env python3
"""The sizes of the libraries in the release artefacts, as they are loaded and as they are downloaded; above its limit fails.

usage: scripts/sizes.py FOLDER
"""

import sys
import tarfile
import zipfile
from pathlib import Path

MEGABYTE = 1_000_000
# What is in an artefact: the ending of the library's name there, and its limit in MB.
KINDS = {
    "python/*.whl": ((".so", ".pyd"), 6),
    "node/*.tgz": ((".node",), 6),
    "c/*[!n].tar.gz": ((".so", ".dylib", ".dll"), 6),
    "c/*-lean.tar.gz": ((".so", ".dylib", ".dll"), 1),
}


def files(archive):
    """The regular files of an archive, with their sizes."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {entry.filename: entry.file_size for entry in opened.infolist()}
    with tarfile.open(archive) as opened:
        return {entry.name: entry.size for entry in opened if entry.isreg()}


def main(folder):
    too_big = False
    print(f"{'artefact':60} {'library':>10} {'download':>10} {'limit':>8}")
    for pattern, (endings, limit) in KINDS.items():
        libraries = []
        for archive in sorted(folder.glob(pattern)):
            # A shared library's version stands behind its ending.
            sizes = [size for name, size in files(archive).items() if any(end in Path(name).name for end in endings)]
            libraries += [(archive, size) for size in sizes]
        if not libraries:
            sys.exit(f"{folder}/{pattern} has no library")
        for archive, size in libraries:
            download = archive.stat().st_size
            too_big |= size > limit * MEGABYTE
            print(f"{archive.name:60} {size / MEGABYTE:7.2f} MB {download / MEGABYTE:7.2f} MB {limit:5} MB")
    sys.exit("a library is above its limit" if too_big else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
