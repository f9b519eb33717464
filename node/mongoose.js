'use strict'

const { FrazilError, formatId } = require('./index.js')
const { Source } = require('./adapters/source.js')

const isAbsent = value => value === null || value === undefined
const isObject = value => typeof value === 'object' && value !== null

// The form in the database: 19 digits, so that text is in the order of the IDs.
function storedOf(id, prior, type) {
  try {
    return isAbsent(id) ? id : formatId(id, 'decimal')
  } catch (error) {
    const CastError = castErrorOf(type)
    // Mongoose shows only the class of other errors.
    const _castErrorMessage = (value, path, model) => {
      const where = model ? ` for model "${model.modelName}"` : ''
      return `Cast to ID failed at path "${path}"${where}: ${error.message}`
    }
    throw CastError ? new CastError(type.instance, id, type.path, error, { _castErrorMessage }) : error
  }
}

// The Mongoose class to which a path's type belongs: a static member of the base of all types.
function castErrorOf(type) {
  for (let prototype = type; prototype; prototype = Object.getPrototypeOf(prototype)) {
    const { CastError } = Object(prototype.constructor)
    if (CastError) {
      return CastError
    }
  }
  return undefined
}

// The form in the program and in JSON: decimal, which validators accept. Other values, such as populated documents, stay.
const shownOf = value => (typeof value === 'string' ? value.replace(/^0+(?=\d+$)/, '') : value)

// The stages of an aggregation that do not change documents.
const KEEPING = ['$limit', '$match', '$skip', '$sort']

// Marks the transform of this plugin.
const isOurs = Symbol('frazil.mongoose')

// Setters run in documents and in conditions, getters where the program reads a document.
const snowflakeType = Object.freeze({ type: String, set: storedOf, get: shownOf })

// A path of IDs, or of lists of IDs.
const isSnowflake = type => [type, type.embeddedSchemaType || type.$embeddedSchemaType].some(one => Object(Object(one).options).set === storedOf)

function snowflakeId(ids) {
  const source = new Source(ids)

  return function plugin(schema) {
    const path = schema.path('_id')
    if (path && !path.options.auto && path.instance !== 'String') {
      throw new FrazilError('WRONG_TYPE', `_id of the schema is a ${path.instance}: it must be a String, or left out`)
    }
    // The path's transform runs even if a call of toJSON has one. References have none, because Mongoose would pass populated documents to it.
    schema.add({ _id: { ...snowflakeType, transform: shownOf, required: true, default: mintNow } })
    // Mongoose's own virtual reads the form of the database.
    if (schema.get('id') && !schema.path('id') && !schema.virtualpath('id')) {
      schema.set('id', false)
      schema.virtual('id').get(function id() {
        return this._id
      })
    }
    showReferences(schema)
    // Includes options that are set after the plugin.
    schema.on('init', model => showReferences(model.schema))

    async function fillDocument() {
      await fill([this])
    }
    schema.pre('validate', fillDocument)
    schema.pre('save', fillDocument)
    schema.pre(['updateOne', 'updateMany', 'findOneAndUpdate'], async function fillUpsert() {
      if (this.getOptions().upsert) {
        this.setUpdate(await withId(this.getFilter(), this.getUpdate()))
      }
    })
    schema.pre(['replaceOne', 'findOneAndReplace'], async function refuseUpsert() {
      if (this.getOptions().upsert) {
        refuseReplacement(this.getFilter(), this.getUpdate())
      }
    })
    schema.pre('aggregate', async function storeConditions() {
      const stages = this.pipeline()
      // Stops at the first stage that changes the fields.
      for (let at = 0; at < stages.length && KEEPING.includes(Object.keys(stages[at])[0]); at++) {
        const { $match } = stages[at]
        stages[at] = $match ? { $match: storedMatch(this.model(), $match) } : stages[at]
      }
    })
    schema.pre('insertMany', hook(rows => fill([rows].flat())))
    schema.pre('bulkWrite', hook(fillOperations))
  }

  // The ID of a new document. If the generator would wait, the document gets its ID when it is validated.
  function mintNow() {
    // The ID of an upsert comes from the hook above.
    if (isAbsent(this) || typeof this.getFilter === 'function') {
      return undefined
    }
    try {
      return storedOf(source.next())
    } catch (error) {
      if (error.code === 'WOULD_BLOCK') {
        return undefined
      }
      throw error
    }
  }

  async function fill(rows) {
    const without = rows.filter(row => isObject(row) && isAbsent(row._id))
    if (without.length > 0) {
      const made = await source.batchAsync(without.length)
      without.forEach((row, at) => {
        row._id = storedOf(made[at])
      })
    }
  }

  async function fillOperations(operations) {
    await fill(operations.map(({ insertOne }) => Object(insertOne).document))
    for (const { updateOne, updateMany, replaceOne } of operations) {
      const update = updateOne || updateMany
      if (Object(update).upsert) {
        update.update = await withId(update.filter, update.update)
      }
      if (Object(replaceOne).upsert) {
        refuseReplacement(replaceOne.filter, replaceOne.replacement)
      }
    }
  }

  // The update of an upsert, with an ID for the document that it may insert.
  async function withId(filter, update) {
    if (namesId(filter) || setsId(update)) {
      return update
    }
    const id = storedOf(await source.nextAsync())
    if (Array.isArray(update)) {
      return [...update, { $set: { _id: { $ifNull: ['$_id', id] } } }]
    }
    return { ...update, $setOnInsert: { ...Object(update).$setOnInsert, _id: id } }
  }
}

// Adds a transform to toJSON and toObject that converts references to the program's form, and then calls the program's own.
function showReferences(schema) {
  for (const name of ['toJSON', 'toObject']) {
    const options = Object(schema.get(name))
    if (!Object(options.transform)[isOurs]) {
      const transform = (document, plain, given) => {
        showIn(document.$__schema, plain)
        const own = options.transform || Object(document.constructor.base.options[name]).transform
        return typeof own === 'function' ? own(document, plain, given) : plain
      }
      schema.set(name, { ...options, transform: Object.assign(transform, { [isOurs]: true }) })
    }
  }
}

function showIn(schema, plain) {
  schema.eachPath((path, type) => {
    const names = path.split('.')
    const last = names.pop()
    const holder = Object(names.reduce((inner, name) => Object(inner)[name], plain))
    const value = holder[last]
    if (value !== undefined && isSnowflake(type)) {
      holder[last] = Array.isArray(value) ? value.map(shownOf) : shownOf(value)
    }
  })
}

// A condition of an aggregation with IDs in the form of the database, because Mongoose casts only conditions of queries.
function storedMatch(model, condition) {
  return Object.fromEntries(Object.entries(condition).map(([name, value]) => {
    if (['$and', '$or', '$nor'].includes(name)) {
      return [name, value.map(inner => storedMatch(model, inner))]
    }
    const type = model.schema.path(name)
    return type && isSnowflake(type) ? Object.entries(model.find().cast(model, { [name]: value }))[0] : [name, value]
  }))
}

// A hook of a model for all versions: older ones pass a callback first.
function hook(work) {
  return function run(first, second) {
    if (typeof first !== 'function') {
      return work(first)
    }
    work(second).then(() => first(), first)
  }
}

// Returns whether a condition determines the _id of a new document.
function namesId(filter) {
  const { _id: id, $and: all = [] } = Object(filter)
  const isOperator = isObject(id) && Object.keys(id).some(key => key.startsWith('$'))
  return (!isAbsent(id) && (!isOperator || '$eq' in id)) || all.some(namesId)
}

function setsId(update) {
  return !Array.isArray(update) && [update, ...['$set', '$setOnInsert'].map(name => Object(update)[name])].some(part => !isAbsent(Object(part)._id))
}

// An ID in a replacement would also apply to an existing document, which MongoDB refuses.
function refuseReplacement(filter, replacement) {
  if (!namesId(filter) && isAbsent(Object(replacement)._id)) {
    throw new FrazilError('ID_INVALID', 'a replacement with upsert has no _id, and MongoDB would make it an ObjectId: ' +
      'use an update with { $set: ... }, or name the _id in the filter')
  }
}

module.exports = { snowflakeId, snowflakeType }
