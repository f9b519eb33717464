'use strict'
// JSON with 64-bit IDs, in plain JavaScript without the addon.

// A string, which stays, or a number. An unterminated string also matches, so that the time is linear in the text.
const TOKEN = /"(?:[^"\\]|\\[^]?)*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const LARGE = /^-?[1-9]\d{15,}$/
const COLON = /\s*:/y

function parseJson(text) {
  return JSON.parse(/\d{16}/.test(text) ? quoteLarge(String(text)) : text)
}

// A number before a colon is not valid JSON, and stays as it is.
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
