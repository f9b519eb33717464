// Mints until FOLDER/stop exists, and writes down every ID at once: worker.mjs KIND SPEC FOLDER NAME (see worker.py)

import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker, isMainThread } from 'node:worker_threads'
import * as frazil from '../../node/index.mjs'

const { FrazilError } = frazil
// A worker thread also gets a part of the names of its files.
const [kind, spec, folder, name, part = ''] = process.argv.slice(2)
const rare = Number(process.env.FRAZIL_WORKER_RARE)
const appendTo = (ending) => fs.openSync(`${folder}/${name}.${process.pid}.${part}${ending}`, 'a')
const out = appendTo('ids')
const log = appendTo('log')
const note = (code, text) => fs.writeSync(log, `${code} ${text}\n`)
const stopped = () => fs.existsSync(`${folder}/stop`)
const few = new BigInt64Array(Number(process.env.FRAZIL_WORKER_FEW))
const many = new BigInt64Array(5000)
const pollsMs = 1000
// The pause between two steps.
const pauseMs = 4
let newest = -1n

/** Calls a function. Notes and returns its FrazilError; any other error ends the program. */
async function refusal(call) {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof FrazilError)) throw error
    note(error.code, error.message)
    return error
  }
}

/** Opens, with a wait, or by repeated calls of the constructor, which give up after a while. */
async function open(waits = true) {
  let ids
  const end = waits ? Infinity : performance.now() + pollsMs
  while (!ids && performance.now() < end && !stopped()) {
    const refused = await refusal(async () => {
      ids = waits ? await frazil[kind].open(spec) : new frazil[kind](spec)
      newest = -1n
    })
    if (refused) await pause(20)
  }
  return ids
}

/** Mints, and returns the time in ms until the next call makes sense. */
function mint(ids, buffer) {
  let written = 0
  let refused
  try {
    written = ids.fill(buffer)
  } catch (error) {
    if (!(error instanceof FrazilError)) throw error
    refused = error
    written = error.written
  }
  if (written) {
    fs.writeSync(out, new Uint8Array(buffer.buffer, 0, 8 * written))
    if (buffer[0] <= newest) note('NOT_ASCENDING', `${buffer[0]} after ${newest}`)
    newest = buffer[written - 1]
  }
  if (!refused) return pauseMs
  note(refused.code, refused.message)
  return 20
}

/** Returns the last ID that one of the processes has written down, or undefined. */
function somebodysNewest() {
  const files = fs.readdirSync(folder).filter((file) => file.endsWith('.ids'))
  const file = fs.openSync(`${folder}/${files[Math.floor(Math.random() * files.length)]}`)
  const whole = Math.floor(fs.fstatSync(file).size / 8) * 8
  const last = new BigInt64Array(1)
  if (whole) fs.readSync(file, last, 0, 8, whole - 8)
  fs.closeSync(file)
  return whole ? last[0] : undefined
}

async function observe(ids) {
  const theirs = somebodysNewest()
  if (kind === 'Segment' || theirs === undefined || (await refusal(() => ids.observe(theirs)))) return
  if (theirs > newest) newest = theirs
  fs.appendFileSync(`${folder}/${name}.${process.pid}.observed`, '.')
}

let visits = 0
let visitor

/** Starts a visitor, at most one at a time. Visitors wait and poll in turn. Every fourth one is ended in the middle of its work. */
function visit() {
  if (visitor) return
  visits += 1
  const argv = [kind, spec, folder, name, `${visits % 2 ? 'polls' : 'waits'}.${visits}.`]
  visitor = new Worker(new URL(import.meta.url), { argv })
  const end = visits % 4 > 2 ? setTimeout(() => visitor.terminate(), Math.random() * 500) : undefined
  visitor.on('exit', () => {
    clearTimeout(end)
    visitor = undefined
  })
}

async function stay() {
  const ids = await open(part.startsWith('waits'))
  for (const end = performance.now() + Math.random() * 1000; ids && performance.now() < end;) {
    await pause(mint(ids, few))
  }
  await ids?.close()
}

async function main() {
  let ids
  for (;;) {
    const draw = Math.floor(Math.random() * rare)
    if (draw < 2 && ids) {
      await ids.close()
      ids = undefined
    }
    ids ??= await open()
    if (!ids || (draw % 16 === 0 && stopped())) break
    if (draw === 2) await refusal(() => kind === 'Segment' ? ids.discardAsync() : ids.releaseNodeAsync())
    if (draw === 4) await observe(ids)
    if (draw === 5) visit()
    await pause(mint(ids, draw < 6 ? many : few))
  }
  await ids?.close()
}

const work = isMainThread ? main : stay
work().catch((error) => {
  note('UNTYPED', String(error))
  process.exit(1)
})
