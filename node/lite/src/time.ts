// Durations and instants as text. Instants are Unix milliseconds.
import { refuse, shown } from './error.js'

/** 0001-01-01 and 9999-12-31T23:59:59.999: the dates that every language can represent. */
const FIRST_MS = -62_135_596_800_000
export const LAST_MS = 253_402_300_799_999

/** 1990-01-01: an integer below it was most likely meant as seconds. */
const FIRST_INTEGER_EPOCH_MS = 631_152_000_000

/** A year of 365.2425 days. */
const YEAR_MS = 31_556_952_000

const UNITS: [number, string][] = [[3_600_000, 'h'], [60_000, 'm'], [1_000, 's'], [1, 'ms']]
const SPANS: [number, string][] = [[YEAR_MS, 'years'], [86_400_000, 'days'], [3_600_000, 'hours'], [60_000, 'minutes']]

/** Parses `5s`: an integer and ms, s, m or h, up to ten years. */
export function parseDuration(text: string): number | undefined {
  const [, digits, name] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? []
  const ms = Number(digits) * (UNITS.find(([, unit]) => unit === name)?.[0] ?? NaN)
  return ms <= 10 * YEAR_MS ? ms : undefined
}

/** Prints a duration in the largest unit that divides it. */
export function showDuration(ms: number): string {
  const [unit, name] = UNITS.find(([unit]) => ms % unit === 0)!
  return `${ms / unit}${name}`
}

/** Prints a span of time for people: `4.36 years`. */
export function showSpan(ms: number): string {
  const [unit, name] = SPANS.find(([unit]) => ms >= unit) ?? []
  return unit ? `${(ms / unit).toFixed(2)} ${name}` : `${(ms / 1000).toFixed(3)} seconds`
}

const RFC_3339 = /^(\d{4}-\d\d-\d\d)(?:T((?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60))(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/i

const NUMBER = /^(?=.*\d)[+\-.\d][+\-.eE\d]*$|^(?:NaN|-?inf|-?Infinity)$/

/** Parses Unix milliseconds, an RFC 3339 instant, or a date (midnight UTC). */
export function parseInstant(key: string, text: string): number {
  if (/^-?\d+$/.test(text)) {
    return checkInstant(key, Number(text), String(BigInt(text)))
  }
  const [, date, time = '00:00:00', fraction = '', zone = 'Z'] = RFC_3339.exec(text) ?? []
  const midnight = new Date(`${date}T00:00:00Z`)
  // Some engines accept the 31st of June.
  if (!date || isNaN(+midnight) || !midnight.toISOString().startsWith(date)) {
    refuse(NUMBER.test(text) ? 'OUT_OF_RANGE' : 'SPEC', `${key}=${shown(text)} is not an instant: give Unix milliseconds, 2025-01-01 or 2025-01-01T00:00:00Z`)
  }
  if (/[1-9]/.test(fraction.slice(3))) {
    refuse('SPEC', `${key}=${shown(text)} is finer than a millisecond`)
  }
  // A leap second counts as the second before it.
  const exact = `${time.replace(/60$/, '59')}.${fraction.slice(0, 3).padEnd(3, '0')}${zone.toUpperCase()}`
  return checkInstant(key, Date.parse(`${date}T${exact}`))
}

/** Parses a layout's epoch: an integer must lie in 1990 or later, because a smaller one is most likely in seconds. */
export function parseEpoch(text: string): number {
  const ms = parseInstant('epoch', text)
  if (!/^-?\d+$/.test(text) || ms >= FIRST_INTEGER_EPOCH_MS) {
    return ms
  }
  const [date, inMs] = [showEpoch(ms), ms * 1000]
  const year = ms >= 1970 && ms <= 2199 ? `if it is a year, write ${text}-01-01; ` : ''
  const meant = inMs >= FIRST_INTEGER_EPOCH_MS && inMs <= LAST_MS ? `if it is in seconds, write ${inMs}; ` : year
  return refuse('OUT_OF_RANGE', `epoch=${text} is out of range: an integer is in Unix milliseconds and lies in 1990 or later, and this is `
    + `${date}: ${meant}an epoch before 1990 is written as a date, ${date}`)
}

/** Prints an epoch for a layout's text: Unix milliseconds, or a date if it is before 1990. */
export function showEpoch(unixMs: number): string {
  return unixMs < FIRST_INTEGER_EPOCH_MS ? showInstant(unixMs).replace(/T00:00:00Z$/, '') : String(unixMs)
}

/** Refuses an instant that some language cannot represent. */
export function checkInstant(key: string, unixMs: number, text = String(unixMs)): number {
  if (unixMs >= FIRST_MS && unixMs <= LAST_MS) {
    return unixMs
  }
  return refuse('OUT_OF_RANGE', `${key}=${text} is out of range: the years 1 to 9999, ${FIRST_MS} to ${LAST_MS} ms`)
}

/** Prints an instant as RFC 3339; one that the core's dates do not hold, as Unix milliseconds. */
export function showInstant(unixMs: number): string {
  const held = unixMs >= -377_705_023_201_000 && unixMs <= 253_402_207_200_999
  return held ? new Date(unixMs).toISOString().replace(/\.?0+Z$/, 'Z') : `${unixMs} ms`
}
