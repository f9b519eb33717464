"""The search of the built guide answers what people type in its first three hits. It runs in Node, as in a browser."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# What a user types, and the beginning of the address that answers it.
QUERIES = {
    "performance": "speed.html",
    "upgrade": "questions.html#what-is-stable",
    "faq": "questions.html",
    "multi region": "questions.html#several-regions",
    "lambda": "production.html#serverless",
    "compose": "questions.html#docker-and-compose",
    "66 s": "stores.html#how-long-a-start-takes",
    "thread safe": "speed.html#threads",
    "kubernetes worker id": "production.html#kubernetes",
    "clock backwards": "concepts.html#the-clock-goes-back",
    "duplicate key": "questions.html#duplicate-key-value",
    "gunicorn": "production.html#web-servers-and-workers",
    "javascript rounds": "questions.html#my-bigint-loses",
    "custom epoch": "layouts.html",
    "uuid vs snowflake": "compare.html",
    "NODE_IN_USE": "errors.html#node-in-use",
    "install": "start.html",
    "timeout": "waits.html",
    "restore a backup": "guarantees.html#restored-backups",
    "prisma": "node-orm.html#prisma",
    "monitoring": "observability.html",
    "migrate from leaf": "moving.html",
    "kuberentes": "production.html#kubernetes",
    "frazil_snowflake_open": "site/c.html#c.frazil_snowflake_open",
}
ASK = """
const { searcher } = require(`${process.argv[1]}/search.js`)
const MiniSearch = require(`${process.argv[1]}/minisearch.js`)
const SECTIONS = new Function(`${require('fs').readFileSync(`${process.argv[1]}/sections.js`)}; return SECTIONS`)()
const find = searcher(MiniSearch, SECTIONS)
const queries = JSON.parse(require('fs').readFileSync(0))
console.log(JSON.stringify(queries.map((query) => find(query).map((page) => page.map(({ id }) => id)))))
"""


@pytest.fixture(scope="module")
def find(built_site):
    """Returns a function from a query to the pages that the search shows, each as the addresses of its sections."""

    def ask(*queries):
        command = ["node", "-e", ASK, built_site / "_static"]
        asked = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, check=True)
        return json.loads(asked.stdout)

    return ask


@pytest.fixture(scope="module")
def answers(find):
    return dict(zip(QUERIES, find(*QUERIES), strict=True))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_answered_in_the_first_three_hits(query, answers):
    best = [page[0] for page in answers[query]][:3]
    assert any(address.startswith(QUERIES[query]) for address in best), best


@pytest.mark.parametrize("query", QUERIES)
def test_the_search_shows_no_page_twice(query, answers):
    pages = [{address.partition("#")[0] for address in page} for page in answers[query]]
    assert all(len(page) == 1 for page in pages)
    names = [name for page in pages for name in page]
    assert len(names) == len(set(names))


def test_each_hit_is_an_anchor_of_its_page(answers, built_site):
    for address in {address for pages in answers.values() for page in pages[:3] for address in page}:
        page, _, anchor = address.partition("#")
        assert not anchor or f'id="{anchor}"' in (built_site / page).read_text(), address


def test_a_word_that_no_page_has_finds_nothing(find):
    assert find("qqqqzzzz") == [[]]
