'use strict'

// Loads a package for a part of frazil. If it is missing or too old, the error has the command to run. `wanted` has the supported versions.
function framework(part, name, load, wanted) {
  try {
    return load()
  } catch (error) {
    const missing = error.code === 'MODULE_NOT_FOUND' && error.message.includes(`'${name}`)
    if (!missing && error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
      throw error
    }
    const needed = wanted ? `${name} ${wanted}: npm install ${name}@latest` : `${name}: npm install ${name}`
    throw Object.assign(new Error(`${part} needs ${needed}`, { cause: error }), { code: error.code })
  }
}

module.exports = { framework }
