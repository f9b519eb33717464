"""The programs of docs/python-web.md, unchanged."""

import importlib
import re

import pytest
from test_data_guide import blocks_of

ID = 1541815603606036481


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    for _, code in blocks_of("docs/python-web.md"):
        if name := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / name[1]).write_text(code)
    return importlib.import_module


def test_litestar(program):
    pytest.importorskip("litestar")
    from litestar.testing import TestClient

    app = program("litestar_shop").app
    with TestClient(app) as client:
        made = client.post("/orders", json={"item": "lamp"})
        order = made.json()
        assert made.status_code == 201 and re.fullmatch(r"\d{17,19}", order["id"])
        assert client.get(f"/orders/{order['id']}").json() == order
        assert client.post("/orders", json={"item": "bulb", "replaces_id": order["id"]}).json()["replaces_id"] == order["id"]
        assert client.post("/orders", json={"item": "bulb", "replaces_id": int(order["id"])}).status_code == 400
        assert client.get(f"/orders/{ID}").status_code == 404
        for text in "007", "1e18", "5.0", "-1", "9223372036854775808":
            response = client.get(f"/orders/{text}")
            assert response.status_code == 400 and "is not an ID in decimal" in response.json()["detail"], text
    schemas = app.openapi_schema.to_schema()
    assert schemas["components"]["schemas"]["Order"]["properties"]["id"]["type"] == "string"
    assert schemas["paths"]["/orders/{order_id}"]["get"]["parameters"][0]["schema"]["type"] == "string"


def test_litestar_uses_no_pydantic_for_path_parameters(program):
    """The page's warning is true."""
    litestar = pytest.importorskip("litestar")
    from frazil.pydantic import SnowflakeId
    from litestar.params import FromPath
    from litestar.testing import TestClient

    @litestar.get("/text/{key:str}", sync_to_thread=False)
    def text(key: FromPath[SnowflakeId]) -> str:
        return str(key)

    @litestar.get("/int/{key:int}", sync_to_thread=False)
    def number(key: FromPath[int]) -> str:
        return str(key)

    with TestClient(litestar.Litestar([text, number])) as client:
        assert [client.get(path).text for path in ("/text/5.0", f"/text/{2**70}", "/int/007")] == ["5", str(2**70), "7"]


def test_strawberry(program):
    pytest.importorskip("strawberry")
    schema = program("strawberry_shop").schema
    made = schema.execute_sync('mutation { create(item: "lamp") { id } }').data["create"]
    assert re.fullmatch(r"[1-9]\d{16,18}", made["id"])
    query = "query ($id: Snowflake!) { order(id: $id) { id } }"
    assert schema.execute_sync(query, {"id": made["id"]}).data["order"] == made
    for value, reason in (int(made["id"]), "an ID is a string, in quotes, not"), (1e18, "not 1e+18"), ("007", "is not an ID in decimal"):
        [error] = schema.execute_sync(query, {"id": value}).errors
        assert reason in error.message
    [error] = schema.execute_sync('{ order(id: "1e18") { id } }').errors
    assert "is not an ID in decimal" in error.message
