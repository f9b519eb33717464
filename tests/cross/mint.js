'use strict'
// Mints IDs from a given instant on: mint.js SPEC COUNT START_UNIX_MS FILE

const fs = require('node:fs')
const { Snowflake } = require('../../node')

async function main([spec, count, start, path]) {
  const ids = await Snowflake.open(spec)
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, Number(start) - Date.now())))
  const minted = new BigInt64Array(Number(count))
  const singles = minted.length / 2
  for (let i = 0; i < singles; i++) minted[i] = BigInt(ids.next())
  for (let i = singles; i < minted.length; i += 1000) ids.fill(minted.subarray(i, Math.min(i + 1000, minted.length)))
  fs.writeFileSync(path, new Uint8Array(minted.buffer))
}

main(process.argv.slice(2))
