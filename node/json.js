'use strict'
// JSON with 64-bit IDs. Plain JavaScript: the addon is not loaded.

// A string, which stays, or a number.
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const RISKY = /\d{16}/

function parseJson(text) {
  const exact = RISKY.test(text) ? String(text).replace(TOKEN, quoteIfRounded) : text
  return JSON.parse(exact)
}

function quoteIfRounded(token) {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token
}

function jsonReplacer(key, value) {
  return typeof value === 'bigint' ? String(value) : value
}

module.exports = { jsonReplacer, parseJson }
