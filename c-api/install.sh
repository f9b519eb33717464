#!/bin/sh
# Builds the libraries for this machine and installs them with their headers, frazil.pc, CMake package and licences.
# usage: c-api/install.sh [--release | --demo] [--lean] [--aligned] [--quiet] [--libdir=DIR] PREFIX
#   --release: optimised, without debug information and symbols; the default is a debug build
#   --demo: with the profile of `make demo`; with --lean, it also reuses what its other bindings have built
#   --lean: without the stores' clients, except local, file:, memory and frazil://
#   --aligned: for tests; reuses what the other bindings have built, unless --lean is given
#   --libdir: the folder of the libraries below PREFIX, for example lib64 or lib/x86_64-linux-gnu; the default is lib
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
# The file stays beside the libraries, because cargo runs rustc, which writes it, only after a change.
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
    # rustc prints the list's path at each run.
    cargo rustc --quiet "$@" 2> "$native.log" || { cat "$native.log" >&2; exit 1; }
    c-api/lay_out.sh "$from" "$native" "$prefix" "$libdir" > /dev/null
fi
# Cargo does not strip static libraries.
[ $profile != release ] || [ ! -e "$prefix/$libdir/libfrazil.a" ] || strip -S "$prefix/$libdir/libfrazil.a"
