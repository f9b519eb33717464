'use strict'
// The models of a Prisma schema: the key of each, its other columns of IDs (references, lists of BigInts) and its relations.

const { FrazilError } = require('../index.js')

const HOW = 'id BigInt @id @default(dbgenerated())'

// The models by their names: { key, ids, relations }. `chosen` is the option `models`, { Model: 'field' }.
function modelsOf(client, chosen) {
  // Prisma Client carries its schema, and has no public way to read it.
  const { _runtimeDataModel: runtime, _engineConfig: config } = client || {}
  if (!runtime || !config || typeof config.inlineSchema !== 'string') {
    throw new FrazilError('WRONG_TYPE', 'frazil cannot read the schema of the extended object: extend a Prisma Client of version 6.16 to 7')
  }
  const written = readSchema(config.inlineSchema)
  const models = new Map()
  for (const [name, { fields }] of Object.entries(runtime.models)) {
    const { key, references } = written.get(name) || { references: [] }
    const bigints = fields.filter(({ type }) => type === 'BigInt').map(({ name }) => name)
    const relations = new Map(fields.filter(({ kind }) => kind === 'object').map(({ name, type }) => [name, type]))
    models.set(name, { name, key: chosen ? undefined : key, bigints, ids: new Set(references), relations, fields: new Set(fields.map(({ name }) => name)) })
  }
  for (const [name, key] of Object.entries(chosen || {})) {
    choose(models, name, key)
  }
  const keyed = [...models.values()].filter(({ key }) => key)
  if (keyed.length === 0) {
    throw new FrazilError('OUT_OF_RANGE', `no model of the Prisma schema has one BigInt @id without a default: write \`${HOW}\``)
  }
  keyed.forEach(({ ids, key }) => ids.add(key))
  return models
}

function choose(models, name, key) {
  const model = models.get(name)
  if (!model) {
    throw new FrazilError('OUT_OF_RANGE', `models: ${JSON.stringify(name)} is not a model of the Prisma schema: use one of ${[...models.keys()].join(', ')}`)
  }
  if (!model.bigints.includes(key)) {
    const allowed = model.bigints.join(', ') || 'none'
    throw new FrazilError('OUT_OF_RANGE', `models: ${name}.${String(key)} is not a BigInt of the Prisma schema, such as \`${HOW}\`: use one of ${allowed}`)
  }
  model.key = key
}

// Finds the keys, the foreign keys and the lists in the text of a schema, in which each field has a line.
function readSchema(text) {
  const models = new Map()
  let model
  for (const line of text.split('\n').map(line => line.replace(/\/\/.*/, '').trim())) {
    const [, name] = /^model\s+(\w+)\s*\{/.exec(line) || []
    if (name) {
      model = { key: undefined, references: [] }
      models.set(name, model)
    } else if (line === '}') {
      model = undefined
    } else if (model) {
      readField(model, line)
    }
  }
  return models
}

function readField(model, line) {
  const [, name] = /^(\w+)\s+BigInt\s+(?=.*@id\b)(?!.*@default\((?!dbgenerated\(\)\)))/.exec(line) || []
  if (name) {
    model.key = name
  }
  // A list of BigInts is taken for references, because no database has foreign keys in lists.
  const [, list] = /^(\w+)\s+BigInt\[\]/.exec(line) || []
  if (list) {
    model.references.push(list)
  }
  const [, fields = ''] = /@relation\(.*\bfields:\s*\[([^\]]*)\]/.exec(line) || []
  model.references.push(...fields.split(',').map(field => field.trim()).filter(Boolean))
}

const isObject = value => typeof value === 'object' && value !== null

// Returns whether an update of a related row has that row in `data`. In a relation to one row, `data` may be omitted.
function isWrapped(model, change) {
  return isObject(change) && (change.where !== undefined || (change.data !== undefined && !model.fields.has('data')))
}

module.exports = { isObject, isWrapped, modelsOf }
