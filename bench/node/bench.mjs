// The cost of an ID in Node: frazil, the floors of the language, and its peers, in one run.
//
// Every number is the median of rounds that take turns, so that a slow second of the machine hits all cases alike. The table is Markdown.
// With FRAZIL_BENCH_JSON=<file> its rows are also written there, as [{ "case", "ns", "floor" }]. The floor is the cost of the parts of that
// call.
import { DiscordSnowflake } from '@sapphire/snowflake'
import { ObjectId } from 'bson'
import FlakeId from 'flake-idgen'
import { Buffered, Segment, Snowflake } from 'frazil'
import { uuid4, uuid7 } from 'frazil/uuid'
import { objectId } from 'frazil/objectid'
import { nanoid } from 'nanoid'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Snowflake as NodejsSnowflake } from 'nodejs-snowflake'
import { v4, v7 } from 'uuid'

// Many short rounds, because disturbances come and go.
const ROUNDS = 41
const CALLS = 20_000
const BLOCK = 1000
// Nearly all of a ring, which is full again when its turn comes again.
const BURST = 60_000
const SERVICE_SECONDS = 2
// Of the preset `standard`.
const IDS_PER_MS = 4096

// Room for a million IDs in a millisecond, so that the layout's cap does not hide the cost of a call.
const WIDE = 'layout="time:41@1ms node:2 sequence:20 epoch:2025-01-01"'
// Room for a billion in one tick, which the manual clock begins before every round: bulk is faster than any clock's cap.
const BULK = 'layout="time:31@1s node:2 sequence:30 epoch:2025-01-01" clock=manual detached=true'

// The floors of this design: one loop that does all the parts of a call, with the processor's counter for the clock.
const TEXT = 'raw function: counter, atomic, 19-character string'
const BIGINT = 'raw function: counter, atomic, BigInt'
const UUID = 'raw function: counter, atomic, 36-character string'
const SLICES = `one string of ${BLOCK} IDs, and its slices, per ID`
const FILL = `\`buffer.fill(1n)\` of ${BLOCK}, per ID`
const NEXT = '`ids.next()`'

const now = () => Number(process.hrtime.bigint())

/** An expression that makes `idsPerCall` IDs, compiled into its own loop: a shared call site goes polymorphic, and V8 shares those of one source. */
function makeCase(group, name, expression, { floor = undefined, idsPerCall = 1, calls = CALLS, ...names } = {}) {
  const source = `/* ${group}: ${name} */ return function (calls) { let last; for (let i = 0; i < calls; i++) { last = ${expression} } return last }`
  const loop = new Function(...Object.keys(names), source)(...Object.values(names))
  return { group, name, floor, loop, idsPerCall, calls, samples: [] }
}

function measure({ loop, calls, samples }) {
  const start = now()
  loop(calls)
  samples.push((now() - start) / calls)
}

const median = samples => [...samples].sort((a, b) => a - b)[samples.length >> 1]

function slices(text) {
  const array = new Array(BLOCK)
  for (let at = 0; at < BLOCK; at++) {
    array[at] = text.substring(at * 19, at * 19 + 19)
  }
  return array
}

async function cases(bulk) {
  const raw = createRequire(import.meta.url)('./floor.node')
  const ids = new Snowflake(WIDE, { node: 1 })
  const standard = await Snowflake.open('standard', { node: 1 })
  const segment = await Segment.open('bench', { store: 'memory', step: 1_000_000 })
  const ring = await Buffered.open(WIDE, { node: 2 })
  const standardRing = await Buffered.open('standard', { node: 2 })
  // Fewer than the 4,096 IDs that these peers have in a millisecond.
  const burst = { calls: 3000, floor: TEXT }
  const block = { idsPerCall: BLOCK, calls: 50 }
  const buffer = new BigInt64Array(BLOCK)
  return [
    makeCase('floor', 'an empty loop', 'i'),
    makeCase('floor', '`Date.now()`', 'Date.now()'),
    makeCase('floor', '`process.hrtime.bigint()`', 'bigint()', { bigint: process.hrtime.bigint }),
    makeCase('floor', 'raw function that does nothing', 'nothing()', raw),
    makeCase('floor', BIGINT, 'bigint()', raw),
    makeCase('floor', TEXT, 'text()', raw),
    makeCase('floor', 'the same with the system\'s clock', 'clockText()', raw),
    makeCase('floor', UUID, 'uuid()', raw),
    makeCase('floor', SLICES, 'slices(thousand())', { ...block, ...raw, slices }),
    makeCase('floor', FILL, 'buffer.fill(1n)', { ...block, buffer }),
    makeCase('frazil', NEXT, 'ids.next()', { floor: TEXT, ids }),
    makeCase('frazil', '`const f = ids.next; f()`', 'f()', { floor: TEXT, f: ids.next }),
    makeCase('frazil', '`ids.nextBigInt()`', 'ids.nextBigInt()', { floor: BIGINT, ids }),
    makeCase('frazil', "`ids.text('base62')`", "ids.text('base62')", { floor: TEXT, ids }),
    makeCase('frazil', `\`ids.batch(${BLOCK})\`, per ID`, `ids.batch(${BLOCK})`, { floor: SLICES, ...block, ids: bulk }),
    makeCase('frazil', `\`ids.batchBigInt(${BLOCK})\`, per ID`, `ids.batchBigInt(${BLOCK})`, { ...block, ids: bulk }),
    makeCase('frazil', `\`ids.fill(buffer)\` of ${BLOCK}, per ID`, 'ids.fill(buffer)', { floor: FILL, ...block, ids: bulk, buffer }),
    makeCase('frazil', '`segment.next()`', 'segment.next()', { floor: TEXT, segment }),
    makeCase('frazil', '`ring.next()` of a `Buffered`', 'ring.next()', { floor: TEXT, ring }),
    makeCase('frazil', `\`ids.next()\`, \`standard\`, ${BURST} in a row`, 'ids.next()', { calls: BURST, ids: standard }),
    makeCase('frazil', `\`ring.next()\`, \`standard\`, ${BURST} in a row`, 'ring.next()', { calls: BURST, ring: standardRing }),
    makeCase('frazil', '`uuid7()`', 'uuid7()', { floor: UUID, uuid7 }),
    makeCase('frazil', '`uuid4()`', 'uuid4()', { floor: UUID, uuid4 }),
    makeCase('frazil', '`objectId()`', 'objectId()', { floor: TEXT, objectId }),
    makeCase('peer', '@sapphire/snowflake, BigInt', 'peer.generate()', { ...burst, floor: BIGINT, peer: DiscordSnowflake }),
    makeCase('peer', '@sapphire/snowflake, string', 'String(peer.generate())', { ...burst, peer: DiscordSnowflake }),
    makeCase('peer', 'nodejs-snowflake, BigInt', 'peer.getUniqueID()', { ...burst, floor: BIGINT, peer: new NodejsSnowflake({ instance_id: 1 }) }),
    makeCase('peer', 'flake-idgen, Buffer', 'peer.next()', { ...burst, peer: new FlakeId({ worker: 1 }) }),
    makeCase('peer', 'bson `new ObjectId().toHexString()`', 'new ObjectId().toHexString()', { floor: TEXT, ObjectId }),
    makeCase('peer', '`crypto.randomUUID()`', 'randomUUID()', { floor: UUID, randomUUID }),
    makeCase('peer', 'uuid `v4()`', 'v4()', { floor: UUID, v4 }),
    makeCase('peer', 'uuid `v7()`', 'v7()', { floor: UUID, calls: CALLS / 10, v7 }),
    makeCase('peer', '`nanoid()`', 'nanoid()', { floor: TEXT, nanoid }),
  ]
}

/** Prints the table of costs. */
async function compare() {
  const bulk = new Snowflake(BULK, { node: 1 })
  const compared = await cases(bulk)
  let tick = Date.now()
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of compared) {
      // Each round of each case begins a new tick.
      bulk.setTime((tick += 1000))
      measure(each)
    }
  }

  const [loop] = compared
  const empty = median(loop.samples)
  const cost = each => (each === loop ? empty : Math.max(median(each.samples) - empty, 0) / each.idsPerCall)
  const of = name => cost(compared.find(each => each.name === name))
  const rows = compared.map(each => ({ ...each, ns: cost(each), under: each.floor && of(each.floor) }))
  console.log(`## Node ${process.version}: ns per ID, less the loop; medians of ${ROUNDS} rounds that take turns\n`)
  console.log('| | | ns | its floor | of its floor | of `ids.next()` |\n|---|---|---:|---:|---:|---:|')
  for (const { group, name, ns, under } of rows) {
    const [floor, times] = under ? [under.toFixed(1), (ns / under).toFixed(2)] : ['', '']
    console.log(`| ${group} | ${name} | ${ns < 10 ? ns.toFixed(2) : ns.toFixed(1)} | ${floor} | ${times} | ${(ns / of(NEXT)).toFixed(2)} |`)
  }
  if (process.env.FRAZIL_BENCH_JSON) {
    const round = ns => Math.round(ns * 100) / 100
    const json = rows.map(({ group, name, ns, under }) => ({ case: `${group}: ${name}`, ns: round(ns), floor: under ? round(under) : null }))
    writeFileSync(process.env.FRAZIL_BENCH_JSON, JSON.stringify(json, null, 2) + '\n')
  }
}

/** Prints what one process sustains on the default preset. */
function serve() {
  const ids = new Snowflake('standard', { node: 1 })
  // Rates of short windows, because a process that must wait for a processor loses a tick of IDs.
  const windows = []
  let count = 0
  let seconds = 0
  const before = process.cpuUsage()
  const start = performance.now()
  while (seconds < SERVICE_SECONDS) {
    const [began, sofar] = [seconds, count]
    while ((seconds = (performance.now() - start) / 1000) < began + 0.1) {
      for (let i = 0; i < 1000; i++) {
        ids.next()
      }
      count += 1000
    }
    windows.push((count - sofar) / (seconds - began))
  }
  const { user, system } = process.cpuUsage(before)

  const latencies = []
  const end = now() + SERVICE_SECONDS * 1e9
  for (let before = now(); before < end; ) {
    ids.next()
    const after = now()
    latencies.push(after - before)
    before = now()
  }
  const sorted = Float64Array.from(latencies).sort()
  const within = sorted.filter(latency => latency <= 2e6).length / sorted.length
  const rate = count / seconds

  console.log(`\n## Node: the service level, preset \`standard\`, one thread, ${SERVICE_SECONDS} s\n`)
  console.log('| | |\n|---|---:|')
  console.log(`| IDs per second, sustained (asked: 10,000) | ${Math.round(rate).toLocaleString('en')} |`)
  console.log(`| of the layout's cap (asked: 99.5 %), median of 100 ms | ${(median(windows) / IDS_PER_MS / 10).toFixed(2)} % |`)
  console.log(`| use of one processor | ${((user + system) / seconds / 1e4).toFixed(1)} % |`)
  for (const share of [0.5, 0.99, 0.999]) {
    const latency = sorted[Math.floor(sorted.length * share)]
    console.log(`| latency of \`ids.next()\`, p${+(share * 100).toFixed(1)} | ${(latency / 1000).toFixed(2)} us |`)
  }
  console.log(`| latency of \`ids.next()\`, max | ${(sorted.at(-1) / 1000).toFixed(2)} us |`)
  console.log(`| answers within 2 ms (asked: 99.9 %) | ${(within * 100).toFixed(4)} % |`)
  console.log(`| | ${rate >= 10_000 && within >= 0.999 ? 'met' : 'NOT MET'} |`)
}

await compare()
serve()
