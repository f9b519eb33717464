// Runs from a folder into which the packed package has been installed.
const assert = require('node:assert/strict')
const frazil = require('frazil')

const ids = new frazil.Snowflake('twitter', { datacenter: 1, worker: 7 })
const parts = ids.layout.decode(ids.next())
assert.deepEqual([parts.datacenter, parts.worker], [1, 7])
assert.throws(() => ids.batch(-1), frazil.FrazilError)
assert.equal(frazil.version, require('frazil/package.json').version)
console.log(Object.keys(frazil).sort().join())
