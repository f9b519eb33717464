#!/bin/bash
# Builds a Python with musl, like Alpine's, from Debian's sources, because no registry has one. It has the parts that pip and pytest use.
# usage: tests/platforms/musl-python.sh SYSTEM TO MIRROR
#        SYSTEM is a folder with Debian's musl-tools, gcc, make, automake, libtool, libltdl-dev and linux-libc-dev; TO is a path within it;
#        MIRROR is a mirror of Debian
set -euo pipefail
system=$1 to=$2 mirror=$3
[ -e "$system$to/ready" ] && exit
echo "== Python with musl, in $system$to"
rm -rf "$system$to"
mkdir -p "$system$to/src/lists/partial"
fetched=$system$to/src

# The sources are those of Debian's stable release, which stay available. This system's own package lists are not changed.
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > "$fetched/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$fetched/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$fetched/lists"
    -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$fetched" && "${apt[@]}" source --tar-only python3.13 zlib libffi)
for archive in "$fetched"/*.orig.tar.*[z2]; do tar xf "$archive" -C "$fetched"; done

# Debian's gcc wrapper for musl reports glibc's platform, and does not find the kernel's headers.
mkdir -p "$fetched/kernel"
ln -s /usr/include/linux /usr/include/x86_64-linux-gnu/asm /usr/include/asm-generic "$fetched/kernel/"
cat > "$fetched/cc" << 'END'
#!/bin/sh
[ "$1" != --print-multiarch ] || { echo x86_64-linux-musl; exit; }
exec musl-gcc -O1 -fPIC -idirafter "${0%/*}/kernel" "$@"
END
chmod +x "$fetched/cc"

# shellcheck disable=SC2016
unshare --mount bash -c 'mount --rbind /dev "$1/dev" && exec chroot "$@"' mounted "$system" /bin/bash -euc '
    cd "$1/src"
    export CC=$PWD/cc MAKEFLAGS=-j2
    libraries=$PWD/libraries
    (cd zlib-* && ./configure --static --prefix="$libraries" && make install)
    (cd libffi-* && autoreconf --install && ./configure --disable-shared --disable-docs --prefix="$libraries" && make install)
    cd Python-*
    without=$(printf "py_cv_module_%s=n/a " _lzma _bz2 _sqlite3 _ssl _hashlib readline _curses _curses_panel _gdbm _dbm _tkinter _uuid)
    ./configure --prefix="$1" --disable-test-modules PKG_CONFIG=false $without \
        ZLIB_CFLAGS="-I$libraries/include" ZLIB_LIBS="-L$libraries/lib -lz" \
        LIBFFI_CFLAGS="-I$libraries/include" LIBFFI_LIBS="-L$libraries/lib -lffi"
    make
    make install' musl-python "$to" > "$fetched/log" 2>&1 || { tail -20 "$fetched/log" >&2; exit 1; }
rm -rf "$fetched"
touch "$system$to/ready"
