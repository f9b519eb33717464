#!/usr/bin/env bash
# Publishes the release in build/package. Skips what is published already, so that a release that failed half-way can be run again.
# usage: scripts/publish.sh crates | npm | sums | image NAME | page TAG
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

case ${1:-} in
    # Each crate is published before the crates that depend on it.
    crates)
        for crate in frazil-base frazil-store frazil frazil-cli; do
            cargo info --quiet --registry crates-io "$crate@$version" > /dev/null || cargo publish --locked --package "$crate"
        done ;;
    # The platform packages are published before the main package, which depends on them.
    npm)
        for package in build/package/node/frazil-[a-z]*.tgz build/package/node/frazil-[0-9]*.tgz; do
            name=$(tar -xOzf "$package" package/package.json | python3 -c 'import json, sys; its = json.load(sys.stdin); print(its["name"] + "@" + its["version"])')
            npm view "$name" version 2> /dev/null | grep -q . || npm publish --access public "$package"
        done ;;
    # Checksums of the files that users download from the release's page.
    sums)
        (cd build/package && for folder in c server engines crates; do (cd "$folder" && sha256sum -- *); done) > build/package/SHA256SUMS ;;
    # One image for both processors. Nothing runs during the build, so no processor is emulated.
    image)
        layout=$(mktemp -d)
        for machine in x86_64:amd64 aarch64:arm64; do
            mkdir "$layout/${machine#*:}"
            tar -xzf build/package/server/frazil-server-"$version-${machine%:*}"-unknown-linux-musl.tar.gz -C "$layout/${machine#*:}" --strip-components=1
        done
        docker login ghcr.io --username "$GITHUB_ACTOR" --password-stdin <<< "$GH_TOKEN"
        docker buildx create --use
        docker buildx build --push --platform linux/amd64,linux/arm64 --tag "$2:$version" --tag "$2:latest" \
            --file server/dist/Containerfile.release "$layout" ;;
    page)
        gh release view "$2" > /dev/null || gh release create "$2" --verify-tag --generate-notes \
            build/package/{c,server,engines,crates}/* build/package/SHA256SUMS ;;
    *) echo 'usage: scripts/publish.sh crates | npm | sums | image NAME | page TAG' >&2; exit 2 ;;
esac
