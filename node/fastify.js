'use strict'
// A Fastify plugin: opens a generator before the server is ready, closes it after the last request, and refuses rounded IDs in bodies.

const { FrazilError } = require('./index.js')
const { openIds, readOptions } = require('./adapters/open.js')

// The plugin's own option, and those that Fastify allows in `register`.
const OTHERS = ['name', 'prefix', 'logLevel', 'logSerializers']

// The plugin's hooks apply to this instance and its children.
const guarded = Symbol('frazil.guarded')

async function frazilPlugin(fastify, given) {
  const { name = 'ids', ...options } = readOptions(given, OTHERS)
  // Decorates first, so that Fastify refuses a used name before anything is opened.
  fastify.decorate(name, null)
  const ids = await openWithin(fastify.initialConfig.pluginTimeout, options)
  fastify[name] = ids
  fastify.addHook('onClose', () => ids.closeAsync())
  if (!fastify[guarded]) {
    fastify[guarded] = true
    fastify.addHook('preValidation', remember)
    fastify.addHook('preHandler', refuseRounded)
  }
}

// The codes of an opening that timed out. NODE_IN_USE names the owner of the number.
const UNANSWERED = ['WOULD_BLOCK', 'NODE_IN_USE', 'NO_FREE_NODE']

// Fastify gives up on a plugin after its pluginTimeout without a reason, so the opening times out earlier.
async function openWithin(pluginTimeout, given) {
  const { options, open } = given
  if (!pluginTimeout || open || Object(options).maxWaitMs !== undefined) {
    return openIds(given)
  }
  try {
    return await openIds({ ...given, options: { ...options, maxWaitMs: Math.floor(pluginTimeout * 0.8) } })
  } catch (error) {
    if (!UNANSWERED.includes(error.code)) {
      throw error
    }
    const fix = `Fastify gives a plugin ${pluginTimeout} ms to start: Fastify({ pluginTimeout: 120_000 }) lets it wait for the store`
    throw new FrazilError(error.code, `${error.message}. ${fix}`, { retryAfterMs: error.retryAfterMs, cause: error })
  }
}

// For each request, the paths in its JSON body with an integer above 2^53. Fastify's validation converts such a number to a string if the
// schema has one, and the rounded ID would pass as exact.
const unsafe = new WeakMap()

function remember(request, reply, done) {
  if (/[/+]json\b/i.test(request.headers['content-type'])) {
    const found = unsafeIntegers(request)
    if (found.length > 0) {
      unsafe.set(request, found)
    }
  }
  done()
}

function refuseRounded(request, reply, done) {
  const place = (unsafe.get(request) || []).find(isText)
  if (!place) {
    done()
    return
  }
  const why = `has been rounded, to ${place.number}, because it came as a JSON number above 2^53: send it as a string, in quotes`
  done(Object.assign(new FrazilError('ID_INVALID', `${pathOf(place)} ${why}`), { statusCode: 400 }))
}

// With `coerceTypes: 'array'` a number may also have become a list of one.
function isText({ holder, key }) {
  const value = holder[key]
  return typeof (Array.isArray(value) ? value[0] : value) === 'string'
}

function unsafeIntegers(request) {
  const found = []
  const left = []
  const visit = (holder, key, up) => {
    const value = holder[key]
    if (typeof value === 'object' && value !== null) {
      left.push({ key, up, value })
    } else if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      found.push({ holder, key, up, number: value })
    }
  }
  visit(request, 'body')
  while (left.length > 0) {
    const place = left.pop()
    const { value } = place
    if (Array.isArray(value)) {
      value.forEach((_, key) => visit(value, key, place))
    } else {
      Object.keys(value).forEach(key => visit(value, key, place))
    }
  }
  return found
}

function pathOf({ up, key }) {
  return up ? `${pathOf(up)}/${key}` : key
}

// As with the package fastify-plugin, decorators apply to the instance that registers the plugin.
Object.assign(frazilPlugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'frazil',
  [Symbol.for('plugin-meta')]: { name: 'frazil', fastify: '>=4' },
})

module.exports = { frazilPlugin }
