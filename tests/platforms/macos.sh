#!/bin/bash
# Runs a suite for macOS, within the folder of run.sh. `build` makes the packages with the release's own scripts, Debian's Clang and LLD,
# and an imitation of Apple's SDK. `inspect` reads what macOS would check, because Linux cannot run them. The last line has libtest's form.
# usage: tests/platforms/macos.sh build | inspect    TARGET
set -euo pipefail
# shellcheck disable=SC2034
system=macos
. tests/platforms/common.sh
packages=/build/packages/$target out=/build/macos/$target
sdk=$out/sdk
case $target in
    aarch64-*) arch=arm64 cpu=arm64 oldest=11.0 ;;
    x86_64-*) arch=x86_64 cpu=x64 oldest=10.14 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
mkdir -p "$packages" build
ln -sfn "$packages" build/package

# Writes a library of the SDK: the name by which it is loaded, and its symbols.
stub() { # FILE NAME SYMBOL...
    mkdir -p "$(dirname "$sdk/$1")"
    printf -- "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\ninstall-name: '%s'\n" "$2" > "$sdk/$1"
    printf 'exports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    symbols: [ %s ]\n...\n' "$(printf '_%s\n' "${@:3}" | paste -sd ,)" >> "$sdk/$1"
}
# Writes a framework, with the symbols that its crate declares.
framework() { # NAME CRATE
    # shellcheck disable=SC2046
    stub "System/Library/Frameworks/$1.framework/$1.tbd" "/System/Library/Frameworks/$1.framework/Versions/A/$1" \
        $(grep -rhoE '\bpub (fn|static) \w+|\bkSec\w+' "$CARGO_HOME"/registry/src/*/"$2"-[0-9]*/src | awk '{ print $NF }' | sort -u)
}

build() {
    local zig cases native
    export TARGET=$target
    (
        . scripts/release-settings.sh
        rm -rf "$out"
        mkdir -p "$sdk/usr/lib"
        cargo fetch --locked --target "$target"
        framework Security security-framework-sys
        framework CoreFoundation core-foundation-sys
        stub usr/lib/libiconv.tbd /usr/lib/libiconv.2.dylib iconv iconv_open iconv_close
        # zig has Apple's headers. Its libSystem is for a processor that LLD does not know, so it is changed to arm64.
        zig=$(python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/lib/libc
        ln -s "$zig/include/any-darwin-any" "$sdk/usr/include"
        sed 's/arm64e[.]x1-/arm64-/g' "$zig/darwin/libSystem.tbd" > "$sdk/usr/lib/libSystem.tbd"
        ln -s libSystem.tbd "$sdk/usr/lib/libc.tbd"
        ln -s libSystem.tbd "$sdk/usr/lib/libm.tbd"
    )
    printf '#!/bin/sh\nexec clang --target=%s-apple-macos -fuse-ld=lld "$@"\n' "$arch" > "$out/cc"
    chmod +x "$out/cc"
    # llvm-strip, because GNU strip damages the index of an archive for macOS.
    mkdir "$out/tools"
    ln -s /usr/bin/llvm-strip "$out/tools/strip"
    export SDKROOT=$sdk TARGET_CC=clang TARGET_AR=llvm-ar PATH=$out/tools:$PATH
    export "CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<< "$target")_LINKER=$out/cc"
    build_packages
    mkdir "$out"/{c,lean,node,python}
    tar xzf "$packages/c/frazil-$version-$target.tar.gz" -C "$out/c" --strip-components=1
    tar xzf "$packages/c/frazil-$version-$target-lean.tar.gz" -C "$out/lean" --strip-components=1
    tar xzf "$packages/node/frazil-darwin-$cpu-$version.tgz" -C "$out/node" --strip-components=1
    python3 -m zipfile -e "$packages/python/frazil-$version-cp311-abi3-macosx_${oldest/./_}_$arch.whl" "$out/python"
    # Links programs as a user would, with the shared library and with the static one.
    python3 tests/c/vectors.py > "$out/vectors.h"
    native=$(sed -n 's/^Libs.private: //p' "$out/c/lib/pkgconfig/frazil.pc")
    cases=("$out/cc" "-mmacos-version-min=$oldest" -std=c99 -Wall -Wextra -Werror "-I$out/c/include" -Itests/c "-I$out" tests/c/cases.c)
    "${cases[@]}" "-L$out/c/lib" -lfrazil -o "$out/cases"
    # shellcheck disable=SC2086
    "${cases[@]}" "$out/c/lib/libfrazil.a" $native -o "$out/cases_static"
}

expect() { # WHAT EXPECTED FOUND
    if [ "$2" = "$3" ]; then
        count 1 0
    else
        count 0 1
        printf '%s:\n  expected: %s\n  found:    %s\n' "$@"
    fi
}

# Inspects a library: the oldest macOS that accepts it, its libraries, its exports, and the symbols from the program that loads it.
look() { # FILE LIBRARIES EXPORTS TAKEN
    local headers symbols
    headers=$(llvm-objdump --macho --private-headers "$out/$1")
    symbols=$(llvm-nm --format=darwin "$out/$1")
    expect "$1: the oldest macOS" "$oldest" "$(awk '$1 == "minos" { print $2 }' <<< "$headers")"
    expect "$1: the folder in its name" @rpath "$(llvm-objdump --macho --dylib-id "$out/$1" | sed -n '$s|/[^/]*$||p')"
    expect "$1: libraries" "$2" "$(libraries "$1")"
    expect "$1: exports" "$3" "$(llvm-objdump --macho --exports-trie "$out/$1" | awk '/^0x/ { print $2 }' | sort | xargs)"
    expect "$1: taken" "$4" "$(sed -n 's/.* \(_[^ ]*\) (dynamically looked up)/\1/p' <<< "$symbols" | sed -E 's/^_+(napi|Py).*/\1/' | sort -u | xargs)"
    expect "$1: the unwinder" 'from libSystem' "$(sed -n 's/.* __Unwind_RaiseException (\(.*\))/\1/p' <<< "$symbols")"
    # dyld of macOS 27 refuses others: see release-settings.sh.
    expect "$1: its names, modulo 8" 0 "$(awk '$1 == "stroff" { print $2 % 8 }' <<< "$headers")"
    # macOS on arm64 loads no unsigned code.
    [ "$arch" != arm64 ] || expect "$1: signatures" 1 "$(grep -c LC_CODE_SIGNATURE <<< "$headers")"
}
libraries() { # FILE
    llvm-objdump --macho --private-headers "$out/$1" | grep -A 2 LC_LOAD_DYLIB | awk '$1 == "name" { print $2 }' | sed 's|.*/||' | sort | xargs
}

inspect() {
    local declared soname stores='CoreFoundation Security libSystem.B.dylib libiconv.2.dylib' lean='libSystem.B.dylib libiconv.2.dylib'
    declared=$(grep -E '^[a-z].*\bfrazil_[a-z0-9_]*\(' include/frazil.h | grep -o '\bfrazil_[a-z0-9_]*(' | sed 's/^/_/; s/($//' | sort | xargs)
    look c/lib/libfrazil.dylib "$stores" "$declared" ''
    look lean/lib/libfrazil.dylib "$lean" "$declared" ''
    look "node/frazil.darwin-$cpu.node" "$stores" _napi_register_module_v1 napi
    look python/frazil/_frazil.abi3.so "$stores" _PyInit__frazil Py
    soname=$(readlink "$out/c/lib/libfrazil.dylib")
    expect "a program: libraries" "libSystem.B.dylib $soname" "$(libraries cases)"
    expect "a static program: libraries" "$stores" "$(libraries cases_static)"
    expect "CMake's list" '-framework Security;-framework CoreFoundation;-liconv;-lSystem;-lc;-lm' \
        "$(sed -n 's/.*INTERFACE_LINK_LIBRARIES "\(-.*\)"/\1/p' "$out/c/lib/cmake/frazil/frazilConfig.cmake")"
    result
}

"$suite"
