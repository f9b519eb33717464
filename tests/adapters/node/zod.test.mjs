// frazil/zod, with the current zod and with the oldest one that contains version 4.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as schema from 'frazil/schema'
import { bothVersions, install } from './installed.mjs'

for (const [version, installed] of bothVersions('zod')) {
  const kinds = {
    require: () => [installed.require('zod/v4'), installed.require('frazil/zod')],
    import: () => installed.import('zod/v4', 'frazil/zod'),
    'import and require': async () => [(await installed.import('zod/v4'))[0], installed.require('frazil/zod')],
  }
  for (const [kind, load] of Object.entries(kinds)) {
    test(`${version}, ${kind}: IDs are taken, all else is refused with the reason`, async () => {
      const [z, { snowflakeId }] = await load()
      const Order = z.object({ id: snowflakeId(), customer: snowflakeId({ as: 'bigint' }), parent: snowflakeId().optional(), seen: z.array(snowflakeId()) })
      const good = { id: '1541815603606036480', customer: '9223372036854775807', seen: ['0', '5'] }
      assert.deepEqual(Order.parse(good), { ...good, customer: 2n ** 63n - 1n })
      assert.deepEqual(Order.parse({ ...good, parent: undefined }), { ...good, customer: 2n ** 63n - 1n, parent: undefined })

      const bad = [
        1541815603606036480, 5, '007', '9223372036854775808', '', ' 1', '１', 5n, null, undefined, new String('5'), [], {},
        '1'.repeat(100_000), '\ud800',
      ]
      for (const value of bad) {
        for (const [id, path] of [[snowflakeId(), []], [snowflakeId({ as: 'bigint' }), []], [z.object({ a: z.array(snowflakeId()) }), ['a', 0]]]) {
          const { success, error } = id.safeParse(path.length ? { a: [value] } : value)
          assert.equal(success, false)
          assert.equal(error.issues.length, 1)
          assert.deepEqual(error.issues[0].path, path)
          assert.equal(error.issues[0].message, schema.snowflakeId()['~standard'].validate(value).issues[0].message)
        }
      }
    })

    test(`${version}, ${kind}: a layout, and bad options`, async () => {
      const [, { snowflakeId }] = await load()
      const js53 = snowflakeId({ layout: 'js53' })
      assert.equal(js53.parse('5'), '5')
      assert.match(js53.safeParse('1541815603606036480').error.issues[0].message, /more bits than the layout's 53/)
      assert.throws(() => snowflakeId({ as: 'number' }), { code: 'OUT_OF_RANGE' })
      assert.throws(() => snowflakeId({ store: 'local' }), { code: 'UNKNOWN_KEY' })
      assert.throws(() => snowflakeId(null), { code: 'WRONG_TYPE' })
    })

    test(`${version}, ${kind}: JSON Schema has the pattern, and further checks and the Standard Schema work`, async () => {
      const [z, { snowflakeId }] = await load()
      const { type, pattern } = z.toJSONSchema(snowflakeId())
      assert.deepEqual({ type, pattern }, { type: 'string', pattern: schema.idJsonSchema.pattern })
      assert.equal(z.toJSONSchema(z.object({ id: snowflakeId({ as: 'bigint' }) }), { io: 'input' }).properties.id.pattern, pattern)
      assert.equal(snowflakeId().brand('OrderId').parse('5'), '5')
      assert.equal(snowflakeId().endsWith('5').safeParse('4').success, false)
      assert.deepEqual(snowflakeId()['~standard'].validate('5'), { value: '5' })
      assert.equal(snowflakeId() instanceof z.ZodString, true)
    })
  }
}

test('without zod, or with one that is too old, the error names the package to install', () => {
  const { folder } = install()
  const run = (...flags) => spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8' }).stderr
  const needed = /frazil\/zod needs zod 3\.25\.76 or later: npm install zod@latest\n/
  assert.match(run('-e', "require('frazil/zod')"), needed)
  assert.match(run('--input-type=module', '-e', "import 'frazil/zod'"), /Cannot find package 'zod'/)

  mkdirSync(join(folder, 'node_modules/zod'))
  writeFileSync(join(folder, 'node_modules/zod/package.json'), '{ "name": "zod", "version": "3.24.4", "exports": { ".": "./index.js" } }')
  assert.match(run('-e', "require('frazil/zod')"), needed)
  assert.match(run('--input-type=module', '-e', "import 'frazil/zod'"), /subpath '\.\/v4' is not defined/)
})
