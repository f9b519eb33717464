#!/bin/sh
# Puts libraries that were built, with all that a C or C++ project needs to use them, under a prefix that may be moved, and
# prints the path of each file.
# usage: c-api/lay_out.sh FOLDER NATIVE PREFIX [LIBDIR]
#        c-api/lay_out.sh --undo PREFIX [LIBDIR]: removes the same files
#   FOLDER holds the libraries; NATIVE is the file in which rustc wrote what a program with the static one links too;
#   LIBDIR is below PREFIX: lib, unless given.
set -eu
cd "$(dirname "$0")/.."
if [ "$1" = --undo ]; then
    undo=1 native='' prefix=$2 libdir=${3:-lib}
    # What is installed says for which system it was.
    from=$prefix/$libdir
else
    # Compilers link libgcc_s by themselves, and cannot where a program is fully static.
    undo='' from=$1 native=$(tr -d '\r\n' < "$2" | sed 's/-lgcc_s *//') prefix=$3 libdir=${4:-lib}
fi
prefix=${prefix%/} libdir=${libdir%/}
case /$libdir/ in
    //* | */../* | */./*) echo "LIBDIR=$libdir is not a folder below PREFIX: give it as lib64, or as PREFIX/lib64" >&2; exit 2 ;;
esac
# From a folder of LIBDIR back to PREFIX.
up=$(echo "$libdir" | sed 's|[^/][^/]*|..|g')

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
major=${version%%.*}
minor=${version#*.} minor=${minor%%.*}
# As build.rs names it.
abi=$major
[ "$major" = 0 ] && abi=0.$minor

begin() { # PLACE: whether there is something to write there; undoing removes it
    if [ -n "$undo" ]; then
        [ -e "$prefix/$1" ] || [ -L "$prefix/$1" ] || return 1
        rm -f "$prefix/$1"
        echo "removed $prefix/$1"
        return 1
    fi
    mkdir -p "$(dirname "$prefix/$1")"
    echo "installed $prefix/$1"
}
put() { # MODE FILE PLACE: a new file, not new content, for a running process has the old one mapped
    if begin "$3"; then install -m "$1" "$2" "$prefix/$3"; fi
}
link() { # TARGET PLACE
    if begin "$2"; then ln -sf "$1" "$prefix/$2"; fi
}

if [ -e "$from/libfrazil.so" ]; then
    static=$libdir/libfrazil.a shared=$libdir/libfrazil.so.$version soname=libfrazil.so.$abi link=libfrazil.so
    put 755 "$from/libfrazil.so" "$shared"
elif [ -e "$from/libfrazil.dylib" ]; then
    static=$libdir/libfrazil.a shared=$libdir/libfrazil.$version.dylib soname=@rpath/libfrazil.$abi.dylib link=libfrazil.dylib
    put 755 "$from/libfrazil.dylib" "$shared"
else
    static=$libdir/frazil.lib shared=bin/frazil.dll soname='' link=''
    put 755 "$from/frazil.dll" $shared
    put 644 "$from/frazil.dll.lib" "$libdir/frazil.dll.lib"
fi
if [ -n "$link" ]; then
    link "${shared##*/}" "$libdir/${soname##*/}"
    link "${soname##*/}" "$libdir/$link"
fi
put 644 "$from/${static##*/}" "$static"
put 644 include/frazil.h include/frazil.h
put 644 include/frazil.hpp include/frazil.hpp
put 644 c-api/tsan.supp share/frazil/tsan.supp
for licence in LICENSE-APACHE LICENSE-MIT THIRD-PARTY-NOTICES.txt; do put 644 $licence share/doc/frazil/$licence; done

# A CMake list: a framework's name is two words, and MSVC's way to name its own library is none of CMake's.
list=$(echo "$native" | sed 's|/defaultlib:[^ ]*||g; s/-framework /-framework@/g; s/^ *//; s/ *$//; s/  */;/g; s/-framework@/-framework /g')

fill() { # TEMPLATE PLACE
    begin "$2" || return 0
    sed -e "s|@VERSION@|$version|; s|@ABI@|$abi|; s|@SHARED@|$shared|; s|@SONAME@|$soname|; s|@STATIC@|$static|" \
        -e "s|@LIBDIR@|$libdir|; s|@UP@|$up|; s|@NATIVE@|$native|; s|@NATIVE_LIST@|$list|" "c-api/$1" > "$prefix/$2"
}
fill frazil.pc.in "$libdir/pkgconfig/frazil.pc"
fill frazilConfig.cmake.in "$libdir/cmake/frazil/frazilConfig.cmake"
fill frazilConfigVersion.cmake.in "$libdir/cmake/frazil/frazilConfigVersion.cmake"

# The folders that are frazil's alone.
[ -z "$undo" ] || rmdir "$prefix/share/doc/frazil" "$prefix/share/frazil" "$prefix/$libdir/cmake/frazil" 2>/dev/null || true
