"""frazil.pydantic and frazil.sqlalchemy in FastAPI and SQLModel."""

import json
from typing import Annotated

import frazil
import pytest
import sql
from fastapi import FastAPI, Form, Header, HTTPException, Query
from fastapi.testclient import TestClient
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from frazil.sqlalchemy import SnowflakeType, check_columns
from pydantic import BaseModel
from sqlalchemy import MetaData
from sqlmodel import Field, Session, SQLModel, create_engine, select

ID = 1541815603606036481
IDS = frazil.Snowflake("standard", node=5)


class ItemIn(BaseModel):
    parent: SnowflakeIdIn
    tags: list[SnowflakeIdIn] = []


class Item(BaseModel):
    id: SnowflakeId
    parent: SnowflakeId | None = None
    tags: list[SnowflakeId] = []


class Row:
    """A row like an ORM's."""

    id, parent, tags = ID, None, [ID]


app = FastAPI()


@app.get("/items/{id}")
def read(
    id: SnowflakeId,
    also: Annotated[list[SnowflakeId], Query()] = [],  # noqa: B006
    after: SnowflakeId | None = None,
    x_parent: Annotated[SnowflakeId | None, Header()] = None,
) -> Item:
    assert type(id) is int
    return Item(id=id, tags=[*also, *([after] if after is not None else [])], parent=x_parent)


@app.post("/items")
def make(item: ItemIn) -> Item:
    assert isinstance(item.parent, int)
    return Item(id=ID, parent=item.parent, tags=item.tags)


@app.get("/row", response_model=Item)
def row():
    return Row()


@app.get("/names")
def names() -> dict[SnowflakeId, str]:
    return {ID: "a"}


client = TestClient(app)


def post(body):
    return client.post("/items", content=body, headers={"content-type": "application/json"})


def test_parameters_and_responses():
    assert client.get(f"/items/{ID}").json() == {"id": str(ID), "parent": None, "tags": []}
    response = client.get(f"/items/{ID}?also=1&also={ID}&after=2", headers={"x-parent": "3"})
    assert response.json() == {"id": str(ID), "parent": "3", "tags": ["1", str(ID), "2"]}
    assert client.get("/row").text == f'{{"id":"{ID}","parent":null,"tags":["{ID}"]}}'
    assert client.get("/names").json() == {str(ID): "a"}


@pytest.mark.parametrize("id", ["1e18", "1.0", "007", "+7", "-7", "%207", "9223372036854775808", "true", "x"])
def test_a_parameter_that_is_not_an_id_is_422(id):
    for url in f"/items/{id}", f"/items/1?also=1&also={id}", f"/items/1?after={id}":
        url = url.replace("+", "%2B")
        response = client.get(url)
        assert response.status_code == 422, url
        [error] = response.json()["detail"]
        assert error["type"] == "snowflake_id" and "is not an ID in decimal" in error["msg"]


def test_bodies():
    response = post(f'{{"parent": "{ID}", "tags": ["{ID}", "7", 8]}}')
    assert response.status_code == 200 and response.json() == {"id": str(ID), "parent": str(ID), "tags": [str(ID), "7", "8"]}


@pytest.mark.parametrize(
    "number, says",
    [
        (str(ID), "JavaScript rounds"),
        ("1e18", "floats round"),
        ("1.0", "float"),
        ("true", "bool"),
        ("null", "NoneType"),
        ('"007"', "zeros"),
    ],
)
def test_a_body_without_an_id_is_422(number, says):
    response = post(f'{{"parent": {number}}}')
    assert response.status_code == 422
    [error] = response.json()["detail"]
    assert error["loc"] == ["body", "parent"] and says in error["msg"]
    response = post(f'{{"parent": "1", "tags": ["1", {number}]}}')
    assert response.status_code == 422 and response.json()["detail"][0]["loc"] == ["body", "tags", 1]


def test_forms():
    forms = FastAPI()

    @forms.post("/")
    def form(id: Annotated[SnowflakeId, Form()]) -> SnowflakeId:
        return id

    client = TestClient(forms)
    assert client.post("/", data={"id": str(ID)}).text == f'"{ID}"'
    assert client.post("/", data={"id": "1e18"}).status_code == 422


def test_openapi_says_string_everywhere():
    openapi = app.openapi()
    read = openapi["paths"]["/items/{id}"]["get"]["parameters"]
    by_name = {parameter["name"]: parameter["schema"] for parameter in read}
    assert by_name["id"]["type"] == "string" and by_name["id"]["pattern"] and by_name["id"]["examples"]
    assert by_name["also"]["items"]["type"] == "string"
    schemas = openapi["components"]["schemas"]
    assert {"Item", "ItemIn"} <= schemas.keys() and not any(name.startswith("Item-") for name in schemas)
    assert schemas["Item"]["properties"]["id"]["type"] == schemas["ItemIn"]["properties"]["parent"]["type"] == "string"
    assert '"integer"' not in json.dumps([schemas["Item"], schemas["ItemIn"], read])


class Hero(SQLModel, table=True):
    __tablename__ = "hero"
    id: SnowflakeId = Field(default_factory=IDS, primary_key=True, sa_type=SnowflakeType)
    name: str = Field(max_length=50)
    team_id: SnowflakeId | None = Field(default=None, foreign_key="hero.id", sa_type=SnowflakeType)


class HeroIn(SQLModel):
    name: str
    team_id: SnowflakeIdIn | None = None


@pytest.mark.parametrize("database", sql.DATABASES)
def test_sqlmodel(database, tmp_path):
    url = sql.url(database, tmp_path)
    engine = create_engine(url, connect_args={"check_same_thread": False} if database == "sqlite" else {})
    heroes = FastAPI()

    @heroes.post("/heroes")
    def make(hero: HeroIn) -> Hero:
        with Session(engine, expire_on_commit=False) as session:
            made = Hero(**hero.model_dump())
            session.add(made)
            session.commit()
            return made

    @heroes.get("/heroes/{id}")
    def read(id: SnowflakeId) -> Hero:
        with Session(engine) as session:
            hero = session.get(Hero, id)
            if hero is None:
                raise HTTPException(404)
            return hero

    left = MetaData()
    try:
        Hero.__table__.create(engine)
        with engine.connect() as connection:
            check_columns(connection, Hero.metadata)
        client = TestClient(heroes)
        first = client.post("/heroes", json={"name": "first"}).json()
        assert isinstance(first["id"], str) and IDS.layout.decode(first["id"]).node == 5
        second = client.post("/heroes", json={"name": "second", "team_id": first["id"]}).json()
        assert client.get(f"/heroes/{second['id']}").json() == {"id": second["id"], "name": "second", "team_id": first["id"]}
        assert client.get("/heroes/7").status_code == 404
        assert client.get("/heroes/1e18").status_code == 422
        assert client.post("/heroes", json={"name": "third", "team_id": int(first["id"])}).status_code == 422

        with Session(engine) as session, sql.statements(engine) as sent:
            session.add_all([Hero(name=str(n)) for n in range(1000)])
            session.commit()
            assert len(sent) == 1 and "RETURNING" not in sent[0]
            assert len(set(session.exec(select(Hero.id)).all())) == 1002
    finally:
        left.reflect(engine)
        left.drop_all(engine)
        engine.dispose()
