// Calls the tools of a server in a process of its own, as an agent in TypeScript does, and prints the answers.
// usage: node client.mjs PACKAGE COMMAND ARGUMENT... < CALLS, a JSON array of [tool, arguments]; "$1.id" is a part of the first answer
import { readFileSync } from 'node:fs'

const [, , name, command, ...args] = process.argv
const isFirst = name === '@modelcontextprotocol/sdk'
const { Client } = await import(isFirst ? `${name}/client/index.js` : name)
const { StdioClientTransport } = await import(isFirst ? `${name}/client/stdio.js` : `${name}/stdio`)
const client = new Client({ name: 'agent', version: '1.0.0' })
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }))
const answers = []
const given = value => {
  const [, kind, nth, path] = /^([$#])(\d)\.(\w+)$/.exec(value) ?? []
  const found = kind && answers[nth].structuredContent[path]
  return kind === '#' ? Number(found) : (found ?? value)
}
for (const [tool, values] of JSON.parse(readFileSync(0, 'utf8'))) {
  const filled = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, given(value)]))
  answers.push(await client.callTool({ name: tool, arguments: filled }))
}
console.log(JSON.stringify({ tools: (await client.listTools()).tools, answers }))
await client.close()
