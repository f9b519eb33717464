#!/bin/sh
# Builds the wheel into build/wheels and installs it into .venv, with what the tests need.
# usage: python/build.sh [--release | --demo | --lean]
#   --demo: a quick build of the wheel alone; --lean: also without the clients of servers
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
# maturin makes PyO3 leave out libpython, which the suites in Rust link. A separate feature keeps both builds side by side.
profile=dev features='--features aligned,pyo3/extension-module'
case ${1:-} in
    '') ;;
    --release | --demo) profile=${1#--} ;;
    --lean) profile=demo features='--no-default-features --features aligned-lean' ;;
    *) echo "python/build.sh: $1 is none of: --release, --demo, --lean" >&2; exit 2 ;;
esac

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "frazil needs python3 of version 3.11 or later" >&2; exit 1; }
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
# The marks come last, so that a partial build is repeated.
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

# A wheel of the same sources is kept. Its mark has the time of the build's start, because sources may change during the build.
if [ "$(cat .venv/built 2>/dev/null)" = "wheel $*" ] && ls build/wheels/frazil-*.whl >/dev/null 2>&1 &&
    [ -z "$(find Cargo.lock Cargo.toml core cli/Cargo.toml cli/src python README.md -newer .venv/built ! -name __pycache__ -print -quit)" ]; then
    exit
fi
rm -f .venv/built
echo "wheel $*" > .venv/building
wheels=build/wheels
rm -f "$wheels"/frazil-*.whl
.venv/bin/maturin build --quiet --manifest-path python/Cargo.toml --out "$wheels" $features --profile $profile
pip install --no-deps --force-reinstall "$wheels"/frazil-*.whl
mv .venv/building .venv/built
