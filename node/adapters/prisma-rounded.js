'use strict'
// Prisma accepts numbers for a BigInt. An ID that JavaScript has rounded would find, or refer to, another row.

const { FrazilError } = require('../index.js')
const { toBigInt } = require('./exact.js')
const { isObject, isWrapped } = require('./prisma-models.js')

// The properties of a relation that have arguments: `where`, `create`, ...
const WITH_ARGUMENTS = ['connectOrCreate', 'createMany', 'updateMany', 'upsert']

// The properties of a relation that have rows or conditions.
const WITH_ROWS = ['connect', 'create', 'delete', 'deleteMany', 'disconnect', 'every', 'is', 'isNot', 'none', 'set', 'some', 'update']

// Refuses arguments of an operation with a rounded number as an ID.
function refuseRounded(models, model, args) {
  for (const value of isObject(args) ? Object.values(args) : []) {
    inRows(models, model, value)
  }
}

function inRows(models, model, value) {
  for (const row of [value].flat().filter(isObject)) {
    for (const [name, inner] of Object.entries(row)) {
      if (model.ids.has(name)) {
        inId(`${model.name}.${name}`, inner)
      } else if (model.relations.has(name)) {
        inRelation(models, models.get(model.relations.get(name)), inner)
      } else if (!model.fields.has(name)) {
        // AND, OR, NOT; a key of several fields.
        inRows(models, model, inner)
      }
    }
  }
}

function inRelation(models, model, value) {
  for (const nested of [value].flat().filter(isObject)) {
    for (const [name, inner] of Object.entries(nested)) {
      const items = [inner].flat()
      if (WITH_ARGUMENTS.includes(name) || (name === 'update' && items.some(item => isWrapped(model, item)))) {
        items.forEach(item => refuseRounded(models, model, item))
      } else {
        inRows(models, model, WITH_ROWS.includes(name) ? inner : { [name]: inner })
      }
    }
  }
}

function inId(name, value) {
  if (isObject(value)) {
    Object.values(value).forEach(inner => inId(name, inner))
  } else if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    try {
      toBigInt(value)
    } catch ({ code, message }) {
      throw new FrazilError(code, `${name}: ${message}`)
    }
  }
}

module.exports = { refuseRounded }
