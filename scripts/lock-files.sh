#!/usr/bin/env bash
# The tests of the guard of a fixed number, with the locked files by which macOS and FreeBSD guard it.
set -euo pipefail
cd "$(dirname "$0")/.."
begun=$(mktemp)
# Each test has names of its own, whose files stay; another program's may be in use.
trap 'find /var/tmp -maxdepth 1 -name "frazil-*" -newer "$begun" -delete; rm "$begun"' EXIT
export RUSTFLAGS="--cfg frazil_lock_files" CARGO_TARGET_DIR=target/lock-files
cargo test -q --locked -p frazil --lib guard
cargo test -q --locked -p frazil --test guard
