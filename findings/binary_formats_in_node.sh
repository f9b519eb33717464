#!/usr/bin/env bash
# A binary format with 64-bit integers does not help if its reader returns a double: two readers differ on the same nine bytes.
#
# MessagePack's `int 64` holds an ID exactly. msgpackr 2.1.4 returns a bigint, @msgpack/msgpack 3.1.3 a rounded number, unless
# `useBigInt64` is set. Amazon Ion holds integers of any size; ion-js 5.2.1 reads the ID, and its `JSON.stringify` prints a
# rounded one. avsc 5.7.9 (Avro's `long`) throws instead.
. "$(dirname "$0")/begin.sh"
npm_packages msgpackr@2.1.4 @msgpack/msgpack@3.1.3 ion-js@5.2.1 jsbi@3.1.1 avsc@5.7.9
cat > try.mjs <<'JS'
import { show } from './show.mjs'
import { unpack } from 'msgpackr'
import { decode } from '@msgpack/msgpack'
import ion from 'ion-js'
import avro from 'avsc'
const id = 1541815603606036481n
const packed = Buffer.alloc(9, 0xd3)
packed.writeBigInt64BE(id, 1)
// Avro writes a long in zigzag, seven bits a byte.
const bytes = []
for (let rest = id * 2n; rest; rest >>= 7n) bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0))
const readers = {
  msgpackr: () => unpack(packed),
  '@msgpack/msgpack': () => decode(packed),
  '@msgpack/msgpack, useBigInt64': () => decode(packed, { useBigInt64: true }),
  'ion-js, JSON.stringify': () => JSON.stringify(ion.load(`{id: ${id}}`)),
  avsc: () => avro.Type.forSchema('long').fromBuffer(Buffer.from(bytes))
}
show(readers)
JS
node try.mjs > seen
expect seen <<'SEEN'
msgpackr: bigint 1541815603606036481
@msgpack/msgpack: number 1541815603606036500
@msgpack/msgpack, useBigInt64: bigint 1541815603606036481
ion-js, JSON.stringify: string {"id":1541815603606036500}
avsc: an error
SEEN
