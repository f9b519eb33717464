// Helpers of all suites.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { FrazilError, Layout, Snowflake, errors } from 'frazil'

// The scope keeps this process apart from other suites with the same fixed node numbers.
process.env.FRAZIL_GUARD_SCOPE = `node-${process.pid}`
let children = 0

/** This folder. */
export const here = fileURLToPath(new URL('.', import.meta.url))

/** A file of tests/vectors. */
export function vectors(name) {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'))
}

/** Asserts that a call is refused with a code, and that the message contains certain texts. */
export function refused(code, call, ...says) {
  let result
  try {
    result = call()
  } catch (error) {
    return checkError(code, error, says)
  }
  assert.fail(`${call} is not refused with ${code} but gives ${String(result).slice(0, 100)}`)
}

/** Asserts that a promise is rejected with a code, and that the message contains certain texts. */
export async function rejected(code, promise, ...says) {
  return checkError(code, await promise.then(value => assert.fail(`not refused with ${code} but gives ${value}`), error => error), says)
}

function checkError(code, error, says) {
  assert.ok(error instanceof FrazilError, error.stack ?? String(error))
  assert.equal(error.code, code, error.message)
  assert.equal(error.number, errors.find(row => row.code === code).number)
  assert.equal(error.name, 'FrazilError')
  assert.ok(error.message.length < 2000, `a message of ${error.message.length} characters`)
  for (const part of says) {
    assert.ok(error.message.includes(part), `"${error.message}" does not say "${part}"`)
  }
  return error
}

/** Asserts that IDs strictly increase. */
export function assertAscending(ids) {
  for (let at = 1; at < ids.length; at++) {
    if (!(BigInt(ids[at - 1]) < BigInt(ids[at]))) {
      assert.fail(`${ids[at - 1]} is followed by ${ids[at]} at ${at}`)
    }
  }
}

/** Waits until a condition holds. */
export async function inTime(condition, ms = 60000) {
  for (const until = Date.now() + ms; Date.now() < until; await sleep(5)) {
    if (await condition()) {
      return
    }
  }
  assert.fail(`not in time: ${condition}`)
}

/** Opens a generator that only one test uses, under a manual clock that shows the given time. */
export function manual(spec, unixMs) {
  const ids = new Snowflake(`${spec} clock=manual detached=true`)
  if (unixMs !== undefined) {
    ids.setTime(unixMs)
  }
  return ids
}

/** Runs a program in another Node, where 'frazil' can be imported, and returns its output. */
export async function runChild(program, { env = {}, flags = [] } = {}) {
  const { FRAZIL, ...inherited } = process.env
  // The child may use the same number as this process or another child.
  const scope = { FRAZIL_GUARD_SCOPE: `node-${process.pid}-${++children}` }
  const options = { cwd: here, env: { ...inherited, ...scope, ...env }, maxBuffer: 1 << 26 }
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', program], options)
  return stdout.trim()
}

export const twitter = new Layout('twitter')
