// All validators accept the same texts, and refuse the same ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepted, refused, validators } from './validators.mjs'
import { alsoWithTheOldest } from './versions.mjs'

alsoWithTheOldest(import.meta.url)

for (const [name, validate] of validators) {
  test(`${name}: the same texts`, async () => {
    for (const id of accepted) {
      assert.equal(String(await validate(JSON.stringify(id))), id)
    }
    // Fastify makes Ajv accept a list of one item as the item.
    for (const json of refused.filter(json => name !== 'Fastify' || json !== '[7]')) {
      await assert.rejects(async () => validate(json), undefined, json)
    }
  })
}
