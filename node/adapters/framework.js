'use strict'

// What `load` requires for a part of frazil; where it is not installed, the error says what to run.
function framework(part, name, load) {
  try {
    return load()
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND' && error.message.includes(`'${name}`)) {
      throw Object.assign(new Error(`${part} needs ${name}: npm install ${name}`, { cause: error }), { code: error.code })
    }
    throw error
  }
}

module.exports = { framework }
