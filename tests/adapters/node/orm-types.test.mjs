// The ORM adapters' declarations with those of the ORMs, in strict TypeScript, from modules and from CommonJS.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { generate } from './prisma/client.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))

test('the types of the ORMs hold', async () => {
  await generate('postgresql')
  const { stdout } = spawnSync(join(here, 'node_modules', '.bin', 'tsc'), ['--project', 'orm-types', '--pretty', 'false'], { cwd: here, encoding: 'utf8' })
  // The frameworks' declarations refer to packages that are not installed. An indented line continues the message above it.
  const ours = stdout.split(/\n(?! )/).filter(line => line && (!/^(\.\.\/)*node_modules\//.test(line) || line.includes('node_modules/frazil/')))
  assert.deepEqual(ours, [])
})
