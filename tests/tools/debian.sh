#!/usr/bin/env bash
# Makes folders with a release of Debian, and runs commands in them as root. Their packages never meet this system's own libraries.
# usage: tests/tools/debian.sh make FOLDER RELEASE PACKAGE,... [VARIANT [ARCHITECTURE]]: unless the folder has these packages already
#        tests/tools/debian.sh mirror: prints the mirror of this system's own packages, or nothing if it is not Debian
#        tests/tools/debian.sh run FOLDER [FROM:TO]... -- COMMAND...: FROM is mounted at TO, which is a path within the folder
#        tests/tools/debian.sh try FOLDER [FROM:TO]... -- COMMAND...: the same, but nothing in the folder changes
set -euo pipefail

mirror() { apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -n 1; }

make() {
    local folder=$1 release=$2 packages=$3 variant=${4:-minbase} architecture=${5:-} from
    mkdir -p "$(dirname "$folder")"
    # Another run may be making it.
    exec 9> "$folder.lock"
    flock 9
    [ "$(cat "$folder/ready" 2> /dev/null)" != "$packages" ] || return 0
    echo "== Debian's release $release${architecture:+ for $architecture}, in $folder"
    command -v mmdebstrap > /dev/null || apt-get -qq install --yes --no-install-recommends mmdebstrap debian-archive-keyring
    from=$(mirror)
    rm -rf --one-file-system "${folder:?}"
    # A mirror's Release file may be old. After an interruption, nothing stays mounted in the folder.
    unshare --mount mmdebstrap --quiet --skip=cleanup/apt --variant="$variant" ${architecture:+"--arch=$architecture"} --include="$packages" \
        --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io "$release" "$folder" ${from:+"deb $from $release main"}
    mkdir -p "$folder/etc/ssl/certs"
    cp /etc/hosts /etc/resolv.conf "$folder/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"
    echo "$packages" > "$folder/ready"
}

# The mounts end with the command, and so do the changes of `try`, which are in memory.
run() {
    # shellcheck disable=SC2016
    exec unshare --mount --pid --fork --kill-child bash -euc '
        root=$2
        if [ "$1" = try ]; then
            memory=$root/mnt
            mount -t tmpfs tmpfs "$memory"
            mkdir "$memory/changes" "$memory/work" "$memory/root"
            mount -t overlay overlay -o "lowerdir=$root,upperdir=$memory/changes,workdir=$memory/work" "$memory/root"
            root=$memory/root
        fi
        shift 2
        mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/tmp" -o mode=1777
        while [ "$1" != -- ]; do
            mkdir -p "$root${1##*:}"
            mount --bind "${1%:*}" "$root${1##*:}"
            shift
        done
        shift
        exec chroot "$root" "$@"' debian "$@"
}

case ${1:-} in
    mirror) mirror ;;
    make) make "${@:2}" ;;
    run | try) run "$@" ;;
    *) echo 'usage: tests/tools/debian.sh mirror | make FOLDER RELEASE PACKAGE,... | run FOLDER -- COMMAND... | try FOLDER -- COMMAND...' >&2; exit 2 ;;
esac
