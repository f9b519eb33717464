// The libraries of the trial: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE. Each function imports a library, and returns two functions: one
// opens a generator with a number, the other mints an ID.
import { run } from './trial.mjs'

// frazil, a fixed number.
async function frazil_fixed() {
  const { Snowflake } = await import('frazil')
  return [node => Snowflake.open('standard', { node }), ids => ids.next()]
}

// frazil, a number leased from the folder store.
async function frazil_leased() {
  const { Snowflake } = await import('frazil')
  return [() => Snowflake.open('standard', { store: 'local' }), ids => ids.next()]
}

// @akashrajpurohit/snowflake-id: the generator of its page's first example.
async function akashrajpurohit() {
  const { SnowflakeId } = await import('@akashrajpurohit/snowflake-id')
  return [workerId => SnowflakeId({ workerId, epoch: 1597017600000 }), ids => ids.generate()]
}

// flake-idgen: the generator of its page's first example, with a number.
async function flake_idgen() {
  const { default: FlakeId } = await import('flake-idgen')
  return [node => new FlakeId({ id: node }), ids => ids.next()]
}

// nodejs-snowflake: the generator of its page's first example, with an epoch and a number.
async function nodejs_snowflake() {
  const { Snowflake } = await import('nodejs-snowflake')
  return [node => new Snowflake({ custom_epoch: 1577836800000, instance_id: node }), ids => ids.getUniqueID()]
}

// @sapphire/snowflake: the generator of its page's first example, with a process number.
async function sapphire() {
  const { Snowflake } = await import('@sapphire/snowflake')
  return [node => Object.assign(new Snowflake(new Date('2000-01-01T00:00:00.000Z')), { processId: node }), ids => ids.generate()]
}

// simple-flakeid: the class that the package exports, and the call that its page says always returns a bigint.
async function simple_flakeid() {
  const { SnowflakeIdv1 } = await import('simple-flakeid')
  return [node => new SnowflakeIdv1({ workerId: node }), ids => ids.NextBigId()]
}

// snowflake-uuid: the generator of its page's example.
async function snowflake_uuid() {
  const { Worker } = await import('snowflake-uuid')
  return [node => new Worker(node, 1, { workerIdBits: 5, datacenterIdBits: 5, sequenceBits: 12 }), ids => ids.nextId()]
}

// snowyflake: the generator of its page's example.
async function snowyflake() {
  const { Epoch, Snowyflake } = await import('snowyflake')
  return [node => new Snowyflake({ workerId: BigInt(node), epoch: Epoch.Twitter }), ids => ids.nextId()]
}

// tsid-ts: a generator with a node number, and the ID as a bigint.
async function tsid_ts() {
  const { TSIDGenerator } = await import('tsid-ts')
  return [node => new TSIDGenerator(node), ids => ids.create().toBigInt()]
}

const LIBRARIES = {
  frazil_fixed, frazil_leased, akashrajpurohit, flake_idgen, nodejs_snowflake, sapphire, simple_flakeid, snowflake_uuid, snowyflake, tsid_ts,
}

const [name] = process.argv.splice(2, 1)
await run(...await LIBRARIES[name]())
