#!/usr/bin/env bash
# Short texts of IDs for URLs: Python makes a text of all digits, and the same library in Node reads another ID from it.
#
# sqids 0.5.2 for Python encodes an int of any size. sqids 0.3.0 for Node refuses to encode a number above 2^53, but decodes the text of
# one to a rounded number. base62 2.0.2 for Node has another alphabet than pybase62 1.0.0 (small letters before capital ones), and reads
# another, rounded number without an error. hashids 2.3.0 for Node returns a bigint with every digit of the text that hashids 1.3.1 for
# Python made. A link that a Python server sent then leads to no row, or to another one.
# Remedy: hashids, or a text of one written alphabet that is read as a bigint.
. "$(dirname "$0")/begin.sh"
npm_packages sqids@0.3.0 hashids@2.3.0 base62@2.0.2
python_packages sqids==0.5.2 hashids==1.3.1 pybase62==1.0.0
cat > try.py <<'PY'
import json

import base62
import hashids
import sqids

id = 1541815603606036481
print(json.dumps({"sqids": sqids.Sqids().encode([id]), "hashids": hashids.Hashids().encode(id), "base62": base62.encode(id)}))
PY
cat > try.mjs <<'JS'
import base62 from 'base62'
import Hashids from 'hashids'
import Sqids from 'sqids'
import { show } from './show.mjs'
const texts = JSON.parse(process.argv[2])
show({
  sqids: () => new Sqids().decode(texts.sqids)[0],
  'sqids, encode': () => new Sqids().encode([1541815603606036481n]),
  hashids: () => new Hashids().decode(texts.hashids)[0],
  base62: () => base62.decode(texts.base62),
})
JS
node try.mjs "$("$python" try.py)" > seen
expect seen <<'SEEN'
sqids: number 1541815603606036500
sqids, encode: an error
hashids: bigint 1541815603606036481
base62: number 1184264619657164500
SEEN
