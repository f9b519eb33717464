"""Each example under load, with a killed worker: no ID occurs twice, and none is rounded from the database to the browser."""

import datetime
import json

import pytest

from .application import BUILD, ROOT, held_nodes, quoted
from .checks import LAYOUT, many_nodes, same_rows, shown_as_stored, would_be_seen
from .client import Client, Refused, drive

ROWS = 2000
WORKERS = 4


def stored(database):
    """Returns (ID, text) of each message in the database, the newest first."""
    rows = database.sql("SELECT coalesce(json_agg(json_build_array(id::text, text) ORDER BY id DESC), '[]') FROM messages")
    return [tuple(row) for row in json.loads(rows)]


def listed(application, query=""):
    """Returns (ID, text) of each message that the API lists."""
    with Client(application) as client:
        return [(message["id"], message["text"]) for message in client.messages(query)]


@pytest.fixture(scope="module")
def driven(running):
    """Drives clients, of which one loses its worker during a request, and returns the answers."""
    return drive(running, ROWS, workers=WORKERS)


@pytest.fixture
def client(running):
    with Client(running) as client:
        yield client


@pytest.fixture
def topic(client):
    return client.insist("POST", "/api/topics", {"title": "another topic"})["id"]


def refused(client, method, path, body=None):
    """Returns the status and the text of a refusal."""
    with pytest.raises(Refused) as caught:
        client.ask(method, path, body)
    return caught.value.status, caught.value.body


def test_every_row_is_there_once_and_its_id_is_the_databases(driven, running, database):
    same_rows(driven.acknowledged, driven.doubtful, listed(running, f"&topic={driven.topic}"), stored(database))
    topics = json.loads(database.sql("SELECT json_agg(DISTINCT topic_id::text) FROM messages"))
    assert topics == [driven.topic]
    assert listed(running) == stored(database)
    # The victim's request, and one pending request of each client.
    assert driven.doubtful <= 20, "requests fail that have nothing to do with the worker that was killed"


def test_each_worker_leases_its_own_node_number(driven):
    many_nodes([id for id, _ in driven.acknowledged], driven.made_by, WORKERS)


def test_the_columns_hold_64_bits(running, database):
    columns = "SELECT string_agg(data_type, ' ') FROM information_schema.columns WHERE table_schema = 'public'"
    assert (
        database.sql(f"{columns} AND table_name IN ('messages', 'topics') AND column_name IN ('id', 'topic_id')").split() == ["bigint"] * 3
    )
    sequences = "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname ~ '^(messages|topics)'"
    assert database.sql(sequences).strip() == "0", "the database counts as well"


def test_a_message_shows_when_and_where_it_was_made(driven, client):
    for id, text in driven.acknowledged[:: ROWS // 10]:
        message = client.ask("GET", f"/api/messages/{id}")
        parts = LAYOUT.decode(id)
        assert (message["id"], message["text"], message["topic"], message["node"]) == (id, text, driven.topic, parts.node)
        assert datetime.datetime.fromisoformat(message["created"]) == parts.time


def test_the_page_shows_what_the_database_holds(driven, running, database, chromium, example, client):
    client.ask(
        "POST",
        "/api/messages",
        {"topic": driven.topic, "author": "<b>me</b>", "text": "<img src=x onerror=failures.push('run')> & é 漢 😀"},
    )
    page, rows = chromium.open(running.url), stored(database)
    page.click("#older")
    shown = page.rows()
    assert len(shown) == 100
    shown_as_stored(shown, rows)
    would_be_seen([id for id, _, _ in shown])
    for id, text in (rows[0], rows[7], rows[60]):
        page.click(f'a[href="#{id}"]')
        found = page.one()
        assert (found["id"], found["text"], found["topic"]) == (id, text, driven.topic)
    page.evaluate("scrollTo(0, 0)")
    for size, width, height in (("wide", 1280, 900), ("narrow", 390, 844)):
        for scheme in ("light", "dark"):
            page.shot(BUILD / f"{example.name}-{size}-{scheme}.png", width, height, scheme)


def test_a_message_that_is_written_in_the_browser(running, database, chromium):
    page = chromium.open(running.url)
    for number in range(2):
        page.write("[name=title]", "Written in a browser")
        page.write("[name=author]", "a reader")
        page.write("[name=text]", f"message {number}")
        page.click("#write button")
        newest = stored(database)[0]
        assert newest[1] == f"message {number}" and page.one()["id"] == newest[0] == page.rows()[0][0]
        page.evaluate("document.getElementById('write').reset()")
    titles = database.sql("SELECT title FROM topics WHERE title = 'Written in a browser'")
    assert titles.split("\n")[:-1] == ["Written in a browser"], "the second message goes to the first one's topic"


def test_a_page_that_rounds_is_noticed(driven, running, database, chromium):
    rounding = "Response.prototype.json = async function () { return JSON.parse((await this.text()).replace(/\"([0-9]{16,19})\"/g, '$1')) }"
    page = chromium.open(running.url, rounding)
    with pytest.raises(AssertionError, match="shows other messages"):
        shown_as_stored(page.rows(), stored(database))


def test_the_page_is_the_same_in_every_example(example):
    assert (example.source / "index.html").read_bytes() == (ROOT / "examples/fastapi/index.html").read_bytes()


def test_messages_of_a_day_are_found_by_their_ids(running, client, topic, database, chromium):
    days = [datetime.datetime(2026, 3, day, tzinfo=datetime.UTC) for day in (1, 2, 3)]
    ends = {}
    for number, day in enumerate(days):
        for name, id in (("last", LAYOUT.min_id(day) - 1), ("first", LAYOUT.min_id(day))):
            ends[name, number] = str(id)
            database.sql(f"INSERT INTO messages (id, topic_id, author, text) VALUES ({id}, {topic}, 'me', '{name} before {day}')")

    def found(**bounds):
        query = "".join(f"&{name}={quoted(value)}" for name, value in ({"topic": topic} | bounds).items())
        return [message["id"] for message in client.messages(query)]

    assert found() == sorted(ends.values(), key=int, reverse=True)
    assert found(since=days[0].isoformat(), until=days[1].isoformat()) == [ends["last", 1], ends["first", 0]]
    assert found(since="2026-03-02T00:00:00Z", until="2026-03-03T00:00:00.000Z") == [ends["last", 2], ends["first", 1]]
    # The same instants in Tokyo's time zone.
    assert found(since="2026-03-02T09:00:00+09:00", until="2026-03-03T09:00:00+09:00") == [ends["last", 2], ends["first", 1]]
    assert found(since=days[2].isoformat()) == [ends["first", 2]]
    assert found(until=days[0].isoformat()) == [ends["last", 0]]

    page = chromium.open(running.url)
    for zone, shown in (("UTC", [ends["last", 2], ends["first", 1]]), ("Asia/Tokyo", [ends["first", 1], ends["last", 1]])):
        page.call("Emulation.setTimezoneOverride", timezoneId=zone)
        for name, value in (("topic", topic), ("from", "2026-03-02"), ("to", "2026-03-02")):
            page.choose(name, value)
        assert [id for id, _, _ in page.rows()] == shown, zone


@pytest.mark.parametrize(
    "wrong", ["abc", "-1", "1.5", "1e18", "0x10", "9223372036854775808", "99999999999999999999", "%F0%9F%98%80", "1%00"]
)
def test_a_text_that_is_not_an_id_is_refused_with_a_reason(wrong, client):
    status, body = refused(client, "GET", f"/api/messages/{wrong}")
    assert status in (400, 422) and len(body) > 20, body
    assert refused(client, "GET", f"/api/messages?topic={wrong}")[0] in (400, 422)
    assert refused(client, "GET", f"/api/messages?before={wrong}")[0] in (400, 422)
    assert refused(client, "POST", "/api/messages", {"topic": wrong, "author": "me", "text": "mine"})[0] in (400, 422)


@pytest.mark.parametrize("id", ["9007199254740993", "9223372036854775807"])
def test_a_missing_id_is_named_exactly(id, client, running, chromium):
    status, body = refused(client, "GET", f"/api/messages/{id}")
    assert status == 404 and id in body
    status, body = refused(client, "POST", "/api/messages", {"topic": id, "author": "me", "text": "mine"})
    assert status in (400, 404, 422) and id in body
    with pytest.raises(AssertionError, match=f"the page has failed: .*404.*{id}"):
        chromium.open(f"{running.url}/#{id}")


@pytest.mark.parametrize(
    "change",
    [
        '"topic": 1e18',
        '"topic": 1.5',
        '"topic": null',
        '"topic": true',
        '"topic": []',
        '"text": ""',
        '"text": "a\\u0000b"',
        '"text": "\\ud83d"',
        '"text": 7',
        '"author": ""',
    ],
)
def test_a_wrong_message_is_refused_with_a_reason(change, client, topic):
    body = json.dumps({"topic": topic, "author": "me", "text": "mine"})[:-1] + f", {change}}}"
    status, reason = refused(client, "POST", "/api/messages", body)
    assert status in (400, 422) and len(reason) > 20, reason


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=ten", "since=yesterday", "until=2026-13-01T00:00:00Z"])
def test_a_wrong_query_is_refused_with_a_reason(query, client):
    status, reason = refused(client, "GET", f"/api/messages?{query}")
    assert status in (400, 422) and len(reason) > 20, reason


def test_the_description_of_the_api_says_that_ids_are_strings(client):
    described = client.ask("GET", "/openapi.json")
    found = set()

    def look(place, where):
        if isinstance(place, list):
            for inner in place:
                look(inner, where)
        elif isinstance(place, dict):
            named = [*place["properties"].items()] if isinstance(place.get("properties"), dict) else []
            named += [(place["name"], place["schema"])] if "schema" in place and "name" in place else []
            for name, schema in named:
                if name in ("id", "topic", "before"):
                    types = {kind["type"] for kind in schema.get("anyOf", [schema])}
                    assert types - {"null"} == {"string"}, f"{where}: {name} is {schema}"
                    found.add(name)
            for name, inner in place.items():
                look(inner, f"{where}/{name}")

    look(described, "")
    assert found == {"id", "topic", "before"}


def test_a_second_application_leases_another_number_and_releases_it(driven, example, database):
    held = set(held_nodes(database.url))
    assert len(held) >= WORKERS
    with example.start(database.url, WORKERS="1") as other:
        with Client(other) as client:
            node = client.ask("POST", "/api/messages", {"topic": driven.topic, "author": "me", "text": "next door"})["node"]
        assert node not in held
        assert node in held_nodes(database.url)
        other.stop()
    assert node not in held_nodes(database.url)


def test_it_continues_after_the_database_has_restarted(driven, running, database, client, topic):
    before = len(listed(running, f"&topic={topic}"))
    client.insist("POST", "/api/messages", {"topic": topic, "author": "me", "text": "before"})
    database.restart()
    ids = set()
    # So many requests that every worker answers some.
    for count in range(100):
        ids.add(client.insist("POST", "/api/messages", {"topic": topic, "author": "me", "text": f"after {count}"})["id"])
    assert len(ids) == 100 and ids <= {id for id, _ in stored(database)}
    assert len(listed(running, f"&topic={topic}")) >= before + 101
