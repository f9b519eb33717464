#!/usr/bin/env bash
# Builds the core, the bindings and the release's packages for other systems in a folder with Debian's unstable release, and runs their
# tests: Windows under Wine, arm64 and 32-bit ARM under QEMU, musl with its own loader. The packages for macOS are only inspected.
# The last lines are a table of the suites that ran, those left out, and the reasons.
# usage: tests/platforms/run.sh [windows | arm64 | arm | musl | macos | check | quick]...
#        quick: the core on Windows, for `make test`; takes about two minutes once it is built
#        needs root and Debian; FRAZIL_PLATFORMS is the folder (~/.cache/frazil/platforms), 15 GB, made once in about 12 minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${FRAZIL_PLATFORMS:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/platforms}
wanted=${*:-windows arm64 arm musl macos check}
# Only compiled, not run.
checked='aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-msvc aarch64-pc-windows-msvc x86_64-unknown-freebsd
    riscv64gc-unknown-linux-gnu wasm32-wasip1'

for part in $wanted; do
    case $part in
        windows | arm64 | arm | musl | macos | check | quick) ;;
        *) echo "$part is none of: windows arm64 arm musl macos check quick" >&2; exit 2 ;;
    esac
done
if [ "$(id -u)" != 0 ]; then
    echo "make platforms needs root, because it makes a separate system in $folder" >&2
    exit 1
fi
mkdir -p "$folder/logs" "$folder/tree"
exec 9> "$folder/lock"
flock -n 9 || { echo "Waiting for another run in $folder" >&2; flock 9; }
tests/platforms/folder.sh "$folder"

# A copy of the tree, whose `build` stays, because the tests and the packages of other systems write into it.
find "$folder/tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar --create --null --ignore-failed-read --files-from - 2> /dev/null | tar x -C "$folder/tree"
node "$folder/tree/node/modules.mjs"

# In a user namespace with all accounts, the kernel has its own rule that runs ARM programs with QEMU. It ends with this script.
unshare --user tail --pid=$$ --follow /dev/null 9>&- &
namespace=$!
until [ "$(readlink /proc/$namespace/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
echo '0 0 4294967295' > /proc/$namespace/uid_map
echo '0 0 4294967295' > /proc/$namespace/gid_map

# The time of the tree's last commit, because its copy has no history.
changed=$(git log -1 --format=%ct)

# Runs a command within the folder's system of x86-64, arm64 or 32-bit ARM. The mounts end with the command, and the command with this
# script. RUSTC_BOOTSTRAP makes a stable cargo accept -Zbuild-std.
within() { # sid|arm64|arm COMMAND
    # shellcheck disable=SC2016
    nsenter --user --target $namespace setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child bash -c '
        root=$1/$2
        # The root must be a mount, because tests mount file systems.
        mount --rbind "$root" "$root"
        mount --bind "$1/tree" "$root/frazil"
        mount --bind "$1/sid/build" "$root/build"
        mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"
        mount -t binfmt_misc binfmt_misc "$root/proc/sys/fs/binfmt_misc"
        # The kernel detects a program by its ELF header: the class (64 or 32 bits), the kind (2, or 3 if relocatable) and the machine.
        for rule in aarch64:02:b7 arm:01:28; do
            IFS=: read -r name class machine <<< "$rule"
            printf "%s" ":$name:M::\x7fELF\x$class\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x$machine\x00:$4:$1/sid/usr/bin/qemu-$name:FPC" \
                > "$root/proc/sys/fs/binfmt_misc/register"
        done
        exec chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 CARGO_HOME=/cargo \
            CARGO_TARGET_DIR=/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind,test \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt WINEPREFIX=/root/wine WINEDEBUG=-all XDG_RUNTIME_DIR=/tmp \
            SOURCE_DATE_EPOCH="$5" RUSTFLAGS="-D warnings" bash -c "cd /frazil && $3"' \
        platforms "$folder" "$1" "$2" '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' "$changed" < /dev/null
}

# Removes the files of an interrupted run. Each run has the same process IDs, so the file names would be taken.
rm -rf "$folder"/sid/root/wine/drive_c/users/*/AppData/Local/Temp/frazil-*

table=() failed=0
row() { # TARGET SUITE SYSTEM COMMAND
    local log="$folder/logs/$1-$2.log" status=0 result begun=$SECONDS
    echo "== $1: $2"
    within "$3" "$4" > "$log" 2>&1 || status=$?
    result=$(grep -ao 'test result: .* ignored' "$log" | sed 's/test result: [a-zA-Z]*\. //; s/;/,/g' | tail -1 || true)
    [ -n "$result" ] || result='built without a warning'
    if [ $status != 0 ]; then
        failed=1 result="FAILED, see $log"
    fi
    table+=("$(printf '%-30s %-9s %4d s   %s' "$1" "$2" $((SECONDS - begun)) "$result")")
    return $status
}
rows() { # TARGET SYSTEM SCRIPT SUITE...
    local target=$1 system=$2 script=$3 suite
    shift 3
    # After a failed build, the programs of an earlier build would run.
    row "$target" build sid "tests/platforms/$script build $target" || { tail -20 "$folder/logs/$target-build.log" >&2; return; }
    for suite; do row "$target" "$suite" "$system" "tests/platforms/$script $suite $target" || true; done
}

core='core fresh guard interop process stats values' processes='leases segments worker waits pending observe'
for part in $wanted; do
    case $part in
        windows) rows x86_64-pc-windows-gnu sid windows.sh $core cli command kills c python node server ;;
        quick) rows x86_64-pc-windows-gnu sid windows.sh core values ;;
        arm64) rows aarch64-unknown-linux-gnu arm64 linux.sh $core $processes c python node ;;
        arm)
            rows armv7-unknown-linux-gnueabihf arm linux.sh $core $processes c python node
            rows armv7-unknown-linux-musleabihf arm linux.sh c ;;
        musl)
            rows x86_64-unknown-linux-musl sid linux.sh $core $processes c python node server
            rows aarch64-unknown-linux-musl arm64 linux.sh c node server ;;
        macos) for target in aarch64-apple-darwin x86_64-apple-darwin; do rows $target sid macos.sh inspect; done ;;
        check)
            for target in $checked; do
                # On WASI there are no stores and no command line.
                features=admin
                [ "$target" != wasm32-wasip1 ] || features=
                row "$target" check sid "cargo check -q --locked --target $target -p frazil --features '$features'" || true
            done ;;
    esac
done

printf '\n'
printf '%s\n' "${table[@]}"
printf '\nLeft out:\n'
grep -v '^#' tests/platforms/left-out | sed 's/^/    /'
echo "Not built for Windows: the tests of leases, segments and workers over real processes (core/tests: cfg(unix)), the server."
echo "No system here runs what is for macOS, or is only checked."
exit $failed
