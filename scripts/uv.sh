#!/bin/sh
# Runs uv, of one version, which fills the tests' environments in seconds where pip takes minutes; the first call gets it from PyPI.
# usage: scripts/uv.sh ARGUMENT...
set -eu
wanted=0.13.9
build=$(dirname "$0")/../build
uv=$build/uv-$wanted
if [ ! -x "$uv" ]; then
    mkdir -p "$build"
    made=$(mktemp -d "$build/uv-XXXXXX")
    trap 'rm -rf "$made"' EXIT
    # dash leaves without it on a signal.
    trap 'exit 130' HUP INT TERM
    python3 -m venv "$made"
    "$made/bin/python" -m pip --quiet --disable-pip-version-check install uv==$wanted
    # Two may have made it: the last one stays, and both work.
    mv "$made/bin/uv" "$uv"
    rm -rf "$made"
fi
exec "$uv" "$@"
