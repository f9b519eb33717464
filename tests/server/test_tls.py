"""TLS on every port: real clients, clients' certificates, files that change, files that are wrong."""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import certificates
import pytest
import redis
from replica import TIMEOUT_S, Replica, run
from test_hostile import resident_kib, settled

NAME = "orders=standard node=1"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    # Certificates store times after 2049 in another format.
    for name, authority in (("ca", None), ("server", "ca"), ("client", "ca"), ("next", "ca"), ("other-ca", None), ("stranger", "other-ca")):
        certificates.make(folder, name, authority, days=10_000 if name == "next" else 2)
    return folder


def files(folder, name="server"):
    return [f"--tls-cert={folder / name}.crt", f"--tls-key={folder / name}.key"]


def knowing(folder, client=None):
    """The TLS context of an HTTP client."""
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    if client:
        context.load_cert_chain(folder / f"{client}.crt", folder / f"{client}.key")
    return context


def redis_over_tls(server, folder, client=None):
    own = {"ssl_certfile": folder / f"{client}.crt", "ssl_keyfile": folder / f"{client}.key"} if client else {}
    return server.redis(ssl=True, ssl_ca_certs=str(folder / "ca.crt"), **{key: str(path) for key, path in own.items()})


def curl(server, *arguments):
    url = f"https://127.0.0.1:{server.ports['http']}/v1/orders/next"
    command = ["curl", "--silent", "--show-error", "--request", "POST", "--write-out", "\n%{http_version} %{http_code}", *arguments, url]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def test_real_clients(tmp_path, folder):
    """curl with HTTP/2 by ALPN and with HTTP/1.1, redis-cli and redis-py. A client without TLS and a silent client are refused."""
    with Replica(tmp_path, NAME, *files(folder), tls=knowing(folder)) as server:
        silent = socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S)
        for versions, wanted in (([], "2 200"), (["--http1.1"], "1.1 200"), (["--tls-max", "1.2"], "2 200")):
            result = curl(server, "--cacert", folder / "ca.crt", *versions)
            assert result.stdout.endswith(f"\n{wanted}"), result
        assert curl(server, "--cacert", folder / "other-ca.crt").returncode == 60
        command = ["redis-cli", "--tls", "--cacert", folder / "ca.crt", "-p", str(server.ports["resp"]), "INCR", "orders"]
        assert int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout) > 0
        with redis_over_tls(server, folder) as client:
            pipeline = client.pipeline(transaction=False)
            for _ in range(3000):
                pipeline.execute_command("FRAZIL.NEXT", "orders", "COUNT", 10)
            assert len({number for answer in pipeline.execute() for number in answer}) == 30_000
        assert b"200" not in server.raw(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n", port="http")
        assert server.raw(b"PING\r\n") not in (b"+PONG\r\n", b"-ERR max number of clients reached\r\n")
        with silent:
            assert silent.recv(1) == b""
        metrics = server.ask("GET", "/metrics", port="admin")[2]
        assert b'frazil_server_handshakes_failed_total{protocol="resp"} 2' in metrics
        assert server.end() == 0


def test_clients_certificates(tmp_path, folder):
    """Every port serves only clients with the authority's certificate, so no token is needed to listen on other addresses. Without a
    certificate, a client may only ask the admin port whether the server is ready, as a probe does."""
    result = run("check", NAME, *files(folder), f"--tls-client-ca={folder / 'ca.crt'}", "--http=0.0.0.0:0")
    assert result.returncode == 0 and "clients' certificates required" in result.stdout, result.stderr
    result = run("check", NAME, *files(folder), "--http=0.0.0.0:0")
    assert result.returncode != 0 and "--tls-client-ca" in result.stderr
    with Replica(tmp_path, NAME, *files(folder), f"--tls-client-ca={folder / 'ca.crt'}", tls=knowing(folder, "client")) as server:
        assert len(server.ids("orders", 2)) == 2
        with redis_over_tls(server, folder, "client") as client:
            assert client.incr("orders") > 0
        for wrong in (None, "stranger"):
            own = ["--cert", folder / f"{wrong}.crt", "--key", folder / f"{wrong}.key"] if wrong else []
            result = curl(server, "--cacert", folder / "ca.crt", *own)
            assert result.returncode != 0 and result.stdout.endswith("\n0 000"), result
            with redis_over_tls(server, folder, wrong) as client, pytest.raises((redis.ConnectionError, OSError)):
                client.ping()
            server.tls, right = knowing(folder, wrong), server.tls
            if wrong:
                with pytest.raises(OSError):
                    server.ask("GET", "/healthz", port="admin")
            else:
                assert [server.ask("GET", path, port="admin")[0] for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 401]
                assert b"--tls-client-ca" in server.ask("GET", "/metrics", port="admin")[2]
            server.tls = right
        assert server.ask("GET", "/metrics", port="admin")[0] == 200
        # A TLS session of the admin port is not valid on another port, where it would replace a certificate.
        nobody, question = knowing(folder), b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with nobody.wrap_socket(socket.create_connection(("127.0.0.1", server.ports["admin"])), server_hostname="127.0.0.1") as admin:
            admin.sendall(question)
            assert b" 200 " in admin.recv(4096) and admin.session
            session = admin.session
        plain = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)
        with pytest.raises(OSError), nobody.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as stream:
            stream.sendall(question)
            assert stream.recv(4096) == b"", "it is served"
            raise ConnectionError
        result = run("health", NAME, *files(folder), f"--tls-client-ca={folder / 'ca.crt'}", f"--admin=127.0.0.1:{server.ports['admin']}")
        assert (result.returncode, result.stdout) == (0, '{"ready":true}\n'), result


def test_a_revoked_certificate(tmp_path, folder):
    """After a reload, the certificate is refused from the next connection on. A broken list changes nothing."""
    crl = tmp_path / "now.crl"
    shutil.copy(certificates.revoke(folder, "ca"), crl)
    known = [f"--tls-client-ca={folder / 'ca.crt'}", f"--tls-client-crl={crl}"]

    def is_served(client):
        try:
            with redis_over_tls(server, folder, client) as connection:
                return connection.incr("orders") > 0
        except (redis.ConnectionError, OSError):
            return False

    with Replica(tmp_path, NAME, *files(folder), *known, tls=knowing(folder, "next")) as server:
        assert is_served("client") and is_served("next")
        with redis_over_tls(server, folder, "client") as open_before:
            assert open_before.incr("orders") > 0
            shutil.copy(certificates.revoke(folder, "ca", "client"), crl)
            assert is_served("client"), "it was not read yet"
            server.reload("certificates.read")
            assert not is_served("client") and is_served("next")
            crl.write_text("nothing")
            server.reload("certificates.kept")
            assert "tls-client-crl=" in server.events()[-1]["text"]
            assert not is_served("client") and is_served("next")
            # Of two lists of one authority, OpenSSL would use the first.
            crl.write_text((folder / "ca.crl").read_text() * 2)
            server.reload("certificates.kept")
            assert "keep the newest one" in server.events()[-1]["text"]
            # A list of another authority does not cover these certificates.
            shutil.copy(certificates.revoke(folder, "other-ca", "stranger"), crl)
            server.reload("certificates.read")
            assert not is_served("next")
            assert open_before.incr("orders") > 0
        refused = [event for event in server.events() if event["event"] == "access.refused"]
        assert refused and {(event["protocol"], event["code"]) for event in refused} == {("resp", "CERTIFICATE")}


def test_no_session_outlives_a_clients_certificate(tmp_path, folder):
    """No session is resumed, because the server would not verify the certificate again."""
    known = [f"--tls-client-ca={folder / 'ca.crt'}"]
    with Replica(tmp_path, NAME, *files(folder), *known, tls=knowing(folder, "client")) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = knowing(folder, "client")
            context.minimum_version = context.maximum_version = version
            session = None
            for _ in range(2):
                plain = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)
                with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as stream:
                    stream.sendall(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert b" 200 " in stream.recv(4096) and not stream.session_reused
                    session = stream.session


def test_files_that_change(tmp_path, folder):
    """A new certificate is used from the next connection on. A wrong file changes nothing, and open connections continue."""
    for end in ("crt", "key"):
        shutil.copy(folder / f"server.{end}", tmp_path / f"now.{end}")

    def served():
        plain = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)
        with knowing(folder).wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            return dict(pair[0] for pair in stream.getpeercert()["subject"])["commonName"]

    def expires():
        metrics = server.ask("GET", "/metrics", port="admin")[2].decode()
        return float(re.search(r"^frazil_server_certificate_expires_timestamp_seconds (\S+)$", metrics, re.MULTILINE)[1])

    def end_by_openssl(name):
        result = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", folder / name], capture_output=True, text=True, check=True)
        return ssl.cert_time_to_seconds(result.stdout.strip().removeprefix("notAfter="))

    with Replica(tmp_path, NAME, *files(tmp_path, "now"), tls=knowing(folder)) as server, contextlib.closing(server.connection()) as steady:
        steady.request("POST", "/v1/orders/next")
        assert steady.getresponse().read()
        assert served() == "server" and expires() == end_by_openssl("server.crt")
        shutil.copy(folder / "next.crt", tmp_path / "now.crt")
        server.reload("certificates.kept")
        assert "now.key is not the key of" in server.events()[-1]["text"] and served() == "server"
        assert expires() == end_by_openssl("server.crt")
        shutil.copy(folder / "next.key", tmp_path / "now.key")
        server.reload("certificates.read")
        assert served() == "next" and expires() == end_by_openssl("next.crt")
        steady.request("POST", "/v1/orders/next")
        assert steady.getresponse().read()


def test_the_end_of_a_connection_and_of_a_handshake(tmp_path, folder):
    """SIGTERM does not wait for a connection without a handshake. An established connection gets TLS's close_notify."""
    with Replica(tmp_path, NAME, *files(folder), tls=knowing(folder)) as server:
        agreed = knowing(folder).wrap_socket(
            socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S), server_hostname="127.0.0.1"
        )
        silent = socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S)
        with agreed, silent:
            ended = []
            waiting = threading.Thread(target=lambda: ended.append(server.end()))
            waiting.start()
            # A connection that ends without close_notify raises SSLEOFError.
            agreed.suppress_ragged_eofs = False
            assert agreed.recv(1) == b"" and silent.recv(1) == b""
            waiting.join()
        assert ended == [0] and not any(event["event"] == "cut.off" for event in server.events())


def test_the_end_of_a_connection_that_asked_for_an_upgrade(tmp_path, folder):
    """hyper drops such a connection silently."""
    with Replica(tmp_path, NAME, *files(folder), tls=knowing(folder)) as server:
        plain = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=TIMEOUT_S)
        with knowing(folder).wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as stream:
            stream.sendall(b"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n")
            assert b" 200 " in b"".join(iter(lambda: stream.recv(65536), b""))


def test_wrong_files(tmp_path, folder):
    (tmp_path / "empty").write_text("nothing\n")
    locked = tmp_path / "locked.key"
    command = ["openssl", "pkey", "-in", folder / "server.key", "-aes128", "-passout", "pass:hidden", "-out", locked]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "broken").write_text((folder / "server.crt").read_text().replace("-----END CERTIFICATE-----", "-----END"))
    crt, key = files(folder)
    for arguments, expected in (
        ([crt], "tls-cert is given without tls-key"),
        ([key], "tls-key is given without tls-cert"),
        ([f"--tls-client-ca={folder / 'ca.crt'}"], "tls-client-ca is given without tls-cert"),
        ([crt, key, f"--tls-client-crl={folder / 'ca.crt'}"], "tls-client-crl is given without tls-client-ca"),
        (["--tls-cert=/no/such/file", key], "tls-cert=/no/such/file cannot be read"),
        ([crt, "--tls-key=/no/such/file"], "tls-key=/no/such/file cannot be read"),
        ([f"--tls-cert={tmp_path / 'empty'}", key], "certificates in PEM"),
        ([f"--tls-cert={tmp_path / 'broken'}", key], "is broken"),
        ([crt, f"--tls-key={tmp_path / 'empty'}"], "private key in PEM"),
        ([crt, f"--tls-key={locked}"], "openssl pkey"),
        ([crt, f"--tls-key={folder / 'client.key'}"], "client.key is not the key of the first certificate"),
        ([crt, key, f"--tls-client-ca={folder / 'ca.key'}"], "tls-client-ca="),
        ([crt, key, f"--tls-client-ca={folder / 'ca.crt'}", f"--tls-client-crl={folder / 'ca.crt'}"], "revocation lists in PEM"),
    ):
        ended = run("check", NAME, *arguments)
        assert ended.returncode != 0 and expected in ended.stderr and '"SPEC"' in ended.stderr, (expected, ended.stderr)
    assert run("check", NAME, crt, key).returncode == 0


def test_a_store_that_is_lent_over_tls(tmp_path, folder):
    """A program leases if it trusts the authority, and has a certificate if that is needed. Any other gets an error with the remedy."""
    program = """
import frazil, sys
try:
    with frazil.Snowflake("standard window=6s renew=1s", store=sys.argv[1], namespace="shop") as ids:
        print(ids.next() > 0, ids.lease.healthy)
except frazil.FrazilError as error:
    print(error.name, error)
"""

    def output_of(server, options="", scheme="frazils", host="localhost", authority="other-ca"):
        url = f"{scheme}://{host}:{server.ports['resp']}{options}"
        env = os.environ | {"SSL_CERT_FILE": str(folder / f"{authority}.crt")}
        command = [sys.executable, "-c", program, url]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout

    def own(client, key=None):
        return f"?ca={folder}/ca.crt&cert={folder}/{client}.crt&key={folder}/{key or client}.key"

    lent = f"shop=lend store=file:{tmp_path}/store"
    with Replica(tmp_path, lent, *files(folder), tls=knowing(folder)) as server:
        for text in (output_of(server, authority="ca"), output_of(server, f"?ca={folder}/ca.crt"), output_of(server, own("client"))):
            assert text == "True True\n", text
        for text, wanted in (
            (output_of(server), "set SSL_CERT_FILE"),
            (output_of(server, scheme="frazil"), "frazils://"),
            (output_of(server, f"?ca={folder}/ca.key"), "no certificate in PEM"),
            (output_of(server, f"?cert={folder}/client.crt"), "given together"),
            (output_of(server, own("client", key="stranger")), "do not go together"),
            (output_of(server, "?ca=x", scheme="frazil"), "are for frazils://"),
        ):
            assert wanted in text, text
    certificates.make(tmp_path, "elsewhere", folder / "ca", "DNS:elsewhere")
    trusting = knowing(folder)
    trusting.check_hostname = False
    with Replica(tmp_path, lent, *files(tmp_path, "elsewhere"), tls=trusting) as server:
        text = output_of(server, f"?ca={folder}/ca.crt")
        assert text.startswith("STORE_UNREACHABLE") and "not valid for name" in text, text
    with Replica(tmp_path, lent, *files(folder), f"--tls-client-ca={folder / 'ca.crt'}", tls=knowing(folder, "client")) as server:
        assert output_of(server, own("client")) == "True True\n"
        for options, wanted in ((f"?ca={folder}/ca.crt", "add ?cert=FILE&key=FILE"), (own("stranger"), "--tls-client-ca")):
            text = output_of(server, options)
            # The server may close the connection before its answer is read.
            assert text.startswith("STORE_UNREACHABLE") and (wanted in text or "closed the connection" in text), text


def test_encrypted_answers_that_nobody_reads_are_few(tmp_path, folder):
    """A connection kept 64 KB of them beside the answers that the server counts: 300 held 49 MB."""
    count, context = 300, knowing(folder)
    asked = 400 * b"POST /v1/orders/next?n=50 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Replica(tmp_path, NAME, *files(folder), tls=context) as server, contextlib.ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.ports["http"]))
            connections.append(stack.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1")))
            connections[-1].setblocking(False)
        before = resident_kib(server)
        for connection in connections * 3:
            with contextlib.suppress(ssl.SSLWantWriteError):
                connection.send(asked)
        settled(lambda: resident_kib(server) // 1024)
        assert (resident_kib(server) - before) / count < 135
