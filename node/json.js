'use strict'
// JSON with 64-bit IDs. Plain JavaScript: the addon is not loaded.

// A string, which stays, or a number. A string that does not end is one too, so that the time is linear in the text.
const TOKEN = /"(?:[^"\\]|\\[^]?)*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const LARGE = /^-?[1-9]\d{15,}$/
const COLON = /\s*:/y

function parseJson(text) {
  return JSON.parse(/\d{16}/.test(text) ? quoteLarge(String(text)) : text)
}

// Where a colon follows the text is not JSON, and is left so.
function quoteLarge(text) {
  return text.replace(TOKEN, (token, at) => {
    COLON.lastIndex = at + token.length
    return LARGE.test(token) && !Number.isSafeInteger(Number(token)) && !COLON.test(text) ? `"${token}"` : token
  })
}

function jsonReplacer(key, value) {
  return typeof value === 'bigint' ? String(value) : value
}

module.exports = { jsonReplacer, parseJson }
