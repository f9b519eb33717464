#!/usr/bin/env bash
# A step of the release workflow on one platform: TARGET, or this machine. The workflow only has the order of the steps.
# usage: [TARGET=triple] scripts/release.sh STEP
#   build                  builds the packages into build/package, and prints their sizes
#   try                    installs and runs them: for musl in containers of Alpine, for 32-bit ARM under QEMU
#   free-threaded PYTHON.. builds the wheels of free-threaded Pythons, in place of the others
#   leave                  removes the packages that are equal on all platforms, because another platform publishes them
#   crates                 lists the crates that the command line of crates.io is linked with
#   engines [FOLDER]       packs the C libraries of all platforms for .NET and game engines: those in FOLDER/c, which is build/package, into
#                          FOLDER/engines
#   try-engines            checks these packages by the rules of their formats
#   check-tag TAG          fails unless the tag is v and the version
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
export TARGET
first=x86_64-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

case ${1:-} in
    build)
        c-api/package.sh
        python/package.sh
        node/package.sh
        # The server is linked statically, which only musl allows.
        case $TARGET in *-linux-musl) server/package.sh ;; esac
        python3 scripts/sizes.py build/package ;;
    try)
        case $TARGET in
            "$first")
                sudo env "PATH=$PATH" "HOME=$HOME" scripts/setup.sh --package
                python/build.sh
                FRAZIL_PACKAGES=build/package .venv/bin/python -m pytest -q tests/package ;;
            *-linux-musl* | armv7-*)
                image=slim platform=()
                case $TARGET in *-musl*) image=alpine ;; esac
                case $TARGET in
                    armv7-*)
                        # The kernel runs ARM programs with QEMU. Node 22 is the last version with musl for this processor.
                        sudo apt-get -qq update
                        sudo apt-get -qq -o DPkg::Lock::Timeout=600 install --yes qemu-user-static
                        platform=(--platform linux/arm/v7) ;;
                esac
                for tried in python:3.13 node:22; do
                    docker run --rm "${platform[@]}" --volume "$PWD:/frazil:ro" "$tried-$image" /frazil/scripts/smoke.sh "${tried%:*}"
                done
                case $TARGET in *-linux-musl) scripts/smoke.sh server ;; esac ;;
            *)
                scripts/smoke.sh python
                scripts/smoke.sh node ;;
        esac ;;
    free-threaded) python/package.sh --features free-threaded --interpreter "${@:2}" ;;
    leave) [ "$TARGET" = "$first" ] || rm build/package/python/*.tar.gz build/package/node/frazil-[0-9]*.tgz ;;
    crates) TARGET=all python3 scripts/sbom.py "build/package/crates/frazil-cli-$version.cdx.json" frazil-cli ;;
    engines)
        folder=$(cd "${2:-build/package}" && pwd)
        packed=$folder/engines platforms=() lists=()
        out=$(mktemp -d)
        trap 'rm -rf "$out"' EXIT
        rm -rf "$packed"
        mkdir "$packed"
        for archive in "$folder"/c/frazil-"$version"-*.tar.gz; do
            name=${archive##*/} name=${name%.tar.gz}
            case $name in *-lean) continue ;; esac
            tar -xzf "$archive" -C "$out"
            target=${name#"frazil-$version-"}
            platforms+=("$target=$out/$name")
            # zig links the extensions for Godot on other platforms.
            [ "$target" = "$TARGET" ] || scripts/release-tools.sh
            lists+=("${archive%.tar.gz}.cdx.json")
        done
        PATH=$PWD/build/tools/bin:$PATH packaging/engines.sh "$out" "${platforms[@]}"
        mv "$out/nuget/Frazil.$version.nupkg" "$packed"
        # Unity reads an archive as npm packs one. Projects for the other engines contain the folder itself.
        mv "$out/unity" "$out/package"
        python3 scripts/archive.py "$packed/frazil-unity-$version.tgz" "$out" package
        for engine in godot unreal; do
            python3 scripts/archive.py "$packed/frazil-$engine-$version.zip" "$out/$engine"
        done
        python3 scripts/sbom.py "$packed/frazil-engines-$version.cdx.json" --merge "${lists[@]}" ;;
    try-engines)
        python3 -m venv build/checks
        build/checks/bin/python -m pip install --quiet --disable-pip-version-check "$(grep '^pytest==' tests/python/requirements.txt)"
        FRAZIL_PACKAGES=build/package build/checks/bin/python -m pytest -q -rs tests/package/test_engines.py ;;
    check-tag)
        [ "${2:-}" = "v$version" ] || { echo "the tag ${2:-} is not v$version, the version in Cargo.toml" >&2; exit 1; } ;;
    *) echo 'usage: scripts/release.sh build | try | free-threaded PYTHON... | leave | crates | engines [FOLDER] | try-engines | check-tag TAG' >&2; exit 2 ;;
esac
