'use strict'
// The source of an adapter's IDs: a generator, a promise of one, or a function that returns either and is called when the first ID is
// needed.

const { FrazilError } = require('../index.js')

const isGenerator = value => ['next', 'nextAsync', 'batchAsync'].every(name => typeof Object(value)[name] === 'function')
const isPromise = value => typeof Object(value).then === 'function'

function refuse(what, value) {
  const given = value === null || value === undefined ? String(value) : `a ${typeof value}`
  const allowed = 'a generator such as a Snowflake, a promise of one, or a function that gives either'
  throw new FrazilError('WRONG_TYPE', `${what} ${given}: it must be ${allowed}`)
}

class Source {
  constructor(given) {
    if (typeof given === 'function') {
      this.ask = given
    } else {
      this.take(given, 'ids is')
    }
  }

  // The next ID without a wait: WOULD_BLOCK if the generator would wait, or is not open yet.
  next() {
    this.begin()
    if (this.failure) {
      throw this.failure
    }
    if (!this.ids) {
      throw new FrazilError('WOULD_BLOCK', 'ids is a promise of a generator that is not open yet: await it before rows are made')
    }
    return this.ids.next()
  }

  async nextAsync() {
    return (await this.open()).nextAsync()
  }

  async batchAsync(count) {
    return (await this.open()).batchAsync(count)
  }

  async open() {
    this.begin()
    return this.ids || this.opening
  }

  begin() {
    if (!this.ids && !this.opening) {
      this.take(this.ask(), 'ids() gave')
    }
  }

  take(value, what) {
    if (isPromise(value)) {
      this.opening = this.wait(value)
      // The error is thrown when an ID is needed.
      this.opening.catch(() => {})
    } else if (isGenerator(value)) {
      this.ids = value
    } else {
      refuse(what, value)
    }
  }

  async wait(promise) {
    try {
      const ids = await promise
      this.take(ids, 'ids is a promise of')
      return ids
    } catch (error) {
      if (this.ask) {
        // The next call tries again.
        this.opening = undefined
      } else {
        this.failure = error
      }
      throw error
    }
  }
}

module.exports = { Source }
