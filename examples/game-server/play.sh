#!/bin/sh
# Two game servers play, then their databases are merged, and the result is checked. Twice: with a number for each server, and with one
# number for both, by mistake.
# usage: play.sh [MINUTES]
# also read: CXX; FRAZIL, the command (frazil); PKG_CONFIG_PATH, where frazil.pc is
set -eu
here=$(cd "$(dirname "$0")" && pwd)
minutes=${1:-5}
: "${CXX:=c++}" "${FRAZIL:=frazil}"
folder=$(mktemp -d "${TMPDIR:-/tmp}/game-server-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "game-server: $1" >&2
    exit 1
}
ask() { # DATABASE SQL
    sqlite3 -batch -bail "$1" "$2"
}
# Audits both worlds, and keeps the exit status, which may be other than 0.
audit() {
    audited=0
    "$FRAZIL" merge-audit game eu.txt us.txt "$@" || audited=$?
}
play() { # EU'S NUMBER, US' NUMBER
    rm -rf merge-audit ./*.db
    ./server eu.db "$1" "$minutes"
    ./server us.db "$2" "$minutes"
    export_ids
}
export_ids() {
    for world in eu us; do ask $world.db 'SELECT id FROM items' > $world.txt; done
}
merge() {
    items=$(($(ask eu.db 'SELECT count(*) FROM items') + $(ask us.db 'SELECT count(*) FROM items')))
    mails=$(($(ask eu.db 'SELECT count(*) FROM mails') + $(ask us.db 'SELECT count(*) FROM mails')))
    ask eu.db "ATTACH 'us.db' AS us; BEGIN;
        INSERT INTO items SELECT * FROM us.items;
        INSERT INTO mails (item, sender) SELECT item, sender FROM us.mails;
        COMMIT"
    [ "$(ask eu.db 'SELECT count(*) FROM items')" = "$items" ] || fail "items were lost"
    # A mail goes with its own item, which the sender had found.
    found=$(ask eu.db 'SELECT count(*) FROM mails JOIN items ON items.id = mails.item AND items.player = mails.sender')
    [ "$found" = "$mails" ] || fail "$((mails - found)) mails of $mails lost their item"
    echo "merged: $items items, $mails mails, each with its item"
}

# With -Wl,-rpath the program finds the library where it was linked.
"$CXX" -std=c++17 -O2 -Wall -Wextra "$here/server.cpp" $(pkg-config --cflags --libs frazil sqlite3) \
    -Wl,-rpath,"$(pkg-config --variable=libdir frazil)" -o server

echo "== A number for each server: nothing is found, and the merge is an INSERT"
play 1 2
audit
[ "$audited" = 0 ] || fail "the audit ended with $audited, not 0"
merge

echo "== One number for both servers: what is there twice gets a new ID before the merge"
play 1 1
audit --remap 'game server=99' --dialect sqlite --apply-to items.id --apply-to mails.item
[ "$audited" = 3 ] || fail "the audit ended with $audited, not 3"
twice=$(ask eu.db "ATTACH 'us.db' AS us; SELECT count(*) FROM items JOIN us.items AS other USING (id)")
[ "$twice" -gt 0 ] || fail "two servers with one number made no ID twice"
[ "$(($(wc -l < merge-audit/remap.csv) - 1))" = "$twice" ] || fail "the remap has not one row for each of the $twice IDs"
sqlite3 -batch -bail us.db < merge-audit/remap-2.sql
mv merge-audit remapped
export_ids
# The number stays the same for both, so only duplicates are looked for now.
audit --shared-nodes
[ "$audited" = 0 ] || fail "after the remap the audit ended with $audited, not 0"
merge
echo "$twice items of the second server have new IDs"
