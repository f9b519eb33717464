// Mints IDs with one library: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE, as trial/README.md says.
import { closeSync, openSync, writeSync } from 'node:fs'

const still = new Int32Array(new SharedArrayBuffer(4))
const sleep = seconds => seconds && Atomics.wait(still, 0, 0, seconds * 1000)
const monotonic = () => performance.now() / 1000

// An ID as a BigInt: libraries return a bigint, a number, a decimal string or eight bytes.
const exact = id => (Buffer.isBuffer(id) ? id.readBigUInt64BE() : BigInt(id))

const nameOf = error => error.code ?? error.message.replaceAll(/\d+/g, 'N')

// Mints up to `count` IDs for up to `seconds`, and writes them to a file. An error is counted, and the call repeated.
function mint(generators, nextId, count, seconds, pause, path) {
  const errors = {}
  const file = openSync(path, 'w')
  let longest = 0
  let last = monotonic()
  for (const end = last + seconds; count > 0 && last < end; ) {
    const wanted = Math.min(count, pause ? 10 : 1000)
    const ids = new BigUint64Array(wanted)
    let n = 0
    try {
      for (; n < wanted; n++) ids[n] = exact(nextId(generators[n % generators.length]))
    } catch (error) {
      const name = nameOf(error)
      errors[name] = (errors[name] ?? 0) + 1
    }
    sleep(pause)
    writeSync(file, new Uint8Array(ids.buffer, 0, n * 8))
    count -= n
    const now = monotonic()
    longest = Math.max(longest, now - last)
    last = now
  }
  closeSync(file)
  console.log(JSON.stringify({ errors, longest: Math.round(longest * 1000) / 1000 }))
}

// Runs the program's command line with a library's two functions.
export async function run(open, nextId) {
  const [way, node, count, seconds, pause, path] = process.argv.slice(2)
  const generators = []
  try {
    for (let n = way === 'two' ? 2 : 1; n > 0; n--) generators.push(await open(Number(node)))
  } catch (error) {
    console.log(JSON.stringify({ errors: { [nameOf(error)]: 1 }, longest: 0 }))
    return
  }
  if (way === 'json') {
    const ids = Array.from({ length: Number(count) }, () => nextId(generators[0]))
    let json
    try {
      json = JSON.stringify(ids)
    } catch (error) {
      console.log(JSON.stringify({ errors: { [nameOf(error)]: 1 } }))
      return
    }
    console.log(JSON.stringify({ json, exact: ids.map(id => String(exact(id))) }))
  } else {
    mint(generators, nextId, Number(count), Number(seconds), Number(pause), path)
  }
}
