// One fixed number in every process of a cluster: one process issues from it, and all others get NODE_IN_USE.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Snowflake } from 'frazil'
import { removeStores } from './folders.mjs'
import { refused, runChild } from './helper.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-guard-'))
process.on('exit', () => removeStores(folder))
const addon = createRequire(import.meta.url).resolve('frazil')

// Only on Linux does a number belong to one process of the machine.
const linux = { skip: process.platform !== 'linux' }

/** Returns the output of each worker of a cluster; the primary process opens a generator, too. */
async function cluster(name, options) {
  const file = join(folder, `${name}.cjs`)
  writeFileSync(file, `
    const cluster = require('node:cluster')
    const { setTimeout: sleep } = require('node:timers/promises')
    const { Snowflake } = require(${JSON.stringify(addon)})
    const ids = new Snowflake('standard start=zero node=1', ${JSON.stringify(options)})
    if (cluster.isPrimary) {
      const said = []
      for (let count = 0; count < 4; count++) {
        cluster.fork().on('message', message => {
          said.push(message)
          if (said.length === 4) {
            require('node:fs').writeFileSync(process.argv[2], JSON.stringify(said))
            process.exit()
          }
        })
      }
    } else {
      const mint = async () => {
        const minted = []
        // Each ID is in another millisecond, so every sequence begins at 0.
        for (const until = Date.now() + 1500; Date.now() < until; await sleep(1)) {
          minted.push(await ids.nextAsync())
        }
        return minted
      }
      mint().then(
        minted => process.send({ pid: process.pid, minted }),
        ({ code, message }) => process.send({ pid: process.pid, code, message }))
    }`)
  const env = { ...process.env, FRAZIL_GUARD_SCOPE: `${folder}/${name}` }
  await promisify(execFile)(process.execPath, [file, `${file}.json`], { env })
  return JSON.parse(readFileSync(`${file}.json`, 'utf8'))
}

test('one worker of a cluster issues', linux, async () => {
  const said = await cluster('guarded', {})
  const [{ pid, minted }, ...others] = said.filter(({ minted }) => minted)
  assert.equal(others.length, 0)
  assert.equal(new Set(minted).size, minted.length)
  for (const { code, message } of said.filter(({ code }) => code)) {
    assert.equal(code, 'NODE_IN_USE')
    assert.ok(message.includes(`by process ${pid} (`) && message.includes('store=local'), message)
  }
})

test('shared workers repeat IDs, which the guard prevents', linux, async () => {
  const said = await cluster('control', { shared: true })
  const all = said.flatMap(({ minted }) => minted)
  assert.equal(said.length, 4)
  assert.ok(new Set(all).size < all.length)
})

test('a call in place does not hold up the loop for a number that another process has', linux, async () => {
  const scope = `${folder}/in-place`
  const program = `
    import { Snowflake } from 'frazil'
    import { execFileSync } from 'node:child_process'
    const ids = new Snowflake('standard node=2')
    ids.next()
    if (!process.env.SECOND) {
      try {
        execFileSync(process.execPath, ['--input-type=module', '-e', process.env.PROGRAM], { env: { ...process.env, SECOND: '1' }, stdio: 'pipe' })
      } catch (error) {
        console.log(String(error.stderr))
      }
    }`
  const said = await runChild(program, { env: { FRAZIL_GUARD_SCOPE: scope, PROGRAM: program } })
  assert.ok(said.includes("code: 'NODE_IN_USE'") && said.includes('use await ids.nextAsync()'), said)
})

test('the option', () => {
  const ids = new Snowflake('standard node=77', { shared: true, namespace: 'shop' })
  assert.equal(ids.spec, 'standard node=77 namespace=shop shared=true')
  refused('SPEC', () => new Snowflake('standard store=memory', { shared: true }), 'shared=', 'store=')
})
