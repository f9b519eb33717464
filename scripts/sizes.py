#!/usr/bin/env python3
"""The sizes of the libraries in the release artefacts, as they are loaded and as they are downloaded; above its limit fails.

usage: scripts/sizes.py FOLDER
"""

import sys
import tarfile
import zipfile
from pathlib import Path

MEGABYTE = 1_000_000
# Where the artefacts are, and how the library in one is named; npm's main package has none.
KINDS = {
    "python/*.whl": (".so", ".pyd"),
    "node/frazil-[a-z]*.tgz": (".node",),
    "c/*.tar.gz": (".so", ".dylib", ".dll"),
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
    print(f"{'artefact':75} {'library':>12} {'download':>12} {'limit':>9}")
    for pattern, endings in KINDS.items():
        archives = sorted(folder.glob(pattern))
        if not archives:
            sys.exit(f"there is no {folder}/{pattern}")
        for archive in archives:
            # A shared library's version stands behind its ending.
            sizes = [size for name, size in files(archive).items() if any(end in Path(name).name for end in endings)]
            if len(sizes) != 1:
                sys.exit(f"{archive} has {len(sizes)} libraries, not one")
            limit = 1.25 if archive.name.endswith("-lean.tar.gz") else 6
            too_big |= sizes[0] > limit * MEGABYTE
            print(f"{archive.name:75} {sizes[0]:10,} B {archive.stat().st_size:10,} B {limit:6.4g} MB")
    sys.exit("a library is above its limit" if too_big else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
