#!/bin/sh
# Tests the adapters with their real frameworks, on private servers: with the frameworks' current versions, then with the oldest supported ones.
# usage: tests/adapters/python/run.sh [--current | --oldest] [PYTEST ARGUMENT...]; python/build.sh builds the wheel that is tested
set -eu
cd "$(dirname "$0")/../../.."
case ${1:-} in
    --current | --oldest) wanted=${1#--}; shift ;;
    *) wanted="current oldest" ;;
esac
here=tests/adapters/python

for versions in $wanted; do
    venv=build/adapters-python-$versions
    # The oldest frameworks may refuse the newest Python, and the current ones the oldest.
    python=python3
    [ $versions = oldest ] || python=$("$here/newest.sh")
    pip() { scripts/uv.sh pip "$@" --quiet --python "$venv/bin/python"; }
    # The marks are written last, so a half-made installation is made again.
    [ -e "$venv/made" ] || { rm -rf "$venv" && "$python" -m venv "$venv" && : > "$venv/made"; }
    if ! cmp -s "$here/$versions.txt" "$venv/installed"; then
        echo "Installing the frameworks, $versions" >&2
        pip install --requirement "$here/$versions.txt"
        cp "$here/$versions.txt" "$venv/installed"
    fi
    pip install --no-deps --reinstall build/wheels/frazil-*.whl
    echo "Adapters in Python, the frameworks' $versions versions"
    python3 tests/servers postgresql,mariadb,redis -- "$venv/bin/python" -m pytest -q "$here" "$@"
done
