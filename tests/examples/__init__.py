"""The applications in examples/, each tested as its user sees it: from the database through the API to the browser.

    make example-fastapi                                    # starts an example on its own PostgreSQL, to look at
    .venv/bin/python -m pytest tests/examples -k fastapi    # its tests; run python/build.sh and node/build.sh first

A folder examples/NAME with a `run.sh` is an example, and all tests here run with it. A new example must have the following parts;
the tests need no change.

**The folder** is what a user copies, so it needs nothing else of this repository. The tests copy it to build/examples/NAME. They install
the packages of `requirements.txt` (into .venv) or `package.json` (into node_modules) into the copy, with frazil as built by this checkout.
`README.md` explains the example, and how to start it.

**`run.sh`** installs missing packages, creates the tables and starts the worker processes. Nothing is missing if `.venv/installed` equals
requirements.txt, or `node_modules/.installed` equals package.json. It starts the workers' supervisor by `exec`, so that SIGTERM reaches
the supervisor, which ends the workers. They release their node numbers. A killed worker need not be replaced, but the others must continue.
`run.sh` reads:

    DATABASE_URL    postgresql://USER:PASSWORD@HOST:PORT/DATABASE
    FRAZIL          the spec line; by default `standard store=env:DATABASE_URL`, so that each worker leases its own number
    PORT            on the loopback interface, 8000 by default
    WORKERS         the number of worker processes, 4 by default

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
`until`, by `min_id`. `before` is the last ID of the previous page. `limit` is 1 to 1000, 50 by default. Wrong input gets 400 or 422
and a reason: text that is not an ID, a number as an ID that is not exact (1e18), a missing topic, no text or too much (title and
author 100 characters, text 2000), or a NUL character, which PostgreSQL refuses.

**The page** at `/` is examples/fastapi/index.html in every example.
"""
