"""Leaf's and Tinyid's clients with frazil-server, which uses those systems' own tables in MariaDB: the clients get the usual answers."""

import http.client
import json
import socket

import pytest
import servers
from replica import TIMEOUT_S, Replica

# The tables and rows of those systems' documents, and two more rows for Tinyid's client.
LEAF = """
CREATE TABLE leaf_alloc (
    biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL,
    description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (biz_tag)
) ENGINE=InnoDB;
INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id');
"""
TINYID = """
CREATE TABLE tiny_id_info (
    id bigint(20) NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint(20) NOT NULL DEFAULT '0',
    max_id bigint(20) NOT NULL DEFAULT '0', step int(11) DEFAULT '0', delta int(11) NOT NULL DEFAULT '1',
    remainder int(11) NOT NULL DEFAULT '0', create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
    update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', version bigint(20) NOT NULL DEFAULT '0',
    PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)
) ENGINE=InnoDB DEFAULT CHARSET=utf8;
INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES
    ('test', 1, 1, 100000, 1, 0, 1), ('test_odd', 1, 1, 100000, 2, 1, 3), ('client', 1, 1, 100000, 1, 0, 1), ('odd', 1, 1, 100000, 2, 1, 1);
"""
TYPES = ("test", "test_odd", "client", "odd")
TOKEN = "0f673adf80504e2eaa552f5d791b644c"


@pytest.fixture(scope="module", params=["mariadb"])
def store(request):
    with servers.start(request.param) as store:
        store.sql(LEAF + TINYID)
        yield store


@pytest.fixture(scope="module")
def server(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drop-in")
    tokens = folder / "tokens.toml"
    tokens.write_text(f'[old]\nsecret = "{TOKEN}"\nmint = ["*"]\nlease = ["*"]\n')
    names = [f"{name}=segment store={store.url} table=tinyid compat=tinyid" for name in TYPES]
    # The maximum count of Tinyid's server.
    with Replica(folder, *names, "--max-count=100000", f"--tokens={tokens}") as replica:
        yield replica
        assert replica.end() == 0


def asked(server, request):
    """Sends a recorded request. Returns the answer's status line, type and body."""
    with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S) as connection:
        connection.sendall(request.replace(b"\n", b"\r\n"))
        with connection.makefile("rb") as answer:
            status = answer.readline().rstrip()
            headers = http.client.parse_headers(answer)
            return status, headers["Content-Type"], answer.read(int(headers["Content-Length"]))


# The requests of curl, and of Tinyid's own client on Java 17.
CURL = b"GET %s HTTP/1.1\nHost: localhost:9999\nUser-Agent: curl/7.88.1\nAccept: */*\n\n"
JAVA = (
    b"POST /tinyid/id/nextSegmentIdSimple?token=" + TOKEN.encode() + b"&bizType=%s HTTP/1.1\nCache-Control: no-cache\nPragma: no-cache\n"
    b"User-Agent: Java/17.0.15\nHost: localhost:9999\nAccept: text/html, image/gif, image/jpeg, */*; q=0.2\nConnection: keep-alive\n"
    b"Content-type: application/x-www-form-urlencoded\nContent-Length: 0\n\n"
)
TEXT, HTML, JSON = (f"{kind};charset=UTF-8" for kind in ("text/plain", "text/html", "application/json"))


def test_the_requests_of_tinyids_readme(server):
    """Sends the README's requests in order, and compares the answers."""
    recorded = [
        ("nextId?bizType=test", JSON, b'{"data":[2],"code":200,"message":""}'),
        ("nextIdSimple?bizType=test", TEXT, b"3"),
        ("nextIdSimple?bizType=test&batchSize=10", TEXT, b"4,5,6,7,8,9,10,11,12,13"),
        ("nextIdSimple?bizType=test_odd&batchSize=10", TEXT, b"3,5,7,9,11,13,15,17,19,21"),
    ]
    for operation, kind, body in recorded:
        path = f"/tinyid/id/{operation}&token={TOKEN}".encode()
        assert asked(server, CURL % path) == (b"HTTP/1.1 200 OK", kind, body)


def test_the_requests_of_tinyids_client(server):
    """Ranges have the form of Tinyid's server, `currentId,loadingId,maxId,delta,remainder`. The first range has the row's step."""
    for name, delta, remainder in (("client", 1, 0), ("odd", 2, 1)):
        # Spring sends a string with the most preferred type, and Java's own client prefers HTML.
        assert asked(server, JAVA % name.encode()) == (b"HTTP/1.1 200 OK", HTML, b"1,20001,100001,%d,%d" % (delta, remainder))
        # The next ranges continue after it. frazil's ranges grow with the demand.
        status, kind, body = asked(server, JAVA % name.encode())
        current, loading, end, *steps = map(int, body.split(b","))
        assert (status, kind, current, steps) == (b"HTTP/1.1 200 OK", HTML, 100_001, [delta, remainder])
        assert end - current in (100_000, 100_000 * delta) and loading == current + (end - current) * 20 // 100

        status, kind, body = asked(server, CURL % f"/tinyid/id/nextSegmentId?bizType={name}&token={TOKEN}".encode())
        data = json.loads(body)["data"]
        assert data["currentId"] == end and data["loadingId"] == end + (data["maxId"] - end) * 20 // 100
        written = f'"maxId":{data["maxId"]},"loadingId":{data["loadingId"]},"currentId":{end},"delta":{delta},"remainder":{remainder}'
        assert (status, kind, body.decode()) == (b"HTTP/1.1 200 OK", JSON, f'{{"data":{{{written}}},"code":200,"message":""}}')


def test_requests_that_tinyid_refuses(server):
    """A wrong token gets Tinyid's answer. If that answer is empty, the status is an error, for which Tinyid's client has no ID either."""
    path = b"/tinyid/id/nextId?bizType=test&token=" + b"0" * 32
    assert asked(server, CURL % path) == (b"HTTP/1.1 200 OK", JSON, b'{"data":null,"code":5,"message":"token is error"}')
    status, _, body = asked(server, JAVA.replace(TOKEN.encode(), b"0" * 32) % b"client")
    assert status.startswith(b"HTTP/1.1 401 ") and body.startswith(b"UNAUTHORIZED: ")


def test_leafs_requests(store, tmp_path):
    """Numbers are texts, beginning at the row's max_id. Leaf's own server may advance the row at the same time."""
    with Replica(tmp_path, f"leaf-segment-test=segment store={store.url} table=leaf compat=leaf") as server:
        get = CURL % b"/api/segment/get/leaf-segment-test"
        for number in range(1, 6):
            assert asked(server, get) == (b"HTTP/1.1 200 OK", TEXT, b"%d" % number)
        theirs = "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test'; SELECT max_id FROM leaf_alloc"
        end = int(store.sql(theirs))
        ours = server.ids("leaf-segment-test", 9000)
        assert len(set(ours)) == 9000 and not set(ours) & set(range(end - 2000, end)) and ours[-1] > end
        assert server.end() == 0
