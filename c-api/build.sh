#!/bin/sh
# Builds the libraries and puts them, with the headers, where a C compiler finds them: build/c.
# usage: c-api/build.sh [--release] [--lean]
set -eu
cd "$(dirname "$0")/.."
rm -rf build/c/lib build/c/include build/c/share
c-api/install.sh "$@" build/c
