// A server with MongoDB's protocol: SecantusDB from PyPI, on WiredTiger like MongoDB. MongoDB's own server is not in any package registry.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Starts the server on a free port, with empty data that it removes at its end: `{ url, stop }`. The kernel ends it with this process. */
export async function startMongodb() {
  const program = process.env.FRAZIL_TEST_SECANTUSD
  if (!program) {
    throw new Error('FRAZIL_TEST_SECANTUSD is not set: tests/adapters/node/run.sh installs the server')
  }
  const options = ['--host', '127.0.0.1', '--port', '0', '--storage-path', ':memory:', '--standalone']
  const server = spawn('setpriv', ['--pdeathsig=KILL', '--', program, ...options], { stdio: ['ignore', 'ignore', 'pipe'] })
  const output = []
  for await (const line of createInterface(server.stderr)) {
    output.push(line)
    const [, address] = /listening on (\S+)/.exec(line) ?? []
    if (address) {
      server.stderr.resume()
      return {
        url: `mongodb://${address}/frazil`,
        async stop() {
          server.kill('SIGTERM')
          await once(server, 'exit')
        },
      }
    }
  }
  throw new Error(`SecantusDB did not start:\n${output.join('\n')}`)
}
