#!/bin/sh
# The adapters beside their real frameworks, on private servers: at the frameworks' current versions, then at the oldest that are supported.
# usage: tests/adapters/python/run.sh [--current | --oldest] [PYTEST ARGUMENT...]; python/build.sh builds the wheel that is tested
set -eu
cd "$(dirname "$0")/../../.."
case ${1:-} in
    --current | --oldest) wanted=${1#--}; shift ;;
    *) wanted="current oldest" ;;
esac
here=tests/adapters/python

# The newest Python for the current frameworks, which may refuse the oldest; that one for the oldest.
newest() {
    for version in 3.13 3.12; do
        for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version."*/bin/python; do
            # What pyenv puts into PATH runs only if that version is turned on.
            ! "$python" -c '' 2>/dev/null || { echo "$python"; return; }
        done
    done
    echo "the frameworks' current versions need Python 3.12 or later: put it into PATH, or into pyenv" >&2
    return 1
}

for versions in $wanted; do
    venv=build/adapters-python-$versions
    python=python3
    [ $versions = oldest ] || python=$(newest)
    pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
    # The marks come last: what is half made is made again.
    [ -e "$venv/made" ] || { rm -rf "$venv" && "$python" -m venv "$venv" && : > "$venv/made"; }
    if ! cmp -s "$here/$versions.txt" "$venv/installed"; then
        echo "Installing the frameworks, $versions" >&2
        pip install --requirement "$here/$versions.txt"
        cp "$here/$versions.txt" "$venv/installed"
    fi
    pip install --no-deps --force-reinstall build/wheels/frazil-*.whl
    echo "Adapters in Python, the frameworks' $versions versions"
    python3 tests/servers postgresql,mariadb,redis -- "$venv/bin/python" -m pytest -q "$here" "$@"
done
