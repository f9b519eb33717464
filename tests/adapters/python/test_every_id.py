"""IDs of each adapter through each validator, both ways. tests/vectors/adapters.json has the cases; Node's adapters also use them."""

import json
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import pytest
from django_shop import ALIASES, migrate

# isort: split
# The following imports need Django's setup, which the import above does.
import frazil
import frazil.numpy
import frazil.pandas
import frazil.polars
import numpy
import pandas
import polars
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import JsonResponse
from django.template import Context, Template
from django.test import Client, override_settings
from django.urls import Resolver404, resolve, reverse
from fastapi import FastAPI, Query
from fastapi.testclient import TestClient
from frazil.django import SnowflakeFormField, SnowflakeJSONEncoder
from frazil.django.rest_framework import SnowflakeField
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from frazil.sqlalchemy import SnowflakeType
from project import routing
from pydantic import BaseModel, Field, TypeAdapter
from rest_framework.renderers import JSONRenderer
from rest_framework.serializers import ModelSerializer
from rest_framework.serializers import ValidationError as RestError
from shop.models import Item
from sqlalchemy import Column, MetaData, Table, create_engine

CASES = json.loads((Path(__file__).resolve().parents[2] / "vectors/adapters.json").read_text())
IDS = [int(text) for text in CASES["ids"]]
MINTED = frazil.Snowflake("standard", node=9)

ENGINE = create_engine("sqlite://")
ROWS = Table("row", MetaData(), Column("id", SnowflakeType, primary_key=True, default=MINTED))
ROWS.create(ENGINE)


class Model(BaseModel):
    id: SnowflakeId = Field(default_factory=MINTED)
    given: SnowflakeIdIn = 0


class ItemSerializer(ModelSerializer):
    class Meta:
        model = Item
        fields = ("id",)


app = FastAPI()


@app.get("/{id}")
def read(id: SnowflakeId, also: Annotated[SnowflakeId, Query()] = 0) -> list[SnowflakeId]:
    return [id, also]


@app.post("/")
def make(given: Model) -> Model:
    return Model(id=given.given, given=given.given)


fast, client = TestClient(app), Client()


@pytest.fixture(scope="module", autouse=True)
def tables():
    migrate()


@pytest.fixture(autouse=True)
def rows():
    routing.alias = ALIASES["sqlite"]
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def saved(id):
    Item.objects.all().delete()
    Item.objects.create(id=id, name="one")
    return Item.objects.get()


def stored(id):
    with ENGINE.begin() as connection:
        connection.execute(ROWS.delete())
        connection.execute(ROWS.insert(), {"id": id})
        return connection.scalar(ROWS.select())


def written_by_a_template(id):
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="en"):
        return Template("{{ item.pk }}").render(Context({"item": saved(id)}))


# The text of an ID by each adapter. If an adapter writes JSON, this is the value in it.
WRITERS = {
    "SnowflakeId": lambda id: json.loads(TypeAdapter(SnowflakeId).dump_json(id)),
    "SnowflakeIdIn": lambda id: TypeAdapter(SnowflakeIdIn).dump_python(id, mode="json"),
    "FastAPI": lambda id: fast.get(f"/{id}").json()[0],
    "SQLAlchemy": lambda id: str(stored(id)),
    "Django": lambda id: str(saved(id).pk),
    "Django's templates": written_by_a_template,
    "Django's paths": lambda id: reverse("item", args=[id]).split("/")[2],
    "Django's fixtures": lambda id: str(json.loads(serializers.serialize("json", [saved(id)]))[0]["pk"]),
    # This encoder does not change numbers that JavaScript reads exactly.
    "SnowflakeJSONEncoder": lambda id: str(json.loads(JsonResponse({"id": id}, encoder=SnowflakeJSONEncoder).content)["id"]),
    "REST framework": lambda id: json.loads(JSONRenderer().render(ItemSerializer(saved(id)).data))["id"],
    "django-ninja": lambda id: client.get(f"/ninja/items/{saved(id).pk}").json()["id"],
    "numpy": lambda id: str(frazil.numpy.ids([id]).astype("U19")[0]),
    "pandas": lambda id: frazil.pandas.ids([id]).astype("string")[0],
    "polars": lambda id: frazil.polars.ids(polars.Series([id])).cast(polars.String)[0],
}


class Refused(Exception):
    """An answer that refuses a value."""


def answered(answer):
    if answer.status_code in (400, 404, 405, 422):
        raise Refused(answer.content)
    assert answer.status_code == 200, answer.content
    return answer.json()


def clean(text):
    # All fields of Django's forms strip spaces around the text.
    if text != text.strip():
        raise Refused
    return SnowflakeFormField().clean(text)


def post(json_text):
    return client.post(
        "/ninja/echo", data=f'{{"name": "", "category_id": {json_text}, "tags": [{json_text}]}}', content_type="application/json"
    )


# Functions that read the text of an ID, within JSON if possible.
VALIDATORS = {
    "SnowflakeId": TypeAdapter(SnowflakeId).validate_python,
    "SnowflakeIdIn": TypeAdapter(SnowflakeIdIn).validate_python,
    "a strict SnowflakeId": TypeAdapter(Annotated[SnowflakeId, Field(strict=True)]).validate_python,
    "a path in FastAPI": lambda text: answered(fast.get(f"/{quote(text)}"))[0],
    "a query in FastAPI": lambda text: answered(fast.get("/1", params={"also": text}))[1],
    "a field of a model in Django": Item._meta.pk.to_python,
    "a form in Django": clean,
    "a path in Django": lambda text: resolve(f"/items/{text}/").kwargs["id"],
    "REST framework": SnowflakeField().run_validation,
    "a path in django-ninja": lambda text: answered(client.get(f"/ninja/model/{quote(text)}"))["id"],
}
# Functions that read the JSON text of an ID.
JSON_VALIDATORS = {
    "SnowflakeId": TypeAdapter(SnowflakeId).validate_json,
    "SnowflakeIdIn": TypeAdapter(SnowflakeIdIn).validate_json,
    "a SnowflakeIdIn after a parser": lambda text: TypeAdapter(SnowflakeIdIn).validate_python(json.loads(text)),
    "FastAPI": lambda text: answered(fast.post("/", content=f'{{"given": {text}}}', headers={"content-type": "application/json"}))["given"],
    "REST framework": lambda text: SnowflakeField().run_validation(json.loads(text)),
    "a reference in django-ninja": lambda text: answered(post(text))["id"],
    "references in django-ninja": lambda text: answered(post(text))["next"],
}
# Columns also accept the form of 19 digits, which `format_id` writes.
COLUMNS = {
    "parse_id": frazil.parse_id,
    "numpy": lambda text: frazil.numpy.ids(numpy.array([text]))[0],
    "pandas": lambda text: frazil.pandas.ids(pandas.Series([text]))[0],
    "polars": lambda text: frazil.polars.ids(polars.Series([text]))[0],
}
REFUSALS = (frazil.FrazilError, ValueError, ValidationError, RestError, Resolver404, Refused)


@pytest.mark.parametrize("writer", WRITERS)
def test_every_id_passes_every_validator(writer):
    for id in [*IDS, MINTED.next(), Model().id, int(saved(None).pk)]:
        text = WRITERS[writer](id)
        assert text == str(id)
        for name, validate in {**VALIDATORS, **COLUMNS}.items():
            assert int(validate(text)) == id, name
        for name, validate in JSON_VALIDATORS.items():
            assert int(validate(f'"{text}"')) == id, name


@pytest.mark.parametrize("name", VALIDATORS)
@pytest.mark.parametrize("text", CASES["refused"], ids=ascii)
def test_no_other_text_passes(name, text):
    with pytest.raises(REFUSALS):
        VALIDATORS[name](text)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("text", CASES["refused"], ids=ascii)
def test_only_columns_take_the_form_of_19_digits(name, text):
    if len(text) == 19 and text.isdecimal() and int(text) < 2**63:
        assert COLUMNS[name](text) == int(text)
    else:
        with pytest.raises(frazil.errors.IdInvalidError):
            COLUMNS[name](text)


@pytest.mark.parametrize("name", JSON_VALIDATORS)
@pytest.mark.parametrize("text", [*map(json.dumps, CASES["refused"]), *CASES["refused_json"]])
def test_no_other_json_passes(name, text):
    with pytest.raises(REFUSALS):
        JSON_VALIDATORS[name](text)


@pytest.mark.parametrize("name", JSON_VALIDATORS)
def test_json_numbers_pass_that_javascript_reads_exactly(name):
    for id in [id for id in IDS if id < 2**53]:
        assert int(JSON_VALIDATORS[name](str(id))) == id
