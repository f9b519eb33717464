#!/bin/sh
# Runs a fixed version of uv. It fills the tests' environments in seconds; pip needs minutes. The first call installs uv from PyPI.
# usage: scripts/uv.sh ARGUMENT...
set -eu
wanted=0.13.9
build=$(dirname "$0")/../build
uv=$build/uv-$wanted
if [ ! -x "$uv" ]; then
    mkdir -p "$build"
    made=$(mktemp -d "$build/uv-XXXXXX")
    trap 'rm -rf "$made"' EXIT
    # Without this, dash does not run the trap above after a signal.
    trap 'exit 130' HUP INT TERM
    python3 -m venv "$made"
    "$made/bin/python" -m pip --quiet --disable-pip-version-check install uv==$wanted
    # If two calls install uv at once, both work, and the last one's stays.
    mv "$made/bin/uv" "$uv"
    rm -rf "$made"
fi
exec "$uv" "$@"
