// Mints until told to stop, and writes down every ID before anything else happens: worker.mjs KIND SPEC FOLDER NAME (see worker.py)

import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import * as frazil from '../../node/index.mjs'

const { FrazilError } = frazil
const [kind, spec, folder, name] = process.argv.slice(2)
const rare = Number(process.env.FRAZIL_WORKER_RARE)
const appendTo = (ending) => fs.openSync(`${folder}/${name}.${process.pid}.${ending}`, 'a')
const out = appendTo('ids')
const log = appendTo('log')
const note = (code, text) => fs.writeSync(log, `${code} ${text}\n`)
const stopped = () => fs.existsSync(`${folder}/stop`)
const few = new BigInt64Array(Number(process.env.FRAZIL_WORKER_FEW))
const many = new BigInt64Array(5000)
let newest = -1n

/** Calls a function, and notes its refusal, which it returns. Anything but a FrazilError ends the program. */
async function refusal(call) {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof FrazilError)) throw error
    note(error.code, error.message)
    return error
  }
}

async function open() {
  let ids
  while (!ids && !stopped()) {
    const refused = await refusal(async () => {
      ids = await frazil[kind].open(spec)
      newest = -1n
    })
    if (refused) await pause(20)
  }
  return ids
}

/** Returns after how many ms the next call makes sense. */
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
  if (!refused) return 1
  note(refused.code, refused.message)
  return 20
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
    if (draw === 2) await refusal(() => ids.renew())
    await pause(mint(ids, draw < 6 ? many : few))
  }
  await ids?.close()
}

main().catch((error) => {
  note('UNTYPED', String(error))
  process.exit(1)
})
