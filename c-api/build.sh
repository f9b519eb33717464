#!/bin/sh
# Builds the libraries and puts them, with the headers, where a C compiler finds them: build/c.
# usage: c-api/build.sh [--release | --demo] [--lean]
set -eu
cd "$(dirname "$0")/.."
# Removes what an interrupted build has left.
rm -rf build/c.new
c-api/install.sh --aligned --quiet "$@" build/c.new
mkdir -p build/c
rm -rf build/c/lib build/c/include build/c/share
mv build/c.new/* build/c
rmdir build/c.new
