#!/usr/bin/env bash
# Sets of IDs as bitmaps: roaring-wasm keeps the low 32 bits of an added ID, and leaves it out of a list, both without an error.
#
# roaring-wasm 1.1.0 (Node) has sets of 32 bits alone. `add` of an ID adds a small number, which then is in the set, and the ID is not;
# `from` and `addMany` skip it. pyroaring 1.0.3 (Python) refuses an ID for its BitMap, and its BitMap64 keeps it.
# Remedy: a `Set` of texts or bigints in Node, or a bitmap of the rows' positions; BitMap64 in Python.
. "$(dirname "$0")/begin.sh"
npm_packages roaring-wasm@1.1.0
python_packages pyroaring==1.0.3
cat > sets.mjs <<'JS'
import { RoaringBitmap32, roaringLibraryInitialize } from 'roaring-wasm'

await roaringLibraryInitialize()
const id = Number(1765646837124341760n)
const added = new RoaringBitmap32()
added.add(id)
console.log(`add: ${added.toArray()}, has the ID: ${added.has(id)}`)
console.log(`from: ${RoaringBitmap32.from([id, 7]).toArray()}`)
const many = new RoaringBitmap32()
many.addMany([id, 7])
console.log(`addMany: ${many.toArray()}`)
JS
cat > sets.py <<'PY'
import pyroaring

for kind in (pyroaring.BitMap, pyroaring.BitMap64):
    try:
        print(f"{kind.__name__}: {list(kind([1765646837124341760]))}")
    except OverflowError:
        print(f"{kind.__name__}: an error")
PY
{ node sets.mjs && "$python" sets.py; } > seen
expect seen <<'SEEN'
add: 2375458816, has the ID: false
from: 7
addMany: 7
BitMap: an error
BitMap64: [1765646837124341760]
SEEN
