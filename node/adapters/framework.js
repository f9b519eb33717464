'use strict'

// What `load` requires for a part of frazil; where it is not installed, or too old to have it, the error says what to run. `wanted` tells the
// versions that will do.
function framework(part, name, load, wanted) {
  try {
    return load()
  } catch (error) {
    const missing = error.code === 'MODULE_NOT_FOUND' && error.message.includes(`'${name}`)
    if (!missing && error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
      throw error
    }
    const told = wanted ? `${name} ${wanted}: npm install ${name}@latest` : `${name}: npm install ${name}`
    throw Object.assign(new Error(`${part} needs ${told}`, { cause: error }), { code: error.code })
  }
}

module.exports = { framework }
