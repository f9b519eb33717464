#!/bin/sh
# Packs frazil-server as it is released, for TARGET, which is one of musl: build/package/server/frazil-server-VERSION-TARGET.tar.gz. The program
# is static, so that it runs on any Linux, and in an image without a libc. The crates that are linked into it are listed in the archive, and
# beside it; the archive has their licences.
set -eu
cd "$(dirname "$0")/.."
case ${TARGET:-} in
    *-linux-musl) ;;
    *) echo "TARGET=${TARGET:-} is no target of musl, as x86_64-unknown-linux-musl is" >&2; exit 2 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
from=$(LINK=static scripts/release-build.sh --package frazil-server --bin frazil-server)
name=frazil-server-$version-$TARGET out=build/package/server

rm -rf $out
python3 scripts/sbom.py "$out/$name.cdx.json" frazil-server
mkdir -p "$out/$name"
cp "$from/frazil-server" server/dist/frazil-server.service server/dist/frazil-server.socket LICENSE-MIT LICENSE-APACHE THIRD-PARTY-NOTICES.txt \
    "$out/$name/"
cp "$out/$name.cdx.json" "$out/$name/frazil-server.cdx.json"
python3 scripts/archive.py "$out/$name.tar.gz" $out "$name"
rm -r "${out:?}/$name"
