#!/bin/sh
# Writes include/frazil.h from c-api/src; with --check only compares.
set -eu
cd "$(dirname "$0")/.."
exec cargo run --quiet --package frazil-c --features aligned --example header -- "$@"
