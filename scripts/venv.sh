#!/bin/sh
# Makes a Python environment with the requirements of a file, unless it exists.
# usage: scripts/venv.sh FOLDER REQUIREMENTS
set -eu
cmp -s "$2" "$1/installed" && exit
echo "Installing the packages of $2" >&2
rm -rf "$1"
python3 -m venv "$1"
"$(dirname "$0")/uv.sh" pip install --quiet --python "$1/bin/python" --requirement "$2"
# Last, so that a half-made environment is made again.
cp "$2" "$1/installed"
