"""docs/agents.md with the real packages: each program of the page, unchanged, and clients in Python and TypeScript at its far end."""

import asyncio
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fastmcp
import pytest
from fastmcp.client.transports import StdioTransport
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer
from pydantic import BaseModel, TypeAdapter, ValidationError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs/agents.md").read_text()
PROGRAMS = dict(re.findall(r"^```(?:py|mjs)\n(?:#|//) (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ID = 1541815603606036481
# The orders that a client makes. Most of their IDs are no doubles.
ORDERS = 8
CALLS = [
    *[["create_order", {"item": f"lamp {nth}"}] for nth in range(ORDERS)],
    *[["get_order", {"order_id": f"${nth}.id"}] for nth in range(ORDERS)],
    ["get_order", {"order_id": "#0.id"}],
    ["get_order", {"order_id": 1.5e18}],
    ["get_order", {"order_id": "007"}],
]
PLAIN = """
from mcp.server import MCPServer
server = MCPServer("plain")

@server.tool()
def plain_id() -> int:
    return 1541815603606036481

server.run()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the page's programs, and the packages that they import."""
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(code)
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for name in ("@modelcontextprotocol", "zod"):
        (modules / name).symlink_to(HERE / "node_modules" / name)
    # A copy, because from a link the addon's adapters would find no framework.
    for file in ("package.json", *json.loads((ROOT / "node/package.json").read_text())["files"]):
        (modules / "frazil" / file).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / "node" / file).is_dir() else shutil.copy
        copy(ROOT / "node" / file, modules / "frazil" / file)
    shutil.copy(HERE / "client.mjs", tmp_path)
    yield tmp_path
    for name in PROGRAMS:
        sys.modules.pop(name.removesuffix(".py"), None)


def program(name):
    return importlib.import_module(name)


def by_typescript(package):
    def session(command, calls):
        run = ["node", "client.mjs", package, *command]
        done = subprocess.run(run, input=json.dumps(calls), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return session


def in_python(connect, call_tool):
    """A session of a client in Python, with the answers in the form of the protocol."""

    async def session(command, calls):
        async with connect(command) as client:
            answers = []
            for tool, values in calls:
                values = dict(values)
                if found := re.fullmatch(r"([$#])(\d)\.(\w+)", str(values.get("order_id"))):
                    id = answers[int(found[2])]["structuredContent"][found[3]]
                    values["order_id"] = id if found[1] == "$" else int(float(id))
                answers.append(await call_tool(client, tool, values))
            listed = await client.list_tools()
            tools = [tool.model_dump(mode="json", by_alias=True) for tool in getattr(listed, "tools", listed)]
            return {"tools": tools, "answers": answers}

    return lambda command, calls: asyncio.run(session(command, calls))


def in_protocol(answer):
    content = [part.model_dump(mode="json") for part in answer.content]
    return {"content": content, "structuredContent": answer.structured_content, "isError": answer.is_error}


def stdio(command):
    return {"command": command[0], "args": command[1:], "env": dict(os.environ)}


async def mcp_call(client, tool, values):
    return in_protocol(await client.call_tool(tool, values))


async def fastmcp_call(client, tool, values):
    return in_protocol(await client.call_tool(tool, values, raise_on_error=False))


CLIENTS = {
    "MCP Python SDK": in_python(lambda command: Client(StdioServerParameters(**stdio(command))), mcp_call),
    "FastMCP": in_python(lambda command: fastmcp.Client(StdioTransport(**stdio(command))), fastmcp_call),
    "MCP TypeScript SDK 2": by_typescript("@modelcontextprotocol/client"),
    "MCP TypeScript SDK 1": by_typescript("@modelcontextprotocol/sdk"),
}
SERVERS = {
    "MCP Python SDK": [sys.executable, "orders_mcp.py"],
    "FastMCP": [sys.executable, "orders_fastmcp.py"],
    "MCP TypeScript SDK": ["node", "orders_mcp.mjs"],
}


def said(answer):
    assert answer["isError"], answer
    return " ".join(part["text"] for part in answer["content"])


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("command", SERVERS.values(), ids=SERVERS)
def test_ids_are_exact_at_the_far_end(command, client):
    session = client(command, CALLS)
    made, got, [rounded, a_float, padded] = session["answers"][:ORDERS], session["answers"][ORDERS:-3], session["answers"][-3:]
    ids = [answer["structuredContent"]["id"] for answer in made]
    assert len(set(ids)) == ORDERS and all(re.fullmatch(r"\d{17,19}", id) for id in ids)
    # As numbers, some would have been rounded.
    assert any(int(float(id)) != int(id) for id in ids)
    for nth, (id, answer) in enumerate(zip(ids, got, strict=True)):
        # The server finds the order, so the ID is the one that it has made.
        order = {"id": id, "item": f"lamp {nth}"}
        assert answer["structuredContent"] == json.loads(answer["content"][0]["text"]) == order, answer
    assert re.search("send (it as a string|the ID as a decimal string)", said(rounded))
    assert re.search("string", said(a_float)) and "007" in said(padded)
    for tool in session["tools"]:
        assert "integer" not in json.dumps(tool), tool
        assert not large_numbers(tool)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_plain_integer_is_rounded_in_typescript(client, request):
    """The page's warning is true."""
    [answer] = client([sys.executable, "-c", PLAIN], [["plain_id", {}]])["answers"]
    found = answer["structuredContent"]["result"]
    assert found == (1541815603606036500 if "TypeScript" in request.node.name else ID)


def test_only_one_of_the_two_types_refuses_a_number_that_a_client_has_rounded():
    """The page's warning is true: the SDK hands an int to Pydantic."""
    server = MCPServer("both")
    taken = []

    @server.tool()
    def trusting(id: SnowflakeId) -> None:
        taken.append(id)

    @server.tool()
    def careful(id: SnowflakeIdIn) -> None:
        taken.append(id)

    async def calls():
        async with Client(server) as client:
            for tool in "trusting", "careful":
                for value in 1541815603606036500, 1.5418156036060365e18, str(ID):
                    yield tool, (await client.call_tool(tool, {"id": value})).is_error

    async def collect():
        return [answer async for answer in calls()]

    assert asyncio.run(collect()) == [
        ("trusting", False),
        ("trusting", True),
        ("trusting", False),
        ("careful", True),
        ("careful", True),
        ("careful", False),
    ]
    assert taken == [1541815603606036500, ID, ID]


def test_text_that_a_model_copies():
    orders = program("orders_checked")

    async def session():
        async with Client(orders.server) as client:
            tools = (await client.list_tools()).tools
            assert all(tool.input_schema["properties"].popitem()[1]["type"] == "string" for tool in tools)
            id = (await client.call_tool("create_order", {"item": "lamp"})).content[0].text
            assert re.fullmatch(r"order_[0-9A-Z]{14}", id)
            ask = lambda order_id: client.call_tool("get_order", {"order_id": order_id})
            for good in id, id.lower(), f"{id[:10]}-{id[10:14]} {id[14:]}":
                assert (await ask(good)).content[0].text == "lamp"
            letters = id.removeprefix("order_")
            wrong = [letters[:at] + ("7" if letters[at] != "7" else "W") + letters[at + 1 :] for at in range(14)]
            wrong += [
                letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :] for at in range(13) if letters[at] != letters[at + 1]
            ]
            for text in wrong:
                answer = await ask("order_" + text)
                assert answer.is_error and "it was changed: copy it again from its source" in answer.content[0].text, text
                assert letters not in answer.content[0].text
            for text, says in [
                (letters, 'needs the prefix "order_" at position 0'),
                ("user_" + letters, 'needs the prefix "order_" at position 0'),
                ("order_" + id, "'_' at position 11"),
                (id[:-1], "has 13 characters and ends at position 19"),
                (ID, "an ID is a string such as"),
            ]:
                assert says in (answer := await ask(text)).content[0].text and answer.is_error

    asyncio.run(session())


def test_function_calling():
    functions = program("orders_functions")
    parameters = functions.TOOL["function"]["parameters"]
    assert parameters["properties"]["order_id"]["type"] == "string" and not large_numbers(functions.TOOL)
    call = {"function": {"arguments": json.dumps({"order_id": str(ID)})}}
    assert functions.arguments_of(call).order_id == ID
    for wrong in ID, 1541815603606036500, 1.5e18, "15418156036060364x":
        with pytest.raises(ValidationError, match="string|is not a digit of it"):
            functions.arguments_of({"function": {"arguments": json.dumps({"order_id": wrong})}})


def test_langchain():
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tool = program("orders_langchain").get_order
    call = {"type": "tool_call", "id": "1", "name": "get_order"}
    assert tool.invoke(call | {"args": {"order_id": str(ID)}}).content == "lamp"
    for wrong in ID, 1541815603606036500, 1.5e18:
        with pytest.raises(ValidationError, match="an ID is a decimal string|send the ID as a decimal string"):
            tool.invoke(call | {"args": {"order_id": wrong}})
    schema = convert_to_openai_tool(tool)
    assert schema["function"]["parameters"]["properties"]["order_id"]["type"] == "string" and not large_numbers(schema)


def large_numbers(schema):
    """Returns the numbers of a JSON document that not every program reads exactly."""
    if isinstance(schema, dict | list):
        values = schema.values() if isinstance(schema, dict) else schema
        return [number for value in values for number in large_numbers(value)]
    return [schema] if isinstance(schema, int | float) and abs(schema) > 2**53 else []


def test_a_large_number_in_a_schema_is_found():
    assert large_numbers({"a": [{"maximum": 2**63 - 1}], "b": -(2**63), "c": 2**53, "d": "9223372036854775807", "e": True}) == [
        2**63 - 1,
        -(2**63),
    ]


def test_no_schema_has_a_large_number():
    class Order(BaseModel):
        id: SnowflakeId
        parent: SnowflakeIdIn | None = None
        lines: dict[SnowflakeId, list[SnowflakeIdIn]] = {}

    schemas = [
        TypeAdapter(kind).json_schema(mode=mode) for kind in (SnowflakeId, SnowflakeIdIn, Order) for mode in ("validation", "serialization")
    ]
    schemas.append(json.loads((ROOT / "server/src/http/openapi.json").read_text()))
    printed = """
import { idJsonSchema, snowflakeId } from 'frazil/schema'
import { snowflakeId as type } from 'frazil/zod'
import * as z from 'zod/v4'
const standard = snowflakeId({ layout: 'standard' })['~standard'].jsonSchema
const target = { target: 'draft-2020-12' }
console.log(JSON.stringify([idJsonSchema, standard.input(target), standard.output(target), z.toJSONSchema(z.object({ id: type() }))]))
"""
    Path("printed.mjs").write_text(printed)
    schemas += json.loads(subprocess.run(["node", "printed.mjs"], check=True, capture_output=True, text=True).stdout)
    assert len(schemas) == 11
    for schema in schemas:
        assert not large_numbers(schema), schema
