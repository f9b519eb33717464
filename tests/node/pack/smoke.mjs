// Runs from a folder into which the packed package has been installed.
import assert from 'node:assert/strict'
import * as frazil from 'frazil'

const ids = await frazil.Snowflake.open('sonyflake', { machine: 7 })
assert.equal(ids.layout.decode(await ids.nextAsync()).machine, 7)
assert.throws(() => ids.batch(-1), frazil.FrazilError)
console.log(Object.keys(frazil).sort().join())
