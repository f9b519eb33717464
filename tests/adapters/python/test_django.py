"""`frazil.django` in a real project, on SQLite, PostgreSQL and MariaDB."""

import asyncio
import datetime
import decimal
import io
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from django_shop import ALIASES, FOLDER, manage, migrate, statements

# isort: split
# The following imports need Django's setup, which the import above does.
import django
import frazil
from django import forms
from django.apps import AppConfig, apps
from django.apps.registry import Apps
from django.contrib.contenttypes.models import ContentType
from django.core import serializers
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import call_command
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, IntegrityError, connections, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count
from django.db.models.functions import TruncDay
from django.http import JsonResponse
from django.template import Context, Template
from django.test import Client, override_settings
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.functional import lazystr
from frazil.django import (
    CreatedAt,
    SnowflakeAutoField,
    SnowflakeFormField,
    SnowflakeJSONEncoder,
    SnowflakeManager,
    created_at,
    created_between,
    generator,
    get_layout,
    get_snowflake,
)
from project import routing
from shop.models import Book, Category, Cheap, Comment, Customer, Item, Profile, Tag

BIG = 2**53
# True if Django passes numbers of more than 64 bits to the database, which refuses them.
OVERFLOWS = {database: django.VERSION < (5,) and database == "sqlite" for database in ALIASES}


@pytest.fixture(scope="session", autouse=True)
def tables():
    migrate()


@pytest.fixture(params=ALIASES)
def database(request):
    """Sends all queries of the test to one of the databases, and rolls the test's changes back."""
    routing.alias = ALIASES[request.param]
    with transaction.atomic(using=routing.alias):
        yield request.param
        transaction.set_rollback(True, using=routing.alias)


@pytest.fixture(params=ALIASES)
def committing(request):
    """Sends the queries of a test that commits transactions to one database, and removes the rows afterwards."""
    routing.alias = ALIASES[request.param]
    yield request.param
    for model in (Comment, Item, Category, Tag, Customer):
        model.objects.all().delete()


def is_new(id):
    """Returns whether an ID was minted within the last 10 minutes."""
    return isinstance(id, int) and datetime.datetime.now(datetime.UTC) - created_at(id) < datetime.timedelta(minutes=10)


# The schema.


def columns(database, app):
    """Returns each column of an application's tables: its table, its name and the database's description."""
    with connections[routing.alias].cursor() as cursor:
        if database == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE %s", [f"{app}_%"])
            tables = cursor.fetchall()
            assert not [sql for _, sql in tables if "AUTOINCREMENT" in sql.upper()]
            for table, _ in tables:
                cursor.execute(f"PRAGMA table_info({table})")
                yield from ((table, name, f"{kind} {default or ''}") for _, name, kind, _, default, _ in cursor.fetchall())
            return
        more = {"postgresql": "is_identity", "mariadb": "extra"}[database]
        schema = {"postgresql": "current_schema()", "mariadb": "database()"}[database]
        cursor.execute(
            f"SELECT table_name, column_name, data_type, column_default, {more} FROM information_schema.columns"
            f" WHERE table_schema = {schema} AND table_name LIKE %s",
            [f"{app}_%"],
        )
        yield from ((table, name, " ".join(str(part) for part in parts)) for table, name, *parts in cursor.fetchall())


def test_keys_and_references_are_plain_bigints(database):
    found = {(table, name): kind.lower() for app in ("shop", "ledger") for table, name, kind in columns(database, app)}
    keys = {
        (model._meta.db_table, field.column)
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in ("shop", "ledger")
        for field in model._meta.local_concrete_fields
        if field.primary_key or field.is_relation
    }
    of_django = {("shop_comment", "kind_id"), ("shop_customer_groups", "group_id"), ("shop_customer_user_permissions", "permission_id")}
    assert len(keys - of_django) > 20
    for column in keys - of_django:
        assert found[column].startswith("bigint"), column
        assert not any(word in found[column] for word in ("nextval", "yes", "auto_increment")), (column, found[column])


def test_a_row_without_an_id_is_refused_by_the_database(database):
    # With an INTEGER PRIMARY KEY of SQLite, a sequence or AUTO_INCREMENT, the database would number the row.
    with connections[routing.alias].cursor() as cursor, pytest.raises((IntegrityError, DatabaseError)):
        cursor.execute("INSERT INTO shop_category (name) VALUES ('no id')")


def test_django_keeps_its_own_list_of_migrations(database):
    from django.db.migrations.recorder import MigrationRecorder

    assert type(MigrationRecorder.Migration._meta.pk) is models.BigAutoField
    recorded = MigrationRecorder(connections[routing.alias]).migration_qs.create(app="shop", name="of a test")
    assert recorded.pk < 10_000


def test_migrations_are_stable_and_hold_no_generator(database):
    for _ in range(2):
        assert "No changes detected" in manage("makemigrations", "--check", "--dry-run")
    name, path, arguments, options = Item._meta.pk.deconstruct()
    assert (name, path, arguments) == ("id", "frazil.django.SnowflakeAutoField", [])
    assert set(options) <= {"auto_created", "primary_key", "serialize", "verbose_name"}


# Rows.


def test_saving_is_one_insert(database):
    item = Item(name="one")
    assert item.pk is None
    with statements() as sent:
        item.save()
    assert len(sent) == 1 and sent[0].startswith("INSERT")
    assert is_new(item.pk)
    with statements() as sent:
        Item.objects.create(name="two")
    assert len(sent) == 1 and sent[0].startswith("INSERT")
    with statements() as sent:
        item.save()
    assert len(sent) == 1 and sent[0].startswith("UPDATE")


def test_a_thousand_are_one_insert(database):
    items = [Item(name=f"item {n}") for n in range(1000)]
    ops, fields = connections[routing.alias].ops, Item._meta.local_concrete_fields
    batches = math.ceil(1000 / min(1000, ops.bulk_batch_size(fields, items)))
    assert batches == 1 or database == "sqlite" and django.VERSION < (6,)
    with statements() as sent:
        made = Item.objects.bulk_create(items)
    assert len(sent) == batches and all(statement.startswith("INSERT") for statement in sent)
    ids = [item.pk for item in made]
    assert all(a < b for a, b in itertools.pairwise(ids)) and is_new(ids[0])
    assert set(Item.objects.values_list("pk", flat=True)) == set(ids)


def test_explicit_ids_are_taken(database):
    assert Item.objects.create(id=7, name="seven").pk == 7
    assert Item.objects.create(id=0, name="zero").pk == 0
    Item.objects.create(id="8", name="eight")
    given = get_snowflake().next()
    Item.objects.bulk_create([Item(id=given, name="given"), Item(name="new")])
    assert Item.objects.get(name="given").pk == given and is_new(Item.objects.get(name="new").pk)
    # As with AutoField, an existing row is changed.
    with statements() as sent:
        Item(id=7, name="other").save()
    assert [statement.split()[0] for statement in sent] == ["UPDATE"]
    assert Item.objects.get(id=7).name == "other"
    Item(id=9, name="nine").save()
    assert set(Item.objects.filter(id__lt=10).values_list("id", flat=True)) == {0, 7, 8, 9}


def test_a_copy_is_a_new_row(database):
    item = Item.objects.create(name="one")
    first, item.pk, item.name = item.pk, None, "copy"
    with statements() as sent:
        item.save()
    assert [statement.split()[0] for statement in sent] == ["INSERT"]
    assert item.pk > first and Item.objects.count() == 2


def test_get_or_create_and_update_or_create(database):
    one, made = Item.objects.get_or_create(name="one", defaults={"price": 1})
    assert made and is_new(one.pk)
    assert Item.objects.get_or_create(name="one") == (one, False)
    same, made = Item.objects.update_or_create(name="one", defaults={"price": 2})
    assert (same.pk, same.price, made) == (one.pk, 2, False)
    other, made = Item.objects.update_or_create(id=5, defaults={"name": "five"})
    assert (other.pk, made) == (5, True)


def test_an_update_of_a_missing_row_inserts_nothing(database):
    for options in ({"force_update": True}, {"update_fields": ["price"]}):
        with pytest.raises((ValueError, DatabaseError)), transaction.atomic(using=routing.alias):
            Item(name="none").save(**options)
    assert not Item.objects.exists()


def test_conflicts(database):
    one = Item.objects.create(name="one", price=1)
    if connections[routing.alias].features.supports_ignore_conflicts:
        Item.objects.bulk_create([Item(name="one"), Item(name="two")], ignore_conflicts=True)
    unique = {} if database == "mariadb" else {"unique_fields": ["name"]}
    upserted = Item.objects.bulk_create([Item(name="one", price=5)], update_conflicts=True, update_fields=["price"], **unique)
    assert dict(Item.objects.values_list("name", "price")) == {"one": 5, "two": 0}
    assert Item.objects.get(name="one").pk == one.pk
    if django.VERSION >= (6,):
        assert upserted[0].pk == one.pk


def test_inheritance(database):
    with statements() as sent:
        book = Book.objects.create(name="book", pages=100)
    assert [statement.split()[:3] for statement in sent] == [["INSERT", "INTO", sent[0].split()[2]], ["INSERT", "INTO", sent[1].split()[2]]]
    assert book.pk == book.id == book.item_ptr_id == Item.objects.get(name="book").pk and is_new(book.pk)
    book.pages = 200
    book.save()
    assert Book.objects.get().pages == 200
    assert is_new(Cheap.objects.create(name="cheap").pk) and Cheap.objects.count() == 2
    tag = Tag.objects.create(name="abstract")
    assert is_new(tag.number) and tag.pk == tag.number
    # A child for an existing row of the parent.
    item = Item.objects.create(name="becomes a book")
    Book(item_ptr_id=item.pk, name=item.name, pages=1).save()
    assert Book.objects.get(pk=item.pk).name == "becomes a book"


def test_references(database):
    category = Category.objects.create(name="category")
    item = Item.objects.create(name="one", category=category)
    assert Item.objects.select_related("category").get(category_id=category.pk).category == category
    tags = Tag.objects.bulk_create(Tag(name=f"tag {n}") for n in range(3))
    with statements() as sent:
        item.tags.set(tags)
    assert sum(statement.startswith("INSERT") for statement in sent) == 1
    through = Item.tags.through.objects.all()
    assert all(is_new(link.pk) for link in through) and len(through) == 3
    item.tags.remove(tags[0])
    assert {tag.pk for tag in Item.objects.prefetch_related("tags").get().tags.all()} == {tag.pk for tag in tags[1:]}
    customer = Customer.objects.create_user("somebody")
    assert Profile.objects.create(customer=customer).pk == customer.pk
    comment = item.comments.create(text="about")
    assert comment.object_id == item.pk and Comment.objects.get().about == item
    assert Comment.objects.filter(kind=ContentType.objects.get_for_model(Item)).count() == 1
    category.delete()
    assert not Item.objects.exists() and not Comment.objects.exists()


def test_an_unsaved_parent_lends_its_id_when_it_is_saved(database):
    category = Category(name="later")
    item = Item(name="one", category=category)
    with pytest.raises(ValueError, match="unsaved"):
        item.save()
    category.save()
    item.save()
    assert Item.objects.get().category_id == category.pk


def test_async(committing):
    async def make():
        made = [await Item.objects.acreate(name="one"), *await Item.objects.abulk_create([Item(name="two"), Item(name="three")])]
        item = Item(name="four")
        await item.asave()
        return [item.pk, *(each.pk for each in made)], [id async for id in Item.objects.values_list("pk", flat=True)]

    given, stored = asyncio.run(make())
    assert sorted(given) == sorted(stored) and len(set(given)) == 4 and all(map(is_new, given))


def test_a_rollback(committing):
    with pytest.raises(RuntimeError), transaction.atomic(using=routing.alias):
        item = Item.objects.create(name="one")
        raise RuntimeError
    assert not Item.objects.exists()
    item.save()
    assert Item.objects.get().pk == item.pk
    # The ID of a row that is rolled back is not issued again.
    with pytest.raises(IntegrityError), transaction.atomic(using=routing.alias):
        Item.objects.create(name="one")
    assert Item.objects.create(name="two").pk > item.pk


def test_threads(committing):
    together = threading.Barrier(4)

    def insert(thread):
        together.wait(60)
        made = [Item.objects.create(name=f"{thread} {n}").pk for n in range(20)]
        made += [item.pk for item in Item.objects.bulk_create(Item(name=f"{thread} many {n}") for n in range(20))]
        connections.close_all()
        return made

    with ThreadPoolExecutor(4) as threads:
        ids = list(itertools.chain(*threads.map(insert, range(4))))
    assert len(set(ids)) == 160 == Item.objects.filter(pk__in=ids).count()


def test_using_names_the_database():
    routing.alias = "default"
    others = [alias for alias in ALIASES.values() if alias != "default"]
    made = [Tag.objects.using(alias).create(name="of several") for alias in others]
    tag = Tag(name="of several")
    for alias in others:
        tag.pk = None
        tag.name = f"saved in {alias}"
        tag.save(using=alias)
        made.append(Tag.objects.using(alias).get(name=tag.name))
    assert len({tag.pk for tag in made}) == 4 and not Tag.objects.exists()
    for alias in others:
        Tag.objects.using(alias).all().delete()


# Values that are not IDs.


NOT_WHOLE = [decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("1E+1000000"), decimal.Decimal(-1)]


@pytest.mark.parametrize("value", [1.0, 1e18, *NOT_WHOLE, -1, 2**63, "1e18", "1.5", "x", " 1", "007", True, b"1"])
def test_no_other_value_is_written(value, database):
    for write in (
        lambda: Item.objects.create(id=value, name="bad"),
        lambda: Item(id=value, name="bad").save(force_insert=True),
        lambda: Item.objects.bulk_create([Item(id=value, name="bad")]),
        lambda: Item.objects.create(category_id=value, name="bad"),
        lambda: Item.objects.update(category_id=value),
    ):
        with pytest.raises((frazil.errors.IdInvalidError, frazil.errors.WrongTypeError)), transaction.atomic(using=routing.alias):
            write()
    with pytest.raises(ValidationError, match="is not an ID: digits only, 0 to 9223372036854775807"):
        Item(id=value, name="bad").full_clean()
    assert not Item.objects.exists()


def test_filters(database):
    item = Item.objects.create(name="one")
    assert Item.objects.get(pk=str(item.pk)) == item == Item.objects.get(pk__in=[item.pk, "1"])
    # django-filter's NumberFilter and raw rows of some drivers return decimals.
    whole = decimal.Decimal(item.pk)
    assert Item.objects.get(pk=whole) == item == Item.objects.get(pk__in=[whole, decimal.Decimal("1.0")])
    for value in (1.0, float(item.pk), *NOT_WHOLE[:4], decimal.Decimal(item.pk) + decimal.Decimal("0.5")):
        with pytest.raises((frazil.errors.IdInvalidError, frazil.errors.WrongTypeError)):
            Item.objects.filter(pk=value).exists()
        with pytest.raises((frazil.errors.IdInvalidError, frazil.errors.WrongTypeError)):
            Item.objects.filter(pk__in=[1, value]).exists()
    assert Item.objects.get(pk=lazystr(item.pk)) == item
    with pytest.raises(ValueError):
        Item.objects.filter(pk="one").exists()
    # No row has these numbers.
    assert not Item.objects.filter(pk=-1).exists() and Item.objects.filter(pk__gt=-1).exists()
    if not OVERFLOWS[database]:
        assert not Item.objects.filter(pk=10**20).exists() and Item.objects.filter(pk__lt=10**20).exists()


@pytest.mark.parametrize("kind", [decimal.Decimal, numpy.int64, numpy.uint64, str], ids=lambda kind: kind.__name__)
def test_exact_integers_of_other_types(database, kind):
    category = Category.objects.create(name="category")
    item = Item.objects.create(id=kind(250318245867245581), name="one", category_id=kind(category.pk))
    Item(id=kind(7), name="two").full_clean()
    Item.objects.filter(category_id=kind(category.pk)).update(category_id=kind(category.pk))
    assert Item.objects.get(pk=250318245867245581).category_id == category.pk and int(item.pk) == 250318245867245581
    assert frazil.django.SnowflakeFormField().clean(kind(7)) == 7


def test_django_filter(database):
    filters = pytest.importorskip("django_filters")

    class Find(filters.FilterSet):
        plain = filters.NumberFilter(field_name="id")

        class Meta:
            model = Item
            fields = {"id": ["exact", "in", "gt", "range"], "category": ["exact"], "category__number": ["exact"]}

    category = Category.objects.create(name="category")
    item = Item.objects.create(name="one", category=category)
    Item.objects.create(name="two")

    def find(**query):
        found = Find({name: str(value) for name, value in query.items()}, Item.objects.order_by("id"))
        return list(found.qs) if found.is_valid() else found.errors.as_data()

    key = item.pk
    for query in (
        {"id": key}, {"id__in": f"{key},1"}, {"plain": key}, {"category": category.pk}, {"category__number": category.pk},
        {"id__range": f"0,{key}"},
    ):  # fmt: skip
        assert find(**query) == [item], query
    assert [each.name for each in find(id__gt=key)] == ["two"]
    for text in ("1.5", "1e18", "-1", "x", "9223372036854775808", "NaN", "007"):
        for name in ("id", "id__in", "id__gt", "category__number"):
            [[error]] = find(**{name: text}).values()
            assert error.code == "invalid", (name, text)
    assert find(category="1.5")


def test_forms(database):
    class Choose(forms.ModelForm):
        class Meta:
            model = Item
            fields = ("name", "category")

    category = Category.objects.create(name="category")
    assert Choose({"name": "one", "category": str(category.pk)}).save().category == category
    for value in (f"{float(category.pk):.0e}", f"{category.pk}.0", "-1", "x", *[str(2**63)][OVERFLOWS[database] :]):
        form = Choose({"name": "two", "category": value})
        assert form.errors["category"].as_data()[0].code == "invalid_choice", value

    class Find(forms.Form):
        id = SnowflakeFormField()
        other = SnowflakeFormField(required=False)

    form = Find({"id": f" {category.pk} "})
    assert form.is_valid() and form.cleaned_data == {"id": category.pk, "other": None}
    assert 'type="text"' in str(form["id"]) and 'inputmode="numeric"' in str(form["id"])
    for value in ("1.0", "1e18", str(2**63), "-1", "x", "1 2", "1,000"):
        assert Find({"id": value}).errors == {"id": ["Enter an ID: digits only, 0 to 9223372036854775807."]}
    assert Find({}).errors == {"id": ["This field is required."]}


# Formats for other readers.


def test_fixtures(database):
    category = Category.objects.create(name="category")
    item = Item.objects.create(name="one", category=category)
    item.tags.add(Tag.objects.create(name="tag"))
    for form in ("json", "xml"):
        written = io.StringIO()
        call_command("dumpdata", "shop", format=form, database=routing.alias, stdout=written)
        Item.objects.all().delete()
        Category.objects.all().delete()
        path = f"{FOLDER}/shop.{form}"
        with open(path, "w") as file:
            file.write(written.getvalue())
        call_command("loaddata", path, database=routing.alias, verbosity=0)
        # Like Django's fixtures, this changes rows that already exist.
        call_command("loaddata", path, database=routing.alias, verbosity=0)
        assert Item.objects.get().category == category and Item.objects.get().pk == item.pk
        assert Item.objects.get().tags.get().name == "tag"
    with open(f"{FOLDER}/new.json", "w") as file:
        json.dump(
            [{"model": "shop.tag", "pk": None, "fields": {"name": "new"}}, {"model": "shop.tag", "pk": "12", "fields": {"name": "12"}}],
            file,
        )
    call_command("loaddata", f"{FOLDER}/new.json", database=routing.alias, verbosity=0)
    assert is_new(Tag.objects.get(name="new").pk) and Tag.objects.get(name="12").pk == 12


def test_json(database):
    item = Item.objects.create(name="one")
    assert item.pk > BIG
    # Django's own JSON has numbers, which are exact for Python but rounded by JavaScript.
    assert JsonResponse({"id": item.pk}).content == b'{"id": %d}' % item.pk
    assert json.loads(serializers.serialize("json", Item.objects.all()))[0]["pk"] == item.pk
    # frazil's encoder.
    data = {"id": item.pk, "many": [(item.pk, 1)], "price": 3, "edge": [BIG - 1, BIG, 1 - BIG, -BIG], "when": created_at(item), "no": True}
    expected = {
        "id": str(item.pk), "many": [[str(item.pk), 1]], "price": 3, "edge": [BIG - 1, str(BIG), 1 - BIG, str(-BIG)],
        "when": json.loads(json.dumps(created_at(item), cls=DjangoJSONEncoder)), "no": True,
    }  # fmt: skip
    assert json.loads(json.dumps(data, cls=SnowflakeJSONEncoder)) == expected
    assert json.loads(JsonResponse(data, encoder=SnowflakeJSONEncoder).content) == expected
    assert json.dumps(item.pk, cls=SnowflakeJSONEncoder) == f'"{item.pk}"'
    [row] = json.loads(serializers.serialize("json", Item.objects.all(), cls=SnowflakeJSONEncoder))
    assert row["pk"] == str(item.pk) and row["fields"]["price"] == 0
    [again] = serializers.deserialize("json", json.dumps([row]))
    assert again.object == item


def test_paths(database):
    item = Item.objects.create(name="one")
    assert reverse("item", args=[item.pk]) == reverse("item", args=[str(item.pk)]) == f"/items/{item.pk}/"
    answer = Client().get(f"/items/{item.pk}/")
    assert answer.json() == {"id": str(item.pk), "name": "one", "price": 0}
    assert resolve(f"/items/{2**63 - 1}/").kwargs == {"id": 2**63 - 1}
    for text in ("007", "+1", "-1", "1.0", "1e18", str(2**63), "9" * 20, "x", "１"):
        with pytest.raises(Resolver404):
            resolve(f"/items/{text}/")
    for value in (-1, 2**63, "007"):
        with pytest.raises(NoReverseMatch):
            reverse("item", args=[value])
    with pytest.raises((NoReverseMatch, frazil.errors.WrongTypeError)):
        reverse("item", args=[1.5])


def test_rest_framework(database):
    from rest_framework.serializers import ModelSerializer, PrimaryKeyRelatedField

    class ItemSerializer(ModelSerializer):
        class Meta:
            model = Item
            fields = ("id", "name", "price", "category", "tags")

    class Nested(ModelSerializer):
        class Meta:
            model = Item
            depth = 1
            fields = ("id", "category", "tags")

    class CategorySerializer(ModelSerializer):
        class Meta:
            model = Category
            fields = ("number", "items")

    class BookSerializer(ModelSerializer):
        class Meta:
            model = Book
            fields = ("id", "pages")

    class ProfileSerializer(ModelSerializer):
        class Meta:
            model = Profile
            fields = ("customer", "text")

    category, tag = Category.objects.create(name="category"), Tag.objects.create(name="tag")
    serializer = ItemSerializer(data={"name": "one", "category": str(category.pk), "tags": [str(tag.pk)]})
    assert serializer.is_valid(), serializer.errors
    item = serializer.save()
    shown = {"id": str(item.pk), "name": "one", "price": 0, "category": str(category.pk), "tags": [str(tag.pk)]}
    assert ItemSerializer(item).data == shown
    assert Nested(item).data == {
        "id": str(item.pk),
        "category": {"number": str(category.pk), "name": "category"},
        "tags": [{"number": str(tag.pk), "name": "tag"}],
    }
    assert CategorySerializer(category).data == {"number": str(category.pk), "items": [str(item.pk)]}
    book = Book.objects.create(name="book")
    assert BookSerializer(book).data == {"id": str(book.pk), "pages": 0}
    profile = Profile.objects.create(customer=Customer.objects.create_user("somebody"), text="x")
    assert ProfileSerializer(profile).data == {"customer": str(profile.pk), "text": "x"}
    assert ItemSerializer(Item.objects.create(name="none")).data["category"] is None
    # A small integer is exact. JavaScript may have rounded a larger one, and a float is never an ID.
    small = Category.objects.create(number=7, name="seven")
    assert ItemSerializer(data={"name": "two", "category": 7}).is_valid() and small.pk == 7
    for given in ({"category": category.pk}, {"tags": [tag.pk]}):
        serializer = ItemSerializer(data={"name": "two", **given})
        assert not serializer.is_valid()
        [[why]] = serializer.errors.values()
        assert why.code == "rounded" and "JavaScript rounds: send the ID as a decimal string" in why and why.startswith("25")
    for value in (float(category.pk), 1.5, "1e18", True, -1, 2**63, "x", "007", "0000000000000000007"):
        serializer = ItemSerializer(data={"name": "two", "category": value})
        assert not serializer.is_valid()
        assert serializer.errors == {"category": ["Not an ID: digits only, 0 to 9223372036854775807."]}, value
    assert ItemSerializer(data={"name": "two", "category": "1"}).is_valid() is False
    # For the framework, a reference by its column's name is not a field of the model.
    by_column = type("ByColumn", (ModelSerializer,), {"Meta": type("Meta", (), {"model": Item, "fields": ("pk", "category_id")})})
    assert by_column(item).data == {"pk": str(item.pk), "category_id": str(category.pk)}
    assert by_column(Item.objects.create(name="without")).data["category_id"] is None
    assert by_column(data={}).is_valid()
    # A field that a serializer declares itself is kept.
    own = type("Own", (ItemSerializer,), {"category": PrimaryKeyRelatedField(read_only=True)})
    assert own(item).data["category"] == category.pk


def test_a_default_that_is_called_once_is_reported():
    once = type("Once", (models.Model,), {
        "__module__": __name__, "Meta": type("Meta", (), {"app_label": "once", "apps": Apps()}),
        "id": frazil.django.SnowflakeAutoField(primary_key=True, default=frazil.Snowflake("standard", node=586).next()),
    })  # fmt: skip
    [found] = once._meta.pk.check()
    assert found.id == "frazil.E003" and "one ID for all rows" in found.msg and found.is_serious()
    assert Item._meta.pk.check() == []


def test_rest_framework_with_its_own_switch_for_large_integers(database):
    """REST framework 3.16 and later can write each BigIntegerField as a string; IDs are strings anyway."""
    with override_settings(REST_FRAMEWORK={"COERCE_BIGINT_TO_STRING": True}):
        test_rest_framework(database)


def test_rest_framework_leaves_other_keys_alone(database):
    from django.contrib.auth.models import Group
    from rest_framework.serializers import ModelSerializer

    class GroupSerializer(ModelSerializer):
        class Meta:
            model = Group
            fields = ("id", "permissions")

    group = Group.objects.create(name="group")
    assert GroupSerializer(group).data == {"id": group.pk, "permissions": []}

    class CommentSerializer(ModelSerializer):
        class Meta:
            model = Comment
            fields = ("kind_id",)

    comment = Comment.objects.create(about=Item.objects.create(name="one"), text="")
    assert CommentSerializer(comment).data == {"kind_id": comment.kind_id}


def test_django_ninja(database):
    client = Client()

    def send(body):
        return client.post("/ninja/items", data=body, content_type="application/json")

    category, tag = Category.objects.create(name="category"), Tag.objects.create(name="tag")
    answer = send({"name": "one", "category_id": str(category.pk), "tags": [str(tag.pk)]})
    item = Item.objects.get(name="one")
    shown = {"id": str(item.pk), "name": "one", "price": 0, "category": str(category.pk), "tags": [str(tag.pk)]}
    assert answer.json() == shown and list(item.tags.all()) == [tag]
    assert client.get(f"/ninja/items/{item.pk}").json() == shown
    other = send({"name": "without", "category_id": None, "tags": []}).json()
    assert client.get("/ninja/items").json() == [shown, other] and client.get(f"/ninja/items?after={item.pk}").json() == [other]
    assert other["category"] is None and Item.objects.get(name="without").pk == int(other["id"])
    assert client.get(f"/ninja/categories/{category.pk}").json() == {"number": str(category.pk), "items": [str(item.pk)]}
    book = Book.objects.create(name="book")
    [shown] = client.get("/ninja/books").json()
    assert (shown["id"], shown["item_ptr"], shown["pages"]) == (str(book.pk), str(book.pk), 0)
    profile = Profile.objects.create(customer=Customer.objects.create_user("somebody"), text="x")
    assert client.get("/ninja/profiles").json() == [{"customer": str(profile.pk)}]
    # A schema that names the type itself, with a dict and with a model.
    assert client.get(f"/ninja/handmade/{item.pk}").json() == {"id": str(item.pk), "next": None}
    assert client.get(f"/ninja/model/{item.pk}").json() == {"id": str(item.pk), "next": str(item.pk)}
    # In the program, IDs are ints, also in a schema that is made from a row.
    from shop.api import ItemSchema

    made = ItemSchema.from_orm(item)
    assert (
        made.id == item.pk and made.dict()["id"] == item.pk and ItemSchema.model_validate_json(made.model_dump_json(by_alias=True)) == made
    )
    for value, says in (
        (category.pk, "which JavaScript rounds: send the ID as a decimal string"),
        (float(category.pk), "floats round"),
        ("007", "leading zeros"),
        (True, "not bool"),
    ):
        for body in ({"name": "two", "category_id": value, "tags": []}, {"name": "two", "category_id": "1", "tags": [value]}):
            answer = send(body)
            [error] = answer.json()["detail"]
            assert answer.status_code == 422 and error["type"] == "snowflake_id" and says in error["msg"]
    assert client.get("/ninja/items/007").status_code == 404 and client.get("/ninja/items?after=1e18").status_code == 422
    schemas = client.get("/ninja/openapi.json").json()["components"]["schemas"]
    for name, keys in (("ItemSchema", {"id", "category", "tags"}), ("ItemIn", {"category_id", "tags"}), ("ProfileSchema", {"customer"})):
        properties = schemas[name]["properties"]
        assert {key for key, described in properties.items() if "^(0|[1-9][0-9]{0,18})$" in json.dumps(described)} == keys
        assert '"integer"' not in json.dumps([described for key, described in properties.items() if key != "price"])


def test_django_ninja_leaves_other_keys_alone(database):
    from django.contrib.auth.models import Group
    from ninja.orm import create_schema

    group = Group.objects.create(name="group")
    assert create_schema(Group, name="Plain").from_orm(group).model_dump() == {"id": group.pk, "name": "group", "permissions": []}
    nested = create_schema(Item, name="Nested", depth=1, fields=["id", "category"])
    item = Item.objects.create(name="one", category=Category.objects.create(name="category"))
    answer = json.loads(nested.from_orm(item).model_dump_json())
    assert answer == {"id": str(item.pk), "category": {"number": str(item.category_id), "name": "category"}}


@pytest.fixture
def thousands():
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="en"):
        # Repeats the application's start with these settings.
        apps.get_app_config("frazil").ready()
        yield


def test_templates_print_digits_alone(thousands, database):
    category = Category.objects.create(name="category")
    item = Item.objects.create(name="one", category=category, price=1234567)

    def printed(text, **values):
        return Template(text).render(Context(values))

    text = "{{ item.pk }} {{ item.id }} {{ item.category_id }} {{ item.category.pk }} {{ item.price }}"
    digits = f"{item.pk} {item.pk} {category.pk} {category.pk} 1,234,567"
    for row in (item, Item.objects.get(pk=item.pk), Item.objects.select_related("category").get(), Item.objects.defer("category").get()):
        assert printed(text, item=row) == digits
    [made] = Item.objects.bulk_create([Item(name="two")])
    assert printed("{{ item.pk }}", item=made) == str(made.pk)
    assert (
        printed("{% for id in ids %}{{ id }} {% endfor %}", ids=Item.objects.order_by("pk").values_list("pk", flat=True))
        == f"{item.pk} {made.pk} "
    )
    assert printed("{{ row.category_id }}", row=Item.objects.order_by("pk").values("category_id").first()) == str(category.pk)
    assert printed("{{ id }}", **resolve(f"/items/{item.pk}/").kwargs) == str(item.pk)
    assert printed("{% if item.pk == id %}yes{% endif %}", item=item, id=int(item.pk)) == "yes"
    assert printed("{% load l10n %}{{ id|unlocalize }} {{ id }}", id=int(item.pk)) == f"{item.pk} {item.pk:,}", "an int of the program"
    assert printed("{% load humanize %}{{ item.pk|intcomma }}", item=item) == f"{item.pk:,}", "where it is asked for"
    # The database and the serializers accept the value like any other int.
    again = Item.objects.get(pk=item.pk)
    with connections[routing.alias].cursor() as cursor:
        cursor.execute("SELECT name FROM shop_item WHERE id = %s", [again.pk])
        assert cursor.fetchone() == ("one",)
    Item.objects.filter(pk__in=[again.pk]).update(category_id=again.category_id)
    for form in ("json", "xml", "yaml"):
        written = serializers.serialize(form, [again])
        [read] = serializers.deserialize(form, written)
        assert read.object == item and read.object.category_id == category.pk, form
    assert json.dumps([again.pk]) == f"[{item.pk}]" and pickle.loads(pickle.dumps(again)) == again and hash(again.pk) == hash(item.pk)


def test_keys_are_plain_ints_without_the_setting(database):
    item = Item.objects.create(name="one")
    assert {type(item.pk), type(Item.objects.get().pk), type(resolve("/items/7/").kwargs["id"])} == {int}


@pytest.fixture
def admin(database):
    Customer.objects.create_superuser("admin", password="secret")
    client = Client(raise_request_exception=True)
    assert client.login(username="admin", password="secret")
    return client


def test_admin(admin):
    category = Category.objects.create(name="category")
    items = Item.objects.bulk_create(Item(name=f"item {n}", category=category) for n in range(3))
    page = admin.get("/admin/shop/item/")
    assert all(f'href="/admin/shop/item/{item.pk}/change/' in page.content.decode() for item in items)
    found = admin.get("/admin/autocomplete/", {"app_label": "shop", "model_name": "item", "field_name": "category", "term": "cat"})
    assert found.json()["results"] == [{"id": str(category.pk), "text": "category"}]
    tag = Tag.objects.create(name="tag")
    answer = admin.post("/admin/shop/item/add/", {"name": "new", "price": 1, "category": str(category.pk), "tags": f"{tag.pk}"})
    assert answer.status_code == 302, answer.content
    new = Item.objects.get(name="new")
    assert is_new(new.pk) and new.category == category and new.tags.get() == tag
    answer = admin.post("/admin/shop/tag/add/?_popup=1", {"name": "popped", "_popup": "1"})
    popped = Tag.objects.get(name="popped")
    assert f"&quot;value&quot;: &quot;{popped.pk}&quot;" in answer.content.decode()
    # The list with its editable column.
    new.delete()
    rows = {"form-TOTAL_FORMS": 3, "form-INITIAL_FORMS": 3, "_save": "Save"}
    for n, item in enumerate(reversed(items)):
        rows |= {f"form-{n}-id": str(item.pk), f"form-{n}-price": str(10 + n)}
    answer = admin.post("/admin/shop/item/", rows)
    assert answer.status_code == 302, answer.content.decode()
    assert [item.price for item in Item.objects.order_by("-pk")] == [10, 11, 12]
    # A form that contains rows of another model: one is changed, one is new, one is deleted.
    inline = {"items-TOTAL_FORMS": 4, "items-INITIAL_FORMS": 3, "name": "changed"}
    for n, item in enumerate(items):
        inline |= {
            f"items-{n}-id": str(item.pk),
            f"items-{n}-category": str(category.pk),
            f"items-{n}-name": f"again {n}",
            f"items-{n}-price": 1,
        }
    inline |= {"items-2-DELETE": "on", "items-3-name": "added", "items-3-price": 4, "items-3-category": str(category.pk)}
    answer = admin.post(f"/admin/shop/category/{category.pk}/change/", inline)
    assert answer.status_code == 302, answer.content.decode()
    assert set(category.items.values_list("name", flat=True)) == {"again 0", "again 1", "added"}
    assert admin.get(f"/admin/shop/category/{category.pk}/history/").status_code == 200
    assert admin.get(f"/admin/shop/item/{items[0].pk}/change/").status_code == 200
    for wrong in ("1e18", "x", str(2**63), "1"):
        assert admin.get(f"/admin/shop/item/{wrong}/change/").status_code == 302
    answer = admin.post(f"/admin/shop/item/{items[0].pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302 and not Item.objects.filter(pk=items[0].pk).exists()


def test_the_admin_prints_digits_alone(thousands, admin):
    item = Item.objects.create(name="one", price=1234567)
    page = admin.get("/admin/shop/item/").content.decode()
    assert f">{item.pk}</a>" in page and f"{item.pk:,}" not in page and f"/admin/shop/item/{item.pk}/change/" in page
    assert str(item.pk) in admin.get(f"/admin/shop/item/{item.pk}/change/").content.decode()


# Times.


def test_created_between(database):
    midnight = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    day = datetime.timedelta(days=1)
    times = [midnight - datetime.timedelta(milliseconds=1), midnight, midnight + day / 2, midnight + day]
    with override_settings(FRAZIL="standard node=0 start=zero clock=manual detached=true"):
        for n, time in enumerate(times):
            get_snowflake().set_time(time)
            Item.objects.create(name=str(n))
        items = list(Item.objects.order_by("name"))
        assert [created_at(item) for item in items] == times == [created_at(str(item.pk)) for item in items]
        names = lambda *between: [item.name for item in Item.objects.created_between(*between).order_by("pk")]
        assert names(midnight, midnight + day) == ["1", "2"]
        assert names(None, midnight) == ["0"] and names(midnight + day, None) == ["3"] and len(names(None, None)) == 4
        long_ago, far_ahead = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2500, 1, 1, tzinfo=datetime.UTC)
        assert len(names(long_ago, far_ahead)) == 4 and names(None, long_ago) == names(far_ahead, None) == []
        east = datetime.timezone(datetime.timedelta(hours=8))
        assert names(midnight.astimezone(east), (midnight + day).astimezone(east)) == ["1", "2"]
        assert Category.objects.filter(created_between(midnight, None)).count() == 0
        comments = [Comment.objects.create(about=item, text="") for item in items]
        assert list(Comment.objects.filter(created_between(midnight, midnight + day, "object_id"))) == comments[1:3]
        # Exact times in SQL, and a filter by days.
        assert list(Item.objects.annotate(created=CreatedAt()).order_by("pk").values_list("created", flat=True)) == times
        days = Item.objects.annotate(day=TruncDay(CreatedAt("pk"))).values("day").annotate(items=Count("*")).order_by("day")
        assert [(row["day"], row["items"]) for row in days] == [(midnight - day, 1), (midnight, 2), (midnight + day, 1)]
        assert Item.objects.annotate(created=CreatedAt()).filter(created__gte=midnight + day / 2).count() == 2
        for value in (midnight.replace(tzinfo=None), midnight.date(), "2026-03-01"):
            with pytest.raises(frazil.FrazilError):
                created_between(value, None)
        with pytest.raises(frazil.errors.WrongTypeError):
            created_at(Item(name="unsaved"))


def test_a_manager_takes_another_queryset(database):
    class Found(models.QuerySet):
        def named(self, name):
            return self.filter(name=name)

    class Shop(SnowflakeManager.from_queryset(Found)):
        pass

    manager = Shop()
    manager.model, manager._db, manager._hints = Item, routing.alias, {"instance": None}
    item = Item.objects.create(name="one")
    assert manager.named("one").get() == item and manager.created_between(created_at(item), None).named("one").get() == item
    assert manager.all()._hints == {"instance": None}


@pytest.mark.parametrize("spec", ["game server=1", "sonyflake machine=1", "js53 node=1", "standard node=1 epoch=2026-01-01"])
def test_times_of_other_layouts(spec, database):
    with override_settings(FRAZIL=spec):
        item = Item.objects.create(name="one")
        assert Item.objects.annotate(created=CreatedAt()).get().created == created_at(item)
        assert abs(created_at(item) - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=10)
        assert Item.objects.created_between(created_at(item), None).get() == item
        assert not Item.objects.created_between(None, created_at(item)).exists()


# The generator.


def test_a_missing_setting_names_the_ways_out():
    for setting in (None, "", {}):
        with override_settings(FRAZIL=setting), pytest.raises(ImproperlyConfigured) as refused:
            get_snowflake()
        for way in ("settings.FRAZIL is missing", "store=local", "store=postgresql://", "standard node=7"):
            assert way in str(refused.value)
    with override_settings(FRAZIL=7), pytest.raises(ImproperlyConfigured, match=r"settings\.FRAZIL is of type int"):
        get_snowflake()
    with override_settings(FRAZIL="twitter"), pytest.raises(frazil.errors.NodeMissingError):
        get_snowflake()


def test_the_setting_may_be_a_dict():
    layout = "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01"
    with override_settings(FRAZIL={"layout": layout, "fields": {"business": 3, "machine": 7}, "detached": True}):
        parts = get_layout().decode(get_snowflake().next())
        assert (parts.business, parts.machine) == (3, 7)
        assert not generator.leases_numbers()


@pytest.mark.parametrize(
    "setting, leases",
    [
        ("standard node=1", False),
        ("standard store=memory", False),
        ("standard store='memory' namespace=a", False),
        ("standard store=local", True),
        ("standard namespace=shop store='env:STORE'", True),
        ({"node": 1}, False),
        ({"store": "memory"}, False),
        ({"store": "redis://localhost/0"}, True),
    ],
)
def test_settings_that_lease_numbers(setting, leases):
    with override_settings(FRAZIL=setting):
        assert generator.leases_numbers() is leases


def test_threads_open_one_generator():
    together = threading.Barrier(8)

    def open_it(_):
        together.wait(60)
        return get_snowflake()

    with override_settings(FRAZIL=f"standard store=file:{FOLDER}/once"), ThreadPoolExecutor(8) as threads:
        assert len({id(ids) for ids in threads.map(open_it, range(8))}) == 1


def in_forked_child(work):
    """Runs a call in a forked child, and returns its result as JSON."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            answer = json.dumps(work())
        except Exception as error:  # noqa: BLE001  # the parent looks at it
            answer = json.dumps([type(error).__name__, str(error)])
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


@pytest.mark.parametrize("opened", [False, True])
def test_a_forked_child(opened):
    with override_settings(FRAZIL=f"standard store=file:{FOLDER}/forked"):
        mine = [get_snowflake().next() for _ in range(opened * 100)]
        theirs = in_forked_child(lambda: [get_snowflake().next() for _ in range(100)])
        assert len({*mine, *theirs, *(get_snowflake().next() for _ in range(100))}) == opened * 100 + 200
    for spec in ("standard node=77", "standard store=memory"):
        with override_settings(FRAZIL=spec):
            mine = [get_snowflake().next() for _ in range(opened * 100)]
            name, why = in_forked_child(lambda: get_snowflake().next())
            assert name == "ForkedError"
            if not opened:
                assert "settings.FRAZIL gives every process of this project the same node number" in why and "store=local" in why


def test_a_child_does_not_wait_for_a_lock_that_was_held():
    with override_settings(FRAZIL=f"standard store=file:{FOLDER}/locked"), generator._lock:
        assert isinstance(in_forked_child(lambda: get_snowflake().next()), int)


def test_in_a_notebook(committing):
    # An event loop runs on the same thread, and Django is configured to allow that.
    async def make():
        return Item.objects.create(name="one").pk

    with override_settings(FRAZIL=f"standard store=file:{FOLDER}/notebook"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        assert is_new(asyncio.run(make()))


# Checks.


def messages(**options):
    return {message.id: message for message in run_checks(**options) if message.id.startswith("frazil.")}


def test_checks_find_nothing_in_a_correct_project():
    for database in ALIASES.values():
        assert messages(databases=[database], include_deployment_checks=True) == {}


def test_checks_of_the_setting():
    with override_settings(FRAZIL=None):
        assert "store=local" in messages()["frazil.E001"].msg
    with override_settings(FRAZIL="standard nod=1"):
        assert "did you mean node?" in messages()["frazil.E002"].msg
    # The check does not contact the store.
    with override_settings(FRAZIL="standard store=redis://127.0.0.1:1/0"):
        assert messages(include_deployment_checks=True) == {}
    year = datetime.datetime.now(datetime.UTC).year
    for epoch, ends in ((year - 69, True), (year - 67, False)):
        with override_settings(FRAZIL=f"standard store=local epoch={epoch}-01-01"):
            assert list(messages()) == ["frazil.W001"] * ends
    with override_settings(FRAZIL="standard node=1"):
        assert messages() == {}
        assert "mint the same IDs" in messages(include_deployment_checks=True)["frazil.W002"].msg
    # One warning does not hide another. A refused setting gives no warning about processes.
    with override_settings(FRAZIL=f"standard node=1 epoch={year - 69}-01-01"):
        assert set(messages(include_deployment_checks=True)) == {"frazil.W001", "frazil.W002"}
    with override_settings(FRAZIL="standard nod=1"):
        assert set(messages(include_deployment_checks=True)) == {"frazil.E002"}


def test_checks_of_schemas(monkeypatch):
    from ninja import ModelSchema
    from ninja.orm.factory import factory

    monkeypatch.setattr(factory, "schemas", {**factory.schemas})

    class Rounding(ModelSchema):
        id: int
        category: int | None = None

        class Meta:
            model = Item
            fields = ["id", "category", "tags", "price"]

    warning = messages()["frazil.W008"]
    assert warning.msg == "test_django.Rounding shows IDs as numbers, which JavaScript rounds: id, category."
    assert warning.obj is Item and "frazil.pydantic.SnowflakeId" in warning.hint


def test_checks_of_schemas_without_the_application(tmp_path):
    # A project in one file, whose URLconf imports the schema.
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__init__.py").touch()
    (tmp_path / "app/models.py").write_text(
        "from django.db import models\nclass Order(models.Model):\n    to = models.ManyToManyField('self')\n    of = models.ForeignKey('self', models.CASCADE)"
    )
    (tmp_path / "urls.py").write_text("""
from app.models import Order
from ninja import ModelSchema, NinjaAPI
class OrderOut(ModelSchema):
    class Meta:
        model = Order
        fields = "__all__"
api = NinjaAPI()
urlpatterns = []
""")
    code = """
import sys
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["app", *sys.argv[1:]], ROOT_URLCONF="urls", FRAZIL="standard store=local", DEFAULT_AUTO_FIELD="frazil.django.SnowflakeAutoField"
)
import django
from django.core.management import call_command
django.setup()
call_command("check")
"""

    def check_output(*more):
        done = subprocess.run([sys.executable, "-c", code, *more], check=True, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        return done.stdout + done.stderr

    without = check_output()
    assert "(frazil.W008) urls.OrderOut shows IDs as numbers, which JavaScript rounds: id, of, to." in without
    assert "Add 'frazil.django' to INSTALLED_APPS." in without
    assert "frazil." not in check_output("frazil.django")


def test_checks_of_applications(monkeypatch):
    monkeypatch.setattr("frazil.django.checks.apps.is_installed", lambda name: name in ("rest_framework", "django.contrib.contenttypes"))
    assert "INSTALLED_APPS" in messages()["frazil.W003"].hint
    monkeypatch.setattr(Comment._meta.get_field("object_id"), "__class__", models.PositiveIntegerField)
    assert messages()["frazil.W004"].obj is Comment


def test_checks_of_applications_that_keep_counters(monkeypatch):
    config = type("ShopConfig", (AppConfig,), {"default_auto_field": "django.db.models.BigAutoField"})
    monkeypatch.setattr(apps.get_app_config("shop"), "__class__", config)
    assert messages() == {}, "its models have Snowflake IDs all the same"
    monkeypatch.setattr(Item._meta.pk, "__class__", models.BigAutoField)
    assert "default_auto_field of ShopConfig overrides" in messages()["frazil.W007"].msg


# Moving from counters.


def at_migration(name):
    """Migrates the ledger to a migration, with the settings of that time, and returns its models at that time."""
    before = {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField"} if name == "0001_initial" else {}
    with override_settings(**before):
        executor = MigrationExecutor(connections[routing.alias])
        executor.migrate([("ledger", name)])
        return executor.loader.project_state([("ledger", name)]).apps


@pytest.fixture(params=[*ALIASES, "postgresql-serial"])
def moved(request):
    """A ledger with rows whose keys come from a counter. `serial` is the column type of Django before 4.1."""
    database, _, serial = request.param.partition("-")
    routing.alias = ALIASES[database]
    executor = MigrationExecutor(connections[routing.alias])
    executor.migrate([("ledger", None)])
    old = at_migration("0001_initial")
    if serial:
        with connections[routing.alias].cursor() as cursor:
            for table in ("ledger_account", "ledger_label", "ledger_entry", "ledger_entry_labels"):
                cursor.execute(f"ALTER TABLE {table} ALTER id DROP IDENTITY; CREATE SEQUENCE {table}_id_seq OWNED BY {table}.id")
                cursor.execute(f"ALTER TABLE {table} ALTER id SET DEFAULT nextval('{table}_id_seq')")
    with override_settings(DEFAULT_AUTO_FIELD="django.db.models.AutoField"):
        account = old.get_model("ledger", "Account").objects.create(name="first")
        label = old.get_model("ledger", "Label").objects.create(name="label")
        first = old.get_model("ledger", "Entry").objects.create(account=account, amount=1)
        second = old.get_model("ledger", "Entry").objects.create(account=account, amount=2, before=first)
        second.labels.add(label)
    assert (account.pk, first.pk, second.pk) == (1, 1, 2)
    yield database
    MigrationExecutor(connections[routing.alias]).migrate([("ledger", None)])
    at_migration("0002_snowflakes")


def test_moving_from_counters(moved):
    from ledger.models import Account, Entry, Label

    too_narrow = messages(databases=[routing.alias])
    assert set(too_narrow) == {"frazil.W006" if moved == "sqlite" else "frazil.W005"}
    at_migration("0002_snowflakes")
    through = Entry.labels.through
    narrow = [message for message in run_checks(databases=[routing.alias]) if message.id in ("frazil.W005", "frazil.W006")]
    # makemigrations does not see this column. On SQLite, Django recreates the table.
    assert [message.obj for message in narrow] == [through] * (moved != "sqlite")
    with connections[routing.alias].cursor() as cursor:
        for statement in [line for message in narrow for line in message.hint.split("\n")[1:]]:
            if not statement.startswith("--"):
                cursor.execute(statement)
    assert messages(databases=[routing.alias]) == {}
    found = {(table, name): kind.lower() for table, name, kind in columns(moved, "ledger")}
    for column in ("id", "account_id", "before_id"):
        assert found["ledger_entry", column].startswith("bigint"), column
    for column in ("id", "entry_id", "label_id"):
        assert found["ledger_entry_labels", column].startswith("bigint"), column
    assert not any(word in kind for kind in found.values() for word in ("nextval", "yes", "auto_increment"))
    first, second = Entry.objects.order_by("pk")
    assert (first.pk, second.pk, second.before, second.labels.get().pk) == (1, 2, first, 1)
    account = Account.objects.create(name="second")
    entry = Entry.objects.create(account=account, amount=3, before=second)
    entry.labels.add(Label.objects.create(name="new"), Label.objects.get(pk=1))
    assert is_new(entry.pk) and Entry.objects.latest("pk") == entry and entry.labels.count() == 2
    # The database still enforces the references.
    with pytest.raises(IntegrityError), transaction.atomic(using=routing.alias):
        Entry.objects.create(account_id=12345, amount=4)
    # The way back: a column with 64-bit IDs cannot become an integer, but one that was a bigint can be restored.
    Entry.objects.filter(pk__gt=2).delete()
    Account.objects.filter(pk__gt=1).delete()
    Label.objects.filter(pk__gt=1).delete()
    old = at_migration("0001_initial")
    assert old.get_model("ledger", "Entry").objects.count() == 2


# Django's own commands.


def test_djangos_test_classes():
    routing.alias = "default"
    assert "OK" in manage("test", "shop", "--verbosity=1")
    assert "OK" in manage("test", "shop", "--verbosity=1", "--parallel=2")


def test_sequences_and_inspection(database):
    written = io.StringIO()
    call_command("sqlsequencereset", "shop", database=routing.alias, stdout=written, no_color=True)
    with connections[routing.alias].cursor() as cursor:
        for statement in written.getvalue().split(";\n"):
            if database == "postgresql" and statement.startswith("SELECT"):
                cursor.execute(statement)
                assert cursor.fetchall() == [(None,)]
    if database != "sqlite":  # Django takes every integer key of SQLite for a counter
        shown = manage("inspectdb", "shop_item", f"--database={routing.alias}")
        assert "id = models.BigIntegerField(primary_key=True)" in shown


def test_a_field_that_is_no_primary_key_is_refused():
    with pytest.MonkeyPatch.context() as patch:
        field = SnowflakeAutoField()
        patch.setattr(field, "name", "id", raising=False)
        patch.setattr(field, "model", Item, raising=False)
        assert "fields.E100" in {message.id for message in field.check()}
