// Uses the package, and prints the results, which are equal in each runtime.
const { join } = require('node:path')

module.exports = async function body({ FrazilError, Snowflake }, { snowflakeId }, { Worker }) {
  const ids = await Snowflake.open('standard', { store: 'local' })
  const made = [ids.next(), ...ids.batch(1000), await ids.nextAsync(), ...await ids.batchAsync(10_000)]

  // A thread of the same process leases.
  const worker = new Worker(join(__dirname, 'worker.cjs'))
  const fromWorker = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  made.push(...fromWorker)

  // At two IDs a second, the third one waits, without blocking the event loop.
  const slow = await Snowflake.open('exhausted=wait:30s', { layout: 'time:31@1s node:31 sequence:1 epoch:2025-01-01', node: 1, detached: true })
  let turns = 0
  const timer = setInterval(() => { turns++ }, 5)
  await slow.batchAsync(4)
  clearInterval(timer)
  const signal = AbortSignal.timeout(20)
  const cancelled = await slow.batchAsync(100, { signal }).catch(error => error.name)

  let thrown
  try {
    new Snowflake('standard', { node: 5000 })
  } catch (error) {
    thrown = error
  }
  await ids.closeAsync()
  let closed
  try {
    ids.next()
  } catch ({ code }) {
    closed = code
  }
  const numbers = made.map(BigInt)
  console.log(JSON.stringify({
    runtime: process.versions.deno ? 'Deno' : process.versions.bun ? 'Bun' : 'Node',
    unique: new Set(made).size,
    ascending: numbers.slice(0, 11_002).every((id, at) => at === 0 || id > numbers[at - 1]),
    node: made.every(id => ids.layout.decode(id).node >= 0),
    code: thrown.code,
    ours: thrown instanceof FrazilError,
    schema: snowflakeId()['~standard'].validate('7').value,
    closed,
    worker: fromWorker.length === 11,
    waited: turns > 0,
    cancelled,
  }))
}
