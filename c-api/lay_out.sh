#!/bin/sh
# Installs built libraries, and all that a C or C++ project needs to use them, under a relocatable prefix. Prints the path of
# each file.
# usage: c-api/lay_out.sh FOLDER NATIVE PREFIX [LIBDIR]
#        c-api/lay_out.sh --undo PREFIX [LIBDIR]: removes the same files
#   FOLDER holds the libraries. NATIVE is rustc's list of the libraries that a program with the static library needs.
#   LIBDIR is a folder below PREFIX; the default is lib.
set -eu
cd "$(dirname "$0")/.."
if [ "$1" = --undo ]; then
    undo=1 native='' prefix=$2 libdir=${3:-lib}
    # The installed files show for which system they were built.
    from=$prefix/$libdir
else
    # Compilers link libgcc_s by themselves, and a fully static program cannot link it.
    undo='' from=$1 native=$(tr -d '\r\n' < "$2" | sed 's/-lgcc_s *//') prefix=$3 libdir=${4:-lib}
fi
prefix=${prefix%/} libdir=${libdir%/}
case /$libdir/ in
    //* | */../* | */./*) echo "LIBDIR=$libdir is not a folder below PREFIX: give it as lib64, or as PREFIX/lib64" >&2; exit 2 ;;
esac
# The relative path from LIBDIR back to PREFIX.
up=$(echo "$libdir" | sed 's|[^/][^/]*|..|g')

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
major=${version%%.*}
minor=${version#*.} minor=${minor%%.*}
# The same name as in build.rs.
abi=$major
[ "$major" = 0 ] && abi=0.$minor

begin() { # PLACE: succeeds if the file is to be written; with --undo, removes the file and fails
    if [ -n "$undo" ]; then
        [ -e "$prefix/$1" ] || [ -L "$prefix/$1" ] || return 1
        rm -f "$prefix/$1"
        echo "removed $prefix/$1"
        return 1
    fi
    mkdir -p "$(dirname "$prefix/$1")"
    echo "installed $prefix/$1"
}
put() { # MODE FILE PLACE: makes a new file instead of new content, because a running process may have the old one mapped
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

# A CMake list: a framework is one element of two words, and CMake does not know MSVC's /defaultlib:.
list=$(echo "$native" | sed 's|/defaultlib:[^ ]*||g; s/-framework /-framework@/g; s/^ *//; s/ *$//; s/  */;/g; s/-framework@/-framework /g')

fill() { # TEMPLATE PLACE
    begin "$2" || return 0
    sed -e "s|@VERSION@|$version|; s|@ABI@|$abi|; s|@SHARED@|$shared|; s|@SONAME@|$soname|; s|@STATIC@|$static|" \
        -e "s|@LIBDIR@|$libdir|; s|@UP@|$up|; s|@NATIVE@|$native|; s|@NATIVE_LIST@|$list|" "c-api/$1" > "$prefix/$2"
}
fill frazil.pc.in "$libdir/pkgconfig/frazil.pc"
fill frazilConfig.cmake.in "$libdir/cmake/frazil/frazilConfig.cmake"
fill frazilConfigVersion.cmake.in "$libdir/cmake/frazil/frazilConfigVersion.cmake"

# The folders that only frazil uses.
[ -z "$undo" ] || rmdir "$prefix/share/doc/frazil" "$prefix/share/frazil" "$prefix/$libdir/cmake/frazil" 2>/dev/null || true
