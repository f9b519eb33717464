'use strict'

const { optionsOf } = require('./adapters/options.js')
const { isObject, isWrapped, modelsOf } = require('./adapters/prisma-models.js')
const { refuseRounded } = require('./adapters/prisma-rounded.js')
const { Source } = require('./adapters/source.js')

function snowflakes(ids, options) {
  const source = new Source(ids)
  const { models: chosen } = optionsOf(options, { models: undefined })

  return function extend(client) {
    const models = modelsOf(client, chosen)

    async function $allOperations({ model: name, operation, args, query }) {
      const model = models.get(name)
      refuseRounded(models, model, args)
      const rows = []
      const filled = fillArguments({ models, rows }, operation, model, args)
      if (rows.length > 0) {
        const made = await source.batchAsync(rows.length)
        rows.forEach(({ row, key }, at) => {
          row[key] = BigInt(made[at])
        })
      }
      return query(filled)
    }

    return client.$extends({ name: 'frazil', query: { $allModels: { $allOperations } } })
  }
}

function each(value, change) {
  return Array.isArray(value) ? value.map(change) : change(value)
}

// Returns whether a value is Prisma.skip, which marks an omitted value: an instance of a class, without properties.
function isSkip(value) {
  const prototype = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null && Object.keys(value).length === 0
}

const isRow = value => isObject(value) && !isSkip(value)

// A copy in which functions have changed some properties. The objects of users are not changed.
function changed(object, changes) {
  if (!isRow(object)) {
    return object
  }
  const copy = { ...object }
  for (const [name, change] of Object.entries(changes)) {
    if (copy[name] !== undefined) {
      copy[name] = each(copy[name], change)
    }
  }
  return copy
}

// A copy of an operation's arguments; `state.rows` gets the rows in it that need an ID, parents first.
function fillArguments(state, operation, model, args) {
  const create = row => created(state, model, row)
  const update = row => written(state, model, row)
  switch (operation) {
    case 'create':
      // If all fields are optional, so is `data`.
      return changed({ ...args, data: Object(args).data === undefined ? {} : args.data }, { data: create })
    case 'createMany':
    case 'createManyAndReturn':
      return changed(args, { data: create })
    case 'update':
      return changed(args, { data: update })
    case 'upsert':
      return changed(args, { create, update })
    default:
      return args
  }
}

function created(state, model, row) {
  if (!isRow(row)) {
    return row
  }
  const copy = { ...row }
  if (model.key && copy[model.key] === undefined) {
    state.rows.push({ row: copy, key: model.key })
  }
  return Object.assign(copy, written(state, model, row))
}

// The rows that are written through relations of a created or updated row.
function written(state, model, row) {
  const changes = {}
  for (const [field, type] of model.relations) {
    changes[field] = nested => related(state, state.models.get(type), nested)
  }
  return changed(row, changes)
}

function related(state, model, nested) {
  const create = row => created(state, model, row)
  const update = row => written(state, model, row)
  return changed(nested, {
    create,
    connectOrCreate: choice => changed(choice, { create }),
    createMany: many => changed(many, { data: create }),
    update: change => (isWrapped(model, change) ? changed(change, { data: update }) : update(change)),
    upsert: choice => changed(choice, { create, update }),
  })
}

module.exports = { snowflakes }
