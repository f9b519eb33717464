#!/usr/bin/env python3
"""Prints the sizes of the libraries in the release artefacts, loaded and downloaded, and fails if one is above its limit.

usage: scripts/sizes.py FOLDER
       scripts/sizes.py --lean LIBRARY: the lean C library, as this machine's linker makes it
"""

import sys
import tarfile
import zipfile
from pathlib import Path

MEGABYTE = 1_000_000
LEAN_LIMIT = 1.33
# For each artefact: its files, the endings of its library, and the limit in MB. The wheel and the addon include the command line.
KINDS = {
    "python/*.whl": ((".so", ".pyd"), 7.5),
    "node/frazil-[a-z]*.tgz": ((".node",), 7.5),
    "c/*.tar.gz": ((".so", ".dylib", ".dll"), 6),
}


def files(archive):
    """Returns the regular files of an archive, with their sizes."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {entry.filename: entry.file_size for entry in opened.infolist()}
    with tarfile.open(archive) as opened:
        return {entry.name: entry.size for entry in opened if entry.isreg()}


def main(folder):
    too_big = False
    print(f"{'artefact':75} {'library':>12} {'download':>12} {'limit':>9}")
    for pattern, (endings, limit) in KINDS.items():
        archives = sorted(folder.glob(pattern))
        if not archives:
            sys.exit(f"there is no {folder}/{pattern}")
        for archive in archives:
            # A shared library's version comes after its ending.
            sizes = [size for name, size in files(archive).items() if any(end in Path(name).name for end in endings)]
            if len(sizes) != 1:
                sys.exit(f"{archive} has {len(sizes)} libraries, not one")
            allowed = LEAN_LIMIT if archive.name.endswith("-lean.tar.gz") else limit
            too_big |= sizes[0] > allowed * MEGABYTE
            print(f"{archive.name:75} {sizes[0]:10,} B {archive.stat().st_size:10,} B {allowed:6.4g} MB")
    sys.exit("a library is above its limit" if too_big else 0)


def lean(library):
    size = library.stat().st_size
    print(f"{library.name}, lean: {size:,} B of {LEAN_LIMIT} MB")
    sys.exit("the lean library is above its limit" if size > LEAN_LIMIT * MEGABYTE else 0)


if __name__ == "__main__":
    lean(Path(sys.argv[2])) if sys.argv[1] == "--lean" else main(Path(sys.argv[1]))
