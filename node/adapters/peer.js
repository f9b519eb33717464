'use strict'

/** Loads a framework, which is no dependency of frazil's: where it is missing, or too old, the error says what to install. */
module.exports = function peer(adapter, id, wanted, load) {
  try {
    return load()
  } catch (error) {
    const missing = error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED' || (error.code === 'MODULE_NOT_FOUND' && error.message.includes(`'${id}'`))
    if (!missing) {
      throw error
    }
    const needed = new Error(`${adapter} needs ${wanted}, and '${id}' cannot be found: npm install ${wanted.split(' ')[0]}`)
    throw Object.assign(needed, { code: error.code, cause: error })
  }
}
