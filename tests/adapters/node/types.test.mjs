// The web adapters' declarations with those of the frameworks, in strict TypeScript, from modules and from CommonJS.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { here, install } from './installed.mjs'

const names = ['@nestjs', '@standard-schema/spec', '@types/node', 'ajv', 'arktype', 'fastify', 'graphql', 'reflect-metadata', 'rxjs', 'zod']

test('the types hold', () => {
  const { folder } = install(Object.fromEntries(names.map(name => [name, name])))
  cpSync(join(here, 'types'), folder, { recursive: true })
  const tsc = join(here, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(tsc, ['--project', '.'], { cwd: folder, encoding: 'utf8' })
  assert.equal(stdout, '')
})
