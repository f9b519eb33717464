#!/usr/bin/env bash
# OpenAPI: two generators of clients type an int64 as bigint, and no client has the digits that the server sent.
#
# Both read the answer with JSON.parse first. @hey-api/openapi-ts 0.99.0 then makes BigInt(id.toString()), which is 1541815603606036500n
# for 1541815603606036481; its plugin for zod 4.6.7 makes BigInt(id), which is 1541815603606036480n. So one package returns two wrong IDs.
# orval 8.38.0 with `useBigInt` declares a bigint, and returns the number: `===` with the right bigint is never true.
# The type says that nothing can be lost, and TypeScript finds nothing.
# Remedy: the description says `type: string` for IDs.
. "$(dirname "$0")/begin.sh"
npm_packages @hey-api/openapi-ts@0.99.0 orval@8.38.0 typescript@5.9.3 zod@4.6.7 esbuild@0.28.2
cat > api.yaml <<'YAML'
openapi: 3.0.3
info: { title: shop, version: '1' }
paths:
  /order:
    get:
      operationId: getOrder
      responses:
        '200':
          description: an order
          content:
            application/json:
              schema: { $ref: '#/components/schemas/Order' }
components:
  schemas:
    Order:
      type: object
      required: [id]
      properties:
        id: { type: integer, format: int64 }
YAML
cat > openapi-ts.config.mjs <<'JS'
export default {
  input: './api.yaml',
  output: './hey',
  plugins: ['@hey-api/client-fetch', '@hey-api/transformers', { name: '@hey-api/sdk', transformer: true }, 'zod'],
}
JS
cat > orval.config.mjs <<'JS'
const output = { target: './orval/shop.ts', client: 'fetch', baseUrl: process.env.SERVER, override: { useBigInt: true } }
export default { shop: { input: './api.yaml', output } }
JS
cat > server.mjs <<'JS'
import { createServer } from 'node:http'
const answer = (_, response) => response.setHeader('content-type', 'application/json').end('{"id":1541815603606036481}')
const server = createServer(answer).listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
JS
cat > try.mjs <<'JS'
import { client } from './hey/client.gen.ts'
import { getOrder } from './hey/sdk.gen.ts'
import { zOrder } from './hey/zod.gen.ts'
import { getOrder as getByOrval } from './orval/shop.ts'
client.setConfig({ baseUrl: process.env.SERVER })
const show = (name, id) => console.log(`${name}: ${typeof id} ${id}`)
show('openapi-ts', (await getOrder()).data.id)
show('openapi-ts, zod', zOrder.parse(await (await fetch(process.env.SERVER)).json()).id)
show('orval', (await getByOrval()).data.id)
JS
node server.mjs > address &
trap 'kill %1; rm -rf "$work"' EXIT
for _ in {1..100}; do [ -s address ] && break; sleep 0.1; done
SERVER=$(cat address)
export SERVER
npx --no-install openapi-ts > log 2>&1 || { cat log && exit 1; }
npx --no-install orval > log 2>&1 || { cat log && exit 1; }
{
    grep -h 'id: ' hey/types.gen.ts orval/shop.ts
    npx --no-install esbuild try.mjs --bundle --platform=node --format=esm --outfile=all.mjs --log-level=error
    node all.mjs
} > seen
expect seen <<'SEEN'
    id: bigint;
  id: bigint;
openapi-ts: bigint 1541815603606036500
openapi-ts, zod: bigint 1541815603606036480
orval: number 1541815603606036500
SEEN
