#!/bin/sh
# Builds the wheel into build/wheels and installs it into .venv, with what the tests need.
# usage: python/build.sh [--release | --demo | --lean]
#   --demo: built soon, and the wheel alone; --lean: the same, and without the clients of servers
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
# maturin has PyO3 leave libpython out, which the suites in Rust link. Under a feature of its own both stay built beside each other.
profile=dev features='--features aligned,pyo3/extension-module'
case ${1:-} in
    '') ;;
    --release | --demo) profile=${1#--} ;;
    --lean) profile=demo features='--no-default-features --features aligned-lean' ;;
    *) echo "python/build.sh: $1 is none of: --release, --demo, --lean" >&2; exit 2 ;;
esac

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "frazil needs python3 of version 3.11 or later" >&2; exit 1; }
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
# The marks come last: what is half made is made again.
[ -e .venv/made ] || { rm -rf .venv && python3 -m venv .venv && : > .venv/made; }
tools=tests/python/requirements.txt
if cmp -s $tools .venv/installed; then
    :
elif [ $profile = demo ]; then
    [ -x .venv/bin/maturin ] || pip install "$(grep '^maturin==' $tools)"
else
    echo "Installing what the tests in Python need" >&2
    scripts/uv.sh pip install --quiet --python .venv/bin/python --requirement $tools
    cp $tools .venv/installed
fi

# A second demo in a row needs no new wheel.
if [ $profile = demo ] && [ "$(cat .venv/demo 2>/dev/null)" = "$1" ] &&
    [ -z "$(find Cargo.lock Cargo.toml core/Cargo.toml core/src cli/Cargo.toml cli/src python README.md -newer .venv/demo ! -name __pycache__ -print -quit)" ]; then
    exit
fi
rm -f .venv/demo
wheels=build/wheels
rm -f "$wheels"/frazil-*.whl
.venv/bin/maturin build --quiet --manifest-path python/Cargo.toml --out "$wheels" $features --profile $profile
pip install --no-deps --force-reinstall "$wheels"/frazil-*.whl
[ $profile != demo ] || echo "$1" > .venv/demo
