#!/bin/sh
# Prints the newest Python of this machine that the current frameworks run on: 3.12 or 3.13, in PATH or in pyenv.
set -eu
for version in 3.13 3.12; do
    for python in "python$version" "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version."*/bin/python; do
        # pyenv's program in PATH runs only if this version is enabled.
        ! "$python" -c '' 2>/dev/null || { echo "$python"; exit; }
    done
done
exit 1
