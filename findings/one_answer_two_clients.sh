#!/usr/bin/env bash
# Agents: one answer of an MCP server holds an integer twice, and a client in TypeScript gets two different IDs from it.
#
# A tool of the MCP Python SDK 2.3.0 returns an object with an int. The answer has it as JSON in a text, and as a number in
# structuredContent. The SDK's client in Python reads both exactly. The TypeScript SDK 1.32.2 gives its program the text with
# all digits, and the number in structuredContent as a double, without a warning. The next call of a tool gets whichever the
# program took, and the server accepts the rounded number as an int.
# Remedy: the ID is a string in the tool's model.
. "$(dirname "$0")/begin.sh"
python_packages mcp==2.3.0 pydantic==2.14.4
npm_packages @modelcontextprotocol/sdk@1.32.2
cat > server.py <<'PY'
from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("orders")


class Order(BaseModel):
    id: int


@server.tool()
def newest_order() -> Order:
    """Returns the newest order."""
    return Order(id=253114818850979842)


@server.tool()
def digits(id: int) -> str:
    """Returns the ID that it was given."""
    return f"the server was given {id}"


server.run()
PY
cat > client.py <<'PY'
import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    async with stdio_client(StdioServerParameters(command=sys.executable, args=["server.py"])) as streams, ClientSession(*streams) as session:
        await session.initialize()
        answer = await session.call_tool("newest_order", {})
        structured = getattr(answer, "structured_content", None) or answer.structuredContent
        print("Python, text:", json.loads(answer.content[0].text)["id"])
        print("Python, structuredContent:", structured["id"])


asyncio.run(main())
PY
cat > client.mjs <<'JS'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const client = new Client({ name: 'agent', version: '1.0.0' })
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ['server.py'], stderr: 'ignore' }))
const answer = await client.callTool({ name: 'newest_order', arguments: {} })
console.log('TypeScript, text:', /\d+/.exec(answer.content[0].text)[0])
console.log('TypeScript, structuredContent:', String(answer.structuredContent.id))
const next = await client.callTool({ name: 'digits', arguments: { id: answer.structuredContent.id } })
console.log('TypeScript, the next call:', next.content[0].text)
await client.close()
JS
{ "$python" client.py && node client.mjs "$python"; } > seen 2> errors || { cat seen errors; exit 1; }
expect seen <<'SEEN'
Python, text: 253114818850979842
Python, structuredContent: 253114818850979842
TypeScript, text: 253114818850979842
TypeScript, structuredContent: 253114818850979840
TypeScript, the next call: the server was given 253114818850979840
SEEN
