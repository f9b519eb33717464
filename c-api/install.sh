#!/bin/sh
# Builds the libraries for this machine and installs them with their headers, frazil.pc, CMake package and licences.
# usage: c-api/install.sh [--release | --demo] [--lean] [--aligned] [--quiet] [--libdir=DIR] PREFIX
#   --release: optimised, without debug information and symbols; else a debug build
#   --demo: with the profile of `make demo`; and with --lean as well with what its other bindings have built already
#   --lean: without the stores' clients, but for local, file:, memory and frazil://
#   --aligned: with what the other bindings have built already, unless it is lean: for tests
#   --libdir: where the libraries lie below PREFIX: lib, unless given; lib64, lib/x86_64-linux-gnu
set -eu
here=$PWD
cd "$(dirname "$0")/.."

profile=debug lean='' aligned='' quiet='' libdir=lib prefix=''
for argument; do
    case $argument in
        --release) profile=release ;;
        --demo) profile=demo ;;
        --lean) lean=-lean ;;
        --aligned) aligned=1 ;;
        --quiet) quiet=1 ;;
        --libdir=*) libdir=${argument#*=} ;;
        -*) echo "c-api/install.sh: $argument is none of: --release, --demo, --lean, --aligned, --quiet, --libdir=DIR" >&2; exit 2 ;;
        /*) prefix=$argument ;;
        *) prefix=$here/$argument ;;
    esac
done
[ -n "$prefix" ] || { echo "usage: c-api/install.sh [--release | --demo] [--lean] [--libdir=DIR] PREFIX" >&2; exit 2; }
. scripts/rust.sh
find_cargo

from=${CARGO_TARGET_DIR:-$PWD/target}/$profile
# Beside the libraries, because cargo asks rustc only when something has changed.
native=$from/frazil$lean.native-static-libs
set -- --locked --package frazil-c
[ $profile = debug ] || set -- "$@" --profile $profile
if [ -n "$lean" ] && [ $profile = demo ]; then
    set -- "$@" --no-default-features --features aligned-lean
elif [ -n "$lean" ]; then
    set -- "$@" --no-default-features --config c-api/lean.toml
elif [ -n "$aligned" ]; then
    set -- "$@" --features aligned
fi
set -- "$@" -- --print "native-static-libs=$native"
mkdir -p "$from"
if [ -z "$quiet" ]; then
    echo "Building libfrazil with cargo: $profile${lean:+, lean}. The first build takes minutes, and longest for its last step"
    cargo rustc "$@"
    c-api/lay_out.sh "$from" "$native" "$prefix" "$libdir"
else
    # rustc prints each time where it wrote the list.
    cargo rustc --quiet "$@" 2> "$native.log" || { cat "$native.log" >&2; exit 1; }
    c-api/lay_out.sh "$from" "$native" "$prefix" "$libdir" > /dev/null
fi
# Cargo strips no static library.
[ $profile != release ] || [ ! -e "$prefix/$libdir/libfrazil.a" ] || strip -S "$prefix/$libdir/libfrazil.a"
