#!/bin/sh
# Packs the released frazil-server for TARGET, a musl target, into build/package/server/frazil-server-VERSION-TARGET.tar.gz. The program is
# static, so it runs on any Linux, also in an image without a libc. A list of its crates is in the archive and beside it. The archive also
# has their licences.
set -eu
cd "$(dirname "$0")/.."
case ${TARGET:-} in
    *-linux-musl) ;;
    *) echo "TARGET=${TARGET:-} is not a musl target: use for example x86_64-unknown-linux-musl" >&2; exit 2 ;;
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
