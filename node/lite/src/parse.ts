// A layout's text: the fields from the most significant, then the epoch; or a preset's name.
import { refuse, shown } from './error.js'
import type { Field, Shape } from './shape.js'
import { presets, reserved } from './tables.js'
import { parseDuration, parseEpoch, showDuration, showEpoch, showSpan } from './time.js'

const ID_BITS = 63
const LONGEST_NAME = 32
const LONGEST_TICK_MS = 3_600_000

export function parseLayout(given: string): Shape {
  // `trim` would also remove a byte order mark.
  const text = given.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
  if (!text.includes(':')) {
    return parseLayout(presetOf(text))
  }
  let time: { timeBits: number; tickMs: number } | undefined
  let epochMs: number | undefined
  const fields: Field[] = []
  for (const token of text.split(/[ \t\n\f\r]+/)) {
    const [name, value] = splitOnce(token, ':')
    if (value === undefined) {
      return invalid(`${shown(token)} has no bits: say name:bits`)
    }
    if (epochMs !== undefined) {
      return invalid('epoch comes last, and once')
    }
    if (!time) {
      if (name !== 'time') {
        return invalid(`the first field is ${shown(name)}, but an ID begins with its time: time:41@1ms`)
      }
      time = parseTime(value)
    } else if (name === 'epoch') {
      epochMs = parseEpoch(value)
    } else {
      checkName(name)
      if (fields.some(field => field.name === name)) {
        return invalid(`the field ${name} is given twice`)
      }
      fields.push({ name, bits: parseBits(name, value) })
    }
  }
  if (!time || epochMs === undefined) {
    return invalid('its epoch is missing: say epoch:2025-01-01, the instant at which its time begins')
  }
  const shape = { ...time, epochMs, fields }
  checkWidth(shape)
  if (!fields.some(field => field.name === 'sequence')) {
    return invalid('its sequence is missing: say sequence:12, the counter within a tick')
  }
  return shape
}

/** The canonical text. */
export function showLayout({ timeBits, tickMs, epochMs, fields }: Shape): string {
  return [`time:${timeBits}@${showDuration(tickMs)}`, ...fields.map(({ name, bits }) => `${name}:${bits}`), `epoch:${showEpoch(epochMs)}`].join(' ')
}

function invalid(why: string): never {
  return refuse('LAYOUT_INVALID', `the layout is invalid: ${why}`)
}

function presetOf(name: string): string {
  const names = Object.keys(presets)
  if (!names.includes(name)) {
    refuse('SPEC', `there is no preset ${shown(name)}; there are: ${names.join(', ')}; or give layout="time:41@1ms ..."`)
  }
  return presets[name]!
}

function splitOnce(text: string, at: string): [string, string | undefined] {
  const place = text.indexOf(at)
  return place < 0 ? [text, undefined] : [text.slice(0, place), text.slice(place + 1)]
}

function parseTime(value: string): { timeBits: number; tickMs: number } {
  const [bits, tick] = splitOnce(value, '@')
  if (tick === undefined) {
    return invalid(`time:${shown(value)} has no tick: say time:41@1ms`)
  }
  const tickMs = parseDuration(tick)
  if (tickMs === undefined) {
    return invalid(`its tick: time=${shown(tick)} is not a duration: an integer and ms, s, m or h, up to ten years, such as 10ms`)
  }
  if (tickMs < 1 || tickMs > LONGEST_TICK_MS) {
    return invalid(`a tick of ${shown(tick)} is out of range: 1ms to 1h`)
  }
  return { timeBits: parseBits('time', bits), tickMs }
}

function parseBits(name: string, text: string): number {
  const bits = /^\d{1,3}$/.test(text) ? Number(text) : 0
  return bits >= 1 && bits <= ID_BITS ? bits : invalid(`${name}:${shown(text)} is not a width: 1 to ${ID_BITS} bits`)
}

function checkName(name: string): void {
  if (name.length > LONGEST_NAME || !/^[a-z][a-z0-9_]*$/.test(name)) {
    invalid(`${shown(name)} is not a name: a-z, then a-z, 0-9 and _, at most ${LONGEST_NAME}`)
  }
  if (name !== 'sequence' && reserved.includes(name)) {
    invalid(`${name} is a reserved name: call the field something else`)
  }
}

/** Refuses more bits than an ID has. The error lists what the bits of each field give. */
function checkWidth({ timeBits, tickMs, fields }: Shape): void {
  const needed = fields.reduce((sum, { bits }) => sum + bits, timeBits)
  if (needed <= ID_BITS) {
    return
  }
  const tick = showDuration(tickMs)
  const parts = [`time ${timeBits}`, ...fields.map(({ name, bits }) => `${name} ${bits}`)]
  const buys = [`${timeBits} bits of ${tick} last ${showSpan(2 ** timeBits * tickMs)}`]
  for (const { name, bits } of fields) {
    const count = 1n << BigInt(bits)
    buys.push(name === 'sequence' ? `${bits} of sequence are ${count} IDs per ${tick}` : `${bits} of ${name} are ${count} nodes`)
  }
  invalid(`it needs ${needed} bits (${parts.join(' + ')}) and an ID has ${ID_BITS}, so ${needed - ID_BITS} must go: ${buys.join(', ')}`)
}
