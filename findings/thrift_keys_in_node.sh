#!/usr/bin/env bash
# Thrift in Node: two orders with exact IDs share one entry of a cache, because each ID is the text "Infinity".
#
# thrift 0.24.0 reads an i64 as an object of node-int64 0.4.0, which holds all 64 bits. As a text, and so as an object's key or in a
# template, every integer above 2^53 is "Infinity". `==` compares the objects themselves, so an ID does not equal itself read twice.
# Small IDs of a test work: 7 is the text "7".
# Remedy: `BigInt('0x' + id.toOctetString())`, or the type string in the .thrift file.
. "$(dirname "$0")/begin.sh"
npm_packages thrift@0.24.0 node-int64@0.4.0
cat > try.mjs <<'JS'
import Int64 from 'node-int64'
import thrift from 'thrift'

function sent(id) {
  let bytes
  const transport = new thrift.TBufferedTransport(undefined, (written) => (bytes = written))
  const writer = new thrift.TBinaryProtocol(transport)
  writer.writeI64(new Int64(BigInt(id).toString(16).padStart(16, '0')))
  writer.flush()
  return bytes
}

function received(bytes) {
  let id
  thrift.TBufferedTransport.receiver((transport) => (id = new thrift.TBinaryProtocol(transport).readI64()))(bytes)
  return id
}

const cache = {}
for (const text of ['7', '1541815603606036481', '1541815603606036482']) {
  const id = received(sent(text))
  cache[id] = `order ${text}`
  console.log(`${text}: the text ${id}, equal when read again: ${id == received(sent(text))}, bits ${id.toOctetString()}`)
}
console.log(cache)
JS
node try.mjs > seen
expect seen <<'SEEN'
7: the text 7, equal when read again: false, bits 0000000000000007
1541815603606036481: the text Infinity, equal when read again: false, bits 1565a11f6217a001
1541815603606036482: the text Infinity, equal when read again: false, bits 1565a11f6217a002
{ '7': 'order 7', Infinity: 'order 1541815603606036482' }
SEEN
