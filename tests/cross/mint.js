'use strict'
// Mints half of the IDs after a line of input, and the other half after another line: mint.js SPEC COUNT FILE

const fs = require('node:fs')
const { createInterface } = require('node:readline')
const { Snowflake } = require('../../node')

async function main([spec, count, path]) {
  const ids = await Snowflake.open(spec)
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  /** Prints its place, and waits for a line. */
  const meet = place => {
    console.log(place)
    return lines.next()
  }
  const minted = new BigInt64Array(Number(count))
  const singles = minted.length / 2
  await meet('ready')
  for (let i = 0; i < singles; i++) minted[i] = BigInt(ids.next())
  await meet('half')
  for (let i = singles; i < minted.length; i += 1000) ids.fill(minted.subarray(i, Math.min(i + 1000, minted.length)))
  fs.writeFileSync(path, new Uint8Array(minted.buffer))
  process.stdin.destroy()
}

main(process.argv.slice(2))
