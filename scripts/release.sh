#!/usr/bin/env bash
# A step of the release workflow on one platform: TARGET, or this machine. The workflow holds no more logic than which step is next.
# usage: [TARGET=triple] scripts/release.sh STEP
#   build                  builds what is released into build/package, and shows its sizes
#   try                    installs and runs it, where libc is musl in containers of Alpine
#   free-threaded PYTHON.. builds the wheels of free-threaded Pythons, in place of the others
#   leave                  removes what every platform makes alike: it comes from one
#   check-tag TAG          fails unless the tag is v and the version
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
export TARGET
first=x86_64-unknown-linux-gnu

case ${1:-} in
    build)
        c-api/package.sh
        python/package.sh
        node/package.sh
        # Built static, which one libc allows.
        case $TARGET in *-linux-musl) server/package.sh ;; esac
        python3 scripts/sizes.py build/package ;;
    try)
        case $TARGET in
            "$first")
                sudo env "PATH=$PATH" "HOME=$HOME" scripts/setup.sh --package
                python/build.sh
                FRAZIL_PACKAGES=build/package .venv/bin/python -m pytest -q tests/package ;;
            *-linux-musl)
                docker run --rm --volume "$PWD:/frazil:ro" python:3.13-alpine /frazil/scripts/smoke.sh python
                docker run --rm --volume "$PWD:/frazil:ro" node:22-alpine /frazil/scripts/smoke.sh node
                scripts/smoke.sh server ;;
            *)
                scripts/smoke.sh python
                scripts/smoke.sh node ;;
        esac ;;
    free-threaded) python/package.sh --features free-threaded --interpreter "${@:2}" ;;
    leave) [ "$TARGET" = "$first" ] || rm build/package/python/*.tar.gz build/package/node/frazil-[0-9]*.tgz ;;
    check-tag)
        version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
        [ "${2:-}" = "v$version" ] || { echo "the tag ${2:-} is not v$version, the version in Cargo.toml" >&2; exit 1; } ;;
    *) echo 'usage: scripts/release.sh build | try | free-threaded PYTHON... | leave | check-tag TAG' >&2; exit 2 ;;
esac
