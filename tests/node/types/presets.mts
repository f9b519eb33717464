// The types of a preset's fields, as options and as parts. Each line under @ts-expect-error must not compile.
import { Buffered, Layout, Segment, Snowflake } from 'frazil'
import type { Composition, Fields, SnowflakeOptions, Parts, Preset, PresetFields } from 'frazil'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

const ids = new Snowflake('twitter', { datacenter: 1, worker: 'hostname+1', rollback: 'wait:5ms', maxWaitMs: 5 })
const typed: Snowflake<'twitter'> = ids
const parts = ids.layout.decode(ids.next())
export const numbers: number[] = [parts.worker, parts.datacenter, parts.sequence, parts.tick, parts.fields.worker, parts.node, ids.node, ids.fields.datacenter]
export const widths: number = ids.layout.fieldBits.datacenter
export const composed: string = ids.layout.compose({ time: 0, sequence: 0, datacenter: 1, worker: 1n })
export const same: [Same<typeof parts, Parts<'twitter'>>, Same<typeof parts.fields, Fields<'twitter'>>] = [true, true]

// A line that begins with the preset, and the calls that wait.
export const line: Snowflake<'twitter'> = new Snowflake('twitter datacenter=1 worker=7')
export const machine: number = new Snowflake('sonyflake machine=7').layout.decode('1').machine
export const opened: Promise<Snowflake<'game'>> = Snowflake.open('game', { server: 4711, signal: { aborted: false, addEventListener() {}, removeEventListener() {} } })
export const ring: Promise<number> = Buffered.open('standard', { node: 7, size: 64 }).then(ids => ids.layout.decode(ids.next()).node)
export const layout: number = new Layout('discord').decode('1').process

// If the compiler does not know the preset, any field is allowed.
const spec: string = 'layout="time:41@1ms shop:10 sequence:12"'
const any = new Snowflake(spec, { shop: 1 })
export const shop: number | bigint | undefined = any.layout.decode('1').fields['shop']
export const own = new Snowflake(undefined, { layout: new Layout('time:41@1ms shop:10 sequence:12'), shop: 1 })
export const written = new Snowflake('layout="time:41@1ms shop:10 sequence:12"', { shop: 1 }).layout.decode('1')['shop']

// A line that is composed, and a function that takes a preset.
export const composedLine: number = ((node: number) => new Snowflake(`standard node=${node}`).layout.decode('1').node)(1)
export const passed = <P extends Preset>(preset: P): Snowflake<P> => new Snowflake(preset)

// A preset's generator can be used where any generator is accepted.
const general: Snowflake = typed
export const generals: [Snowflake, Layout, Parts, Composition] = [general, ids.layout, parts, { time: 0, sequence: 0, datacenter: 1, worker: 1 } satisfies Composition<'twitter'>]
export const everyPreset: { [P in Preset]: PresetFields[P][] } = {
  standard: ['node'], twitter: ['datacenter', 'worker'], simple: ['worker', 'datacenter'], leaf: ['worker'], shardingsphere: ['worker'], baidu: ['worker'],
  sonyflake: ['machine'], discord: ['worker', 'process'], instagram: ['shard'], game: ['server'], game16: ['server'], js53: ['node'],
}

// A subclass: open takes the arguments of its constructor.
class Orders extends Snowflake<'twitter'> {
  constructor(readonly shop: number) {
    super('twitter', { datacenter: 1, worker: shop })
  }

  override next(): string {
    return `order-${this.shop}-${super.next()}`
  }
}
export const orders: Promise<Orders> = Orders.open(7)
class Counted extends Segment {
  override nextBigInt(): bigint {
    return super.nextBigInt() + 1n
  }
}
export const counted: Promise<Counted> = Counted.open('orders', { store: 'memory' })

const options: SnowflakeOptions<'twitter'> = { worker: 1 }
options.datacenter = 2

// @ts-expect-error: a preset that is nearly right
new Snowflake('standrd', { node: 1 })
// @ts-expect-error: a line that begins with no preset
new Snowflake('standrd node=1')
// @ts-expect-error: no layout of that name
new Layout('standrd')
// @ts-expect-error: a name that is nearly right
new Snowflake('twitter', { datacentre: 1, worker: 7 })
// @ts-expect-error: a key that is nearly right
new Snowflake('twitter', { rolback: 'error' })
// @ts-expect-error: a policy that does not exist
new Snowflake('twitter', { rollback: 'ignore' })
// @ts-expect-error: a duration without a unit
new Snowflake('twitter', { exhausted: 'ahead:5' })
// @ts-expect-error: a first sequence without its number
new Snowflake('twitter', { start: 'random' })
new Snowflake('twitter', { rollback: 'wait:5ms', exhausted: 'ahead', start: 'random:16', lag: 'env:LAG', clock: 'manual' })
// @ts-expect-error: another preset's field
Snowflake.open('game', { worker: 1 })
// @ts-expect-error: another preset's field, after a line
new Snowflake('twitter datacenter=1', { machine: 1 })
// @ts-expect-error: a field cannot be a boolean
new Snowflake('twitter', { worker: true })
// @ts-expect-error: another preset's part
parts.machine
// @ts-expect-error: another preset's part, among the fields
parts.fields.machine
// @ts-expect-error: parts are read-only
parts.worker = 1
// @ts-expect-error: a field is missing
ids.layout.compose({ time: 0, sequence: 0, worker: 1 })
// @ts-expect-error: a field too many
ids.layout.compose({ time: 0, sequence: 0, datacenter: 1, worker: 1, machine: 1 })
// @ts-expect-error: another preset's generator
export const wrong: Snowflake<'game'> = ids
// @ts-expect-error: another preset's parts
export const wrongParts: Parts<'game'> = parts
// @ts-expect-error: the constructor takes a number
Orders.open('seven')
// @ts-expect-error: a ring of another preset
Buffered.open('standard', { worker: 7 })
// @ts-expect-error: no such preset
export const none: PresetFields['twiter'] = 'worker'
