// A small HTTP API whose notes get their IDs from frazil, and some clients that keep it busy.
// usage: node demo/api.mjs --seconds S --out FILE
import { once } from 'node:events'
import { openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { FrazilError, Snowflake } from '../node/index.mjs' // in your program: from 'frazil'

const CLIENTS = 16

const { values } = parseArgs({ options: { seconds: { type: 'string' }, out: { type: 'string' } } })
const ids = await Snowflake.open('standard', { store: 'local' })
const out = openSync(values.out, 'w')
const notes = new Map()

/** POST /notes {"text": "..."} -> {"id": "..."}; GET /notes/ID -> the note, and when it was made. */
async function handle(request) {
  if (request.method === 'POST' && request.url === '/notes') {
    const { text } = await body(request)
    const id = ids.next() // a string: JSON carries it to every client unrounded
    writeSync(out, `${id}\n`) // before the client sees it, because the demo kills this process
    notes.set(id, text)
    return [201, { id }]
  }
  const [, id] = /^\/notes\/(\d+)$/.exec(request.url) ?? []
  if (request.method === 'GET' && notes.has(id)) {
    return [200, { id, text: notes.get(id), created: ids.layout.decode(id).time }]
  }
  return [404, { error: 'no such note' }]
}

async function body(request) {
  let text = ''
  for await (const chunk of request) {
    text += chunk
  }
  return JSON.parse(text)
}

const server = createServer(async (request, response) => {
  let [status, answer] = [500, { error: 'internal' }]
  try {
    ;[status, answer] = await handle(request)
  } catch (error) {
    // The clock went back, or a tick is used up: the client may retry.
    if (error instanceof FrazilError && error.retryAfterMs !== undefined) {
      ;[status, answer] = [503, { error: error.code, retryAfterMs: error.retryAfterMs }]
    }
  }
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}/notes`

const begin = performance.now()
const end = begin + 1000 * Number(values.seconds)
let count = 0
let slowest = 0

async function client() {
  while (performance.now() < end) {
    const asked = performance.now()
    const response = await fetch(url, { method: 'POST', body: JSON.stringify({ text: `note ${count}` }) })
    const { id } = await response.json()
    if (response.status !== 201) {
      throw new Error(`the API answered ${response.status}`)
    }
    slowest = Math.max(slowest, performance.now() - asked)
    count++
    if (count % 100 === 0) {
      const note = await (await fetch(`${url}/${id}`)).json()
      if (note.id !== id) {
        throw new Error(`asked for note ${id}, got ${note.id}`)
      }
    }
  }
}
await Promise.all(Array.from({ length: CLIENTS }, client))
const seconds = (performance.now() - begin) / 1000

server.close()
server.closeAllConnections?.()
const { spec } = ids
ids.close() // releases the node number
const note = `${CLIENTS} HTTP clients, one ID per POST; slowest answer ${slowest.toFixed(1)} ms`
console.log(JSON.stringify({ language: 'Node.js', program: 'api', spec, count, seconds: Number(seconds.toFixed(2)), note }))
