"""The applications in examples/, each tested as its user sees it: from the database over the API to the browser.

    make example-fastapi                                    # to look at one, on a PostgreSQL of its own
    .venv/bin/python -m pytest tests/examples -k fastapi    # its tests; python/build.sh and node/build.sh come first

A folder examples/NAME with a `run.sh` is an example, and all tests here are run with it. To add one, offer what follows; nothing
here needs to know of it.

**The folder** is what a user copies: it needs nothing of this repository beside it. The tests copy it to build/examples/NAME, and install
into the copy what `requirements.txt` (into .venv) or `package.json` (into node_modules) names, with frazil as this checkout has built
it. `README.md` says what it shows, how to start it and what to look at.

**`run.sh`** installs what is missing (`.venv/installed` is a copy of requirements.txt, `node_modules/.installed` one of package.json: where
they are equal nothing is missing), creates the tables and starts the worker processes. By `exec`, so that SIGTERM reaches who watches
over them; it ends them, and they give their node numbers back. A worker that is killed need not come back, but the others go on. It reads:

    DATABASE_URL    postgresql://USER:PASSWORD@HOST:PORT/DATABASE
    FRAZIL          the spec line; by default `standard store=env:DATABASE_URL`, so that each worker leases a number of its own
    PORT            on the loopback interface, 8000 by default
    WORKERS         how many worker processes, 4 by default

**The tables**: `topics (id, title)` and `messages (id, topic_id, author, text)`. All of the IDs are bigint, topic_id is a foreign key.

**The API**, JSON, where each ID is a string of decimal digits:

    POST /api/topics        {title}                     201, the topic: {id, title}
    GET  /api/topics                                    [topic, ...]
    POST /api/messages      {topic, author, text}       201, the message: {id, topic, author, text, created, node}
    GET  /api/messages      ?topic= &since= &until= &before= &limit=
                                                        [message, ...], the newest first
    GET  /api/messages/ID                               the message, or 404
    GET  /openapi.json                                  where each ID is of type string

`created` (RFC 3339) and `node` are decoded from the ID. `since` and `until` are RFC 3339: messages from `since` on and before
`until`, by `min_id`. `before` is an ID, the last one of the page before; `limit` is 1 to 1000, 50 by default. What is
wrong is answered with 400 or 422 and a reason: text that is no ID, a number in place of an ID that is not exact (1e18), a topic that is
not there, no text or too much of it (title and author 100 characters, text 2000), a NUL character, which PostgreSQL refuses.

**The page** at `/` is examples/fastapi/index.html in every example.
"""
