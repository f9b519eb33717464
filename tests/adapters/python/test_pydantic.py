"""frazil.pydantic with Pydantic, without a web framework."""

import copy
import decimal
import json
import pickle
import re
import uuid
from collections.abc import Sequence
from typing import Annotated, Literal

import frazil
import numpy
import pytest
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from frazil.sqlalchemy import SnowflakeType
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

ID = 1541815603606036481
LARGEST = 2**63 - 1
IDS = frazil.Snowflake("standard", node=3)
TYPES = pytest.mark.parametrize("type_", [SnowflakeId, SnowflakeIdIn], ids=["SnowflakeId", "SnowflakeIdIn"])


class Item(BaseModel):
    id: SnowflakeId = Field(default_factory=IDS)
    parent: SnowflakeId | None = None
    tags: list[SnowflakeId] = []
    names: dict[SnowflakeId, str] = {}


def why(call, *arguments):
    """Returns the text of the one error of a call."""
    with pytest.raises(ValidationError) as refused:
        call(*arguments)
    [error] = refused.value.errors()
    assert error["type"] == "snowflake_id" and "ctx" not in error
    return error["msg"]


def test_an_id_is_an_int_inside_and_a_string_in_json():
    item = Item(id=ID, parent=LARGEST, tags=[0, ID], names={ID: "a"})
    assert item.model_dump() == {"id": ID, "parent": LARGEST, "tags": [0, ID], "names": {ID: "a"}}
    in_json = {"id": str(ID), "parent": str(LARGEST), "tags": ["0", str(ID)], "names": {str(ID): "a"}}
    assert item.model_dump(mode="json") == json.loads(item.model_dump_json()) == in_json
    for again in Item.model_validate_json(item.model_dump_json()), Item.model_validate(in_json), pickle.loads(pickle.dumps(item)):
        assert again == item and type(again.id) is int and [type(key) for key in again.names] == [int]
    assert Item(id=ID).model_dump_json(exclude_none=True, exclude_defaults=True) == f'{{"id":"{ID}"}}'


@pytest.mark.parametrize("factory", [IDS, IDS.next], ids=["generator", "method"])
def test_a_default_factory(factory):
    class Made(BaseModel):
        id: SnowflakeId = Field(default_factory=factory)

    first, second = Made(), Made()
    assert first.id < second.id and IDS.layout.decode(first.id).node == 3


@TYPES
@pytest.mark.parametrize("strict", [False, True], ids=["lax", "strict"])
def test_values_that_are_ids(type_, strict):
    adapter = TypeAdapter(Annotated[type_, Field(strict=strict)])
    for id in 0, 1, 2**53 - 1, 2**53 + 1, ID, LARGEST:
        assert adapter.validate_python(str(id)) == adapter.validate_json(f'"{id}"') == id
        assert isinstance(adapter.validate_python(str(id)), int)
    for id in 0, 5, 2**53 - 1:
        assert adapter.validate_python(id) == adapter.validate_json(str(id)) == id
    if type_ is SnowflakeId:
        assert adapter.validate_python(LARGEST) == LARGEST


@TYPES
@pytest.mark.parametrize("strict", [False, True], ids=["lax", "strict"])
@pytest.mark.parametrize(
    "value, says",
    [
        (1.5e18, "the float 1.5e+18: floats round IDs above 2^53"),
        (1.0, "the float 1.0"),
        (float("nan"), "the float nan"),
        (True, "not bool"),
        (None, "not NoneType"),
        (b"5", "not bytes"),
        ([5], "not list"),
        (-1, "negative"),
        (2**63, "out of range: 0 to 9223372036854775807"),
        (10**400, "out of range"),
        ("", "0 characters"),
        ("1e18", "'e' at position 1"),
        ("1.0", "'.' at position 1"),
        ("007", "without leading zeros"),
        ("0000000000000000007", "leading zeros"),
        (" 7", "' ' at position 0"),
        ("7 ", "' ' at position 1"),
        ("7\n", r"'\n' at position 1"),
        ("+7", "'+' at position 0"),
        ("-7", "'-' at position 0"),
        ("1_000", "'_' at position 1"),
        ("\u0667", "at position 0"),
        ("\ud800", "surrogate"),
        ("{id}", "'{' at position 0"),
        ("9223372036854775808", "above 9223372036854775807"),
        ("1" * 10_000, "10000 characters"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_values_that_are_not_ids_are_refused_with_the_reason(type_, strict, value, says):
    assert says in why(TypeAdapter(Annotated[type_, Field(strict=strict)]).validate_python, value)


@TYPES
@pytest.mark.parametrize(
    "text, says",
    [
        (str(2**53), "9007199254740992 is a number above 2^53 - 1, which JavaScript rounds"),
        (str(ID), "send the ID as a decimal string"),
        ("1e18", "the float 1e+18"),
        ("1.0", "the float 1.0"),
        ("true", "not bool"),
        ("null", "not NoneType"),
        ("-5", "negative"),
        ("123456789012345678901234567890", "out of range"),
        ('"1e18"', "'e' at position 1"),
        ('"0000000000000000007"', "leading zeros"),
        ("{}", "not dict"),
    ],
)
def test_json_that_is_not_an_id(type_, text, says):
    assert says in why(TypeAdapter(type_).validate_json, text)


def test_a_body_that_was_parsed_before_has_no_large_numbers():
    assert "JavaScript rounds" in why(TypeAdapter(SnowflakeIdIn).validate_python, ID)
    assert TypeAdapter(SnowflakeIdIn).validate_python(str(ID)) == ID
    assert TypeAdapter(SnowflakeIdIn).dump_json(ID) == f'"{ID}"'.encode()


def test_a_dump_is_good_for_another_model():
    class Given(BaseModel):
        model_config = ConfigDict(revalidate_instances="always")
        id: SnowflakeIdIn
        tags: list[SnowflakeIdIn] = []
        names: dict[SnowflakeIdIn, str] = {}
        inner: "Given | None" = None

    class Made(Given):
        own: SnowflakeId

    text = {"id": str(ID), "tags": [str(LARGEST), 7], "names": {str(ID): "a"}}
    given = Given.model_validate({**text, "inner": text})
    dump = given.model_dump()
    assert dump["tags"] == [LARGEST, 7] and dump["inner"]["names"] == {ID: "a"}
    for again in given, dump, pickle.loads(pickle.dumps(dump)), copy.deepcopy(given), given.model_dump(mode="json"):
        assert Given.model_validate(again) == given
    assert Made(own=IDS.next(), **dump).tags == [LARGEST, 7] and Given(id=given.id).id == ID
    # For all other libraries it is an int. A number computed from it may not be exact.
    assert json.dumps(dump["tags"]) == f"[{LARGEST}, 7]" and f"{given.id} {given.id!r}" == f"{ID} {ID}"
    assert frazil.format_id(given.id, "hex") == frazil.format_id(ID, "hex") and IDS.layout.decode(given.id) == IDS.layout.decode(ID)
    assert "JavaScript rounds" in why(TypeAdapter(SnowflakeIdIn).validate_python, given.id + 1)
    # Drivers get a plain int, because they may not know the type.
    assert type(SnowflakeType().process_bind_param(given.id, None)) is int


def test_integers_of_other_types():
    id = TypeAdapter(SnowflakeId).validate_python(numpy.int64(ID))
    assert type(id) is int and id == ID
    id = TypeAdapter(SnowflakeId).validate_python(decimal.Decimal(ID))
    assert type(id) is int and id == ID
    for value in (decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal("1E+1000000")):
        assert "not Decimal" in why(TypeAdapter(SnowflakeId).validate_python, value)
    assert "-1" in why(TypeAdapter(SnowflakeId).validate_python, decimal.Decimal(-1))
    assert "floats round" in why(TypeAdapter(SnowflakeId).validate_python, numpy.float64(ID))
    assert "not float32" in why(TypeAdapter(SnowflakeId).validate_python, numpy.float32(1))


@TYPES
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_json_schema_is_a_string_in_both_directions(type_, mode):
    schema = TypeAdapter(type_).json_schema(mode=mode)
    assert schema.keys() == {"type", "pattern", "examples"} and schema["type"] == "string"
    for text in "0", "7", str(ID), str(LARGEST), *schema["examples"]:
        assert re.search(schema["pattern"], text) and TypeAdapter(type_).validate_python(text) >= 0
    for text in "", "007", "+7", "-7", " 7", "1e18", "1.0", "12345678901234567890":
        assert not re.search(schema["pattern"], text)

    class All(BaseModel):
        id: type_
        maybe: type_ | None
        many: list[type_]
        by_id: dict[type_, int]

    properties = All.model_json_schema(mode=mode)["properties"]
    assert properties["id"]["type"] == "string"
    assert {each["type"] for each in properties["maybe"]["anyOf"]} == {"string", "null"}
    assert properties["many"]["items"] == schema
    assert properties["by_id"]["type"] == "object"
    assert schema["pattern"] in json.dumps(properties["by_id"])


def test_a_change_of_one_schema_changes_no_other():
    TypeAdapter(SnowflakeId).json_schema()["pattern"] = "changed"
    TypeAdapter(SnowflakeId).json_schema()["examples"].append("changed")
    assert "changed" not in str(TypeAdapter(SnowflakeId).json_schema())


def test_unions_and_constraints():
    class Dog(BaseModel):
        kind: Literal["dog"]
        id: SnowflakeId

    class Cat(BaseModel):
        kind: Literal["cat"]
        id: SnowflakeId | None

    pets = TypeAdapter(list[Annotated[Dog | Cat, Field(discriminator="kind")]])
    text = f'[{{"kind":"dog","id":"{ID}"}},{{"kind":"cat","id":null}}]'.encode()
    assert pets.dump_json(pets.validate_json(text)) == text

    either = TypeAdapter(SnowflakeId | list[SnowflakeId] | uuid.UUID | None)
    name = uuid.uuid4()
    for value, dumped in (ID, f'"{ID}"'), ([ID, 1], f'["{ID}","1"]'), (name, f'"{name}"'), (None, "null"):
        assert either.validate_python(value) == value
        assert either.dump_json(value).decode() == dumped

    positive = TypeAdapter(Annotated[SnowflakeId, Field(gt=0)])
    assert positive.validate_python(str(ID)) == ID
    with pytest.raises(ValidationError, match="greater than 0"):
        positive.validate_python("0")

    assert TypeAdapter(Sequence[SnowflakeId]).validate_json(f'["{ID}"]') == [ID]
    assert TypeAdapter(tuple[SnowflakeId, ...]).dump_json((ID,)) == f'["{ID}"]'.encode()


def test_strict_and_frozen_models_and_assignments():
    class Kept(BaseModel):
        model_config = ConfigDict(strict=True, frozen=True)
        id: SnowflakeId

    class Changed(BaseModel):
        model_config = ConfigDict(validate_assignment=True, from_attributes=True)
        id: SnowflakeId

    assert Kept(id=str(ID)) == Kept(id=ID) and len({Kept(id=ID), Kept(id=str(ID))}) == 1
    changed = Changed.model_validate(Kept(id=ID))
    changed.id = str(LARGEST)
    assert changed.id == LARGEST
    with pytest.raises(ValidationError, match="floats round"):
        changed.id = 1e18


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_value_that_was_not_validated_is_not_written_as_an_id():
    assert Item.model_construct(id=1.5e18).model_dump_json(include={"id"}) != '{"id":"1.5e+18"}'


def test_the_errors_of_a_model_name_the_place():
    with pytest.raises(ValidationError) as refused:
        Item.model_validate({"id": 1.5, "tags": ["1", "x"], "names": {"+1": "a"}})
    assert [error["loc"] for error in refused.value.errors()] == [("id",), ("tags", 1), ("names", "+1", "[key]")]


def test_litestar_describes_an_id_as_a_string():
    litestar = pytest.importorskip("litestar")

    class Order(BaseModel):
        id: SnowflakeId
        parent: SnowflakeId | None = None
        tags: list[SnowflakeIdIn] = Field(description="which", default=[])
        count: int = 0

    @litestar.post("/orders/{key:int}", sync_to_thread=False)
    def create(key: SnowflakeId, data: Order) -> Order:
        return data

    described = litestar.Litestar([create]).openapi_schema.to_schema()
    text = {"type": "string", "pattern": "^(0|[1-9][0-9]{0,18})$"}
    [order] = [each for each in described["components"]["schemas"].values() if "count" in each["properties"]]
    assert order["properties"] == {
        "id": text,
        "parent": {"oneOf": [text, {"type": "null"}]},
        "tags": {"type": "array", "items": text, "description": "which", "default": []},
        "count": {"type": "integer", "default": 0},
    }
    [parameter] = described["paths"]["/orders/{key}"]["post"]["parameters"]
    assert parameter["schema"] == text
