#!/bin/sh
# Puts libraries that were built, with all that a C or C++ project needs to use them, under a prefix that may be moved.
# usage: c-api/lay_out.sh FOLDER NATIVE PREFIX
#   FOLDER holds the libraries; NATIVE is the file in which rustc wrote what a program with the static one links too.
set -eu
cd "$(dirname "$0")/.."
from=$1 native=$(tr -d '\r\n' < "$2") prefix=$3

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
major=${version%%.*}
minor=${version#*.} minor=${minor%%.*}
# As build.rs names it.
abi=$major
[ "$major" = 0 ] && abi=0.$minor

put() { # MODE FILE PLACE: a new file, not new content, for a running process has the old one mapped
    mkdir -p "$(dirname "$prefix/$3")"
    install -m "$1" "$2" "$prefix/$3"
}

if [ -e "$from/libfrazil.so" ]; then
    static=lib/libfrazil.a shared=lib/libfrazil.so.$version soname=libfrazil.so.$abi link=libfrazil.so
    put 755 "$from/libfrazil.so" $shared
elif [ -e "$from/libfrazil.dylib" ]; then
    static=lib/libfrazil.a shared=lib/libfrazil.$version.dylib soname=@rpath/libfrazil.$abi.dylib link=libfrazil.dylib
    put 755 "$from/libfrazil.dylib" $shared
else
    static=lib/frazil.lib shared=bin/frazil.dll soname='' link=''
    put 755 "$from/frazil.dll" $shared
    put 644 "$from/frazil.dll.lib" lib/frazil.dll.lib
fi
if [ -n "$link" ]; then
    ln -sf "${shared##*/}" "$prefix/lib/${soname##*/}"
    ln -sf "${soname##*/}" "$prefix/lib/$link"
fi
put 644 "$from/${static##*/}" $static
put 644 include/frazil.h include/frazil.h
put 644 include/frazil.hpp include/frazil.hpp
for licence in LICENSE-APACHE LICENSE-MIT; do put 644 $licence share/doc/frazil/$licence; done

# A CMake list: a framework's name is two words, and MSVC's way to name its own library is none of CMake's.
list=$(echo "$native" | sed 's|/defaultlib:[^ ]*||g; s/-framework /-framework@/g; s/^ *//; s/ *$//; s/  */;/g; s/-framework@/-framework /g')

fill() { # TEMPLATE PLACE
    mkdir -p "$(dirname "$prefix/$2")"
    sed -e "s|@VERSION@|$version|; s|@ABI@|$abi|; s|@SHARED@|$shared|; s|@SONAME@|$soname|; s|@STATIC@|$static|" \
        -e "s|@NATIVE@|$native|; s|@NATIVE_LIST@|$list|" "c-api/$1" > "$prefix/$2"
}
fill frazil.pc.in lib/pkgconfig/frazil.pc
fill frazilConfig.cmake.in lib/cmake/frazil/frazilConfig.cmake
fill frazilConfigVersion.cmake.in lib/cmake/frazil/frazilConfigVersion.cmake
