'use strict'

const { FrazilError, formatId } = require('./index.js')
const { Source } = require('./adapters/source.js')

const isAbsent = value => value === null || value === undefined
const isObject = value => typeof value === 'object' && value !== null

// 19 digits, so that MongoDB, which compares text, has IDs in their order.
const textOf = id => (isAbsent(id) ? id : formatId(id, 'decimal'))

// Setters run in documents and in conditions.
const snowflakeType = Object.freeze({ type: String, set: textOf })

function snowflakeId(ids) {
  const source = new Source(ids)

  return function plugin(schema) {
    const path = schema.path('_id')
    if (path && !path.options.auto && path.instance !== 'String') {
      throw new FrazilError('WRONG_TYPE', `_id of the schema is a ${path.instance}: it must be a String, or left out`)
    }
    schema.add({ _id: { ...snowflakeType, required: true, default: mintNow } })

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
    schema.pre('insertMany', hook(rows => fill([rows].flat())))
    schema.pre('bulkWrite', hook(fillOperations))
  }

  // For a new document. Where the generator would wait the document gets its ID when it is validated.
  function mintNow() {
    // An upsert is not asked here, but in the hook above, once.
    if (isAbsent(this) || typeof this.getFilter === 'function') {
      return undefined
    }
    try {
      return textOf(source.next())
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
        row._id = textOf(made[at])
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

  // An upsert's update, with an ID for the document that it may make.
  async function withId(filter, update) {
    if (namesId(filter) || setsId(update)) {
      return update
    }
    const id = textOf(await source.nextAsync())
    if (Array.isArray(update)) {
      return [...update, { $set: { _id: { $ifNull: ['$_id', id] } } }]
    }
    return { ...update, $setOnInsert: { ...Object(update).$setOnInsert, _id: id } }
  }
}

// A hook of a model, as all versions call it: the older ones pass a callback first.
function hook(work) {
  return function run(first, second) {
    if (typeof first !== 'function') {
      return work(first)
    }
    work(second).then(() => first(), first)
  }
}

// Whether a condition says what the _id of a new document is.
function namesId(filter) {
  const { _id: id, $and: all = [] } = Object(filter)
  const isOperator = isObject(id) && Object.keys(id).some(key => key.startsWith('$'))
  return (!isAbsent(id) && (!isOperator || '$eq' in id)) || all.some(namesId)
}

function setsId(update) {
  return !Array.isArray(update) && [update, ...['$set', '$setOnInsert'].map(name => Object(update)[name])].some(part => !isAbsent(Object(part)._id))
}

// In a replacement an ID would also be that of the document that is there, which MongoDB refuses.
function refuseReplacement(filter, replacement) {
  if (!namesId(filter) && isAbsent(Object(replacement)._id)) {
    throw new FrazilError('ID_INVALID', 'a replacement with upsert has no _id, and MongoDB would make it an ObjectId: ' +
      'use an update with { $set: ... }, or name the _id in the filter')
  }
}

module.exports = { snowflakeId, snowflakeType }
