//! The URLs and the errors. On servers that the environment names: the behaviour suite, and cases
//! of these databases alone. One file, because most cases need such a server.

use super::super::{Ask, Key, Store, Swap, Swapped, Which, suite};
#[cfg(target_os = "linux")]
use super::Texts;
use super::link::Link;
use super::{connect, refusal, url};
use frazil_base::error::{Error, ErrorKind};
use std::env;
use std::net::TcpListener;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECOND: Duration = Duration::from_secs(1);

fn server(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: a store's URL"))
}

/// The URL of a PostgreSQL whose tables are in this schema.
fn in_schema(schema: &str) -> String {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    format!("{url}{}options=-csearch_path%3D{schema}", if url.contains('?') { '&' } else { '?' })
}

fn open(url: &str) -> Box<dyn Store> {
    connect(url, 60 * SECOND).unwrap()
}

fn refused(url: &str) -> Error {
    let begun = Instant::now();
    let error = connect(url, SECOND).map(drop).unwrap_err();
    assert!(begun.elapsed() < 60 * SECOND, "{error} after {:?}", begun.elapsed());
    for secret in ["anna", "secret"] {
        assert!(!error.to_string().contains(secret), "{error}");
    }
    error
}

/// Only such swaps are sent together.
#[test]
fn plain_swap_replaces_a_record_of_a_slot_by_one_that_fits() {
    let swap = |key, meta: Option<&str>, old: Option<&str>, length| Swap {
        meta: meta.map(str::to_owned),
        server: String::new(),
        key,
        old: old.map(str::to_owned),
        new: "x".repeat(length),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    };
    let (slot, text) = (Key::Slot(1), Some("text"));
    assert!(super::is_plain(&swap(slot, text, text, 4096)));
    for other in [swap(Key::Meta, text, text, 1), swap(slot, None, text, 1), swap(slot, text, None, 1), swap(slot, text, text, 4097)] {
        assert!(!super::is_plain(&other), "{other:?}");
    }
}

#[test]
fn urls_that_are_refused() {
    for (url, says) in [
        ("postgresql://anna:secret@db/x?sslmod=require", "\"sslmod\" is not a parameter of store=postgresql://"),
        ("postgresql://db/x?password=secret", "\"password\" is not a parameter"),
        ("mysql://anna:secret@db/x?charset=latin1", "\"charset\" is not a parameter of store=mysql://"),
        ("postgresql://anna:secret@db/x?sslmode=sometimes", "x?sslmode=sometimes is not a URL"),
        ("mysql://anna:secret@db/x?ssl-mode=sometimes", "x?ssl-mode=sometimes is not a URL"),
        ("postgresql://anna:se/secret@db/x", "store=postgresql://*** is not a URL"),
        ("mysql://anna:secret@db:port/x", "store=mysql://*** is not a URL"),
        ("mysql://anna:secret@db", "store=mysql://***@db names no database"),
    ] {
        let error = refused(url);
        assert_eq!(error.kind(), ErrorKind::Spec, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn endpoints() {
    let database = |login: url::SqlServer| (login.endpoint, login.database);
    let expected = |endpoint: &str, name: &str| (endpoint.to_owned(), name.to_owned());
    assert_eq!(
        database(url::postgresql("postgresql://a:b@db.example:6000/x?sslmode=verify-full").unwrap()),
        expected("db.example:6000", "x")
    );
    assert_eq!(database(url::postgresql("postgres://a:b@[::1]/x").unwrap()), expected("[::1]:5432", "x"));
    assert_eq!(database(url::postgresql("postgres://a@localhost/x?host=/run/postgresql").unwrap()), expected("/run/postgresql", "x"));
    assert_eq!(database(url::mysql("mariadb://a:b@db.example/x").unwrap()), expected("db.example:3306", "x"));
    assert_eq!(database(url::mysql("mysql://a@localhost/x?socket=/run/s.sock").unwrap()), expected("/run/s.sock", "x"));
}

#[test]
fn errors_name_the_address_and_not_the_user() {
    use ErrorKind::{Spec, StoreAuth, StoreCorrupt, StoreReadonly, StoreUnreachable, StoreUnsuitable};
    let login = url::postgresql("postgresql://anna:secret@db:6000/x").unwrap();
    for (code, message, kind) in [
        ("28P01", "password authentication failed for user \"anna\"", StoreAuth),
        ("08P01", "password authentication failed", StoreAuth),
        ("1142", "INSERT command denied to user 'anna'@'localhost' for table `frazil`", StoreAuth),
        ("42501", "permission denied for table frazil", StoreAuth),
        ("3D000", "database \"x\" does not exist", Spec),
        ("25006", "cannot execute INSERT in a read-only transaction", StoreReadonly),
        ("53100", "could not extend file", StoreReadonly),
        ("55P03", "canceling statement due to lock timeout", StoreUnreachable),
        ("57014", "canceling statement due to statement timeout", StoreUnreachable),
        ("57P03", "the database system is starting up", StoreUnreachable),
        ("42601", "syntax error", StoreUnsuitable),
        ("08P01", "server login failed: FATAL role \"anna\" does not exist", StoreAuth),
        ("08P01", "server login failed: FATAL database \"x\" does not exist", Spec),
        ("08P01", "unsupported startup parameter: options", StoreUnsuitable),
        ("08P01", "unsupported startup parameter in options: search_path", StoreUnsuitable),
        ("08P01", "transaction blocks not allowed in statement pooling mode", StoreUnsuitable),
        ("08P01", "anything else", StoreUnreachable),
        ("XX001", "invalid page", StoreCorrupt),
        ("", "connection reset by peer", StoreUnreachable),
    ] {
        let error = refusal::error(&refusal::Refusal { code: code.to_owned(), message: message.to_owned() }, &login);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("db:6000") && !error.to_string().contains("anna"), "{error}");
    }
}

/// The server runs, so an opener waits. If the wait ends, the error names the limit.
#[test]
fn full_server_is_busy_and_its_limit_is_named() {
    use ErrorKind::StoreUnreachable;
    let login = url::postgresql("postgresql://anna:secret@db:6000/x").unwrap();
    for (code, message, limit) in [
        ("53300", "sorry, too many clients already", "max_connections"),
        ("53300", "remaining connection slots are reserved for non-replication superuser connections", "max_connections"),
        ("53300", "too many connections for role \"anna\"", "ALTER ROLE"),
        ("53300", "too many connections for database \"x\"", "ALTER DATABASE"),
        ("1040", "Too many connections", "max_connections"),
        ("1203", "User anna already has more than 'max_user_connections' active connections", "max_user_connections"),
        ("1226", "User 'anna' has exceeded the 'max_user_connections' resource", "max_user_connections"),
        ("08P01", "no more connections allowed (max_client_conn)", "max_client_conn"),
        ("08P01", "query_wait_timeout", "default_pool_size"),
        ("57P03", "the database system is starting up", "starting up"),
    ] {
        let error = refusal::error(&refusal::Refusal { code: code.to_owned(), message: message.to_owned() }, &login);
        assert!(error.kind() == StoreUnreachable && error.retry_after().is_some(), "{error}");
        assert!(error.to_string().contains(limit) && !error.to_string().contains("anna"), "{error}");
    }
    // Waiting does not help against these errors.
    for (code, message) in
        [("28P01", "no"), ("3D000", "no"), ("25006", "no"), ("1226", "the 'max_queries_per_hour' resource"), ("", "refused")]
    {
        let error = refusal::error(&refusal::Refusal { code: code.to_owned(), message: message.to_owned() }, &login);
        assert_eq!(error.retry_after(), None, "{error}");
    }
}

/// A statement can end for three causes, and each has a different fix.
#[test]
fn lock_time_limit_and_cancellation_have_different_errors() {
    let login = url::postgresql("postgresql://anna:secret@db:6000/x").unwrap();
    for (code, message, says) in [
        ("55P03", "canceling statement due to lock timeout", "locked"),
        ("1205", "Lock wait timeout exceeded", "locked"),
        ("57014", "canceling statement due to statement timeout", "statement_timeout"),
        ("57014", "canceling statement due to user request", "cancelled"),
        ("1969", "Query execution was interrupted (max_statement_time exceeded)", "max_statement_time"),
        ("3024", "Query execution was interrupted, maximum statement execution time exceeded", "max_execution_time"),
    ] {
        let error = refusal::error(&refusal::Refusal { code: code.to_owned(), message: message.to_owned() }, &login);
        assert!(error.to_string().contains(says) && (says == "locked") == error.to_string().contains("locked"), "{error}");
    }
}

/// Changes settings as an administrator may while a connection is open, and restores them.
fn settings_are_looked_at_again(url: &str, admin: &[&str], back: &[&str], says: &str, mut link: Link) {
    let (mut store, name, server) = namespace(url, "again");
    admin.iter().for_each(|text| drop(link.ask(text).unwrap()));
    thread::sleep(2 * super::LOOK_AGAIN);
    let swapped = store.swap(&name, &swap(&server, Some("0"), Key::Slot(1), Some("start"), "new"));
    link.start();
    back.iter().for_each(|text| drop(link.ask(text).unwrap()));
    let error = swapped.unwrap_err();
    assert!(error.kind() == ErrorKind::StoreUnsuitable && error.to_string().contains(says), "{error}");
    assert_eq!(open(url).load(&name, Which::One(1)).unwrap().slots, [(1, "start".to_owned())], "nothing was written");
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn table_that_becomes_unlogged() {
    let schema = "frazil_again";
    let own = in_schema(schema);
    let mut link = Link::connect(url::postgresql(&own).unwrap(), 60 * SECOND).unwrap();
    link.ask(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).unwrap();
    link.ask(&format!("CREATE SCHEMA {schema}")).unwrap();
    settings_are_looked_at_again(&own, &["ALTER TABLE frazil SET UNLOGGED"], &["ALTER TABLE frazil SET LOGGED"], "UNLOGGED", link);
}

/// While several sessions make one table, PostgreSQL refuses it with one of several codes.
#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn sessions_that_make_the_table_at_the_same_moment_all_succeed() {
    let schema = "frazil_at_once";
    let own = in_schema(schema);
    let link = || Link::connect(url::postgresql(&own).unwrap(), 60 * SECOND).unwrap();
    let mut links: Vec<_> = (0..6).map(|_| link()).collect();
    for _ in 0..100 {
        links[0].start();
        links[0].ask(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")).unwrap();
        let start = Barrier::new(links.len());
        thread::scope(|scope| {
            for link in &mut links {
                scope.spawn(|| {
                    link.start();
                    start.wait();
                    super::postgresql::prepare(link).map(drop).unwrap();
                });
            }
        });
    }
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn time_limit_of_the_account() {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    let own = format!("{url}{}options=-cstatement_timeout%3D50", if url.contains('?') { '&' } else { '?' });
    let mut link = Link::connect(url::postgresql(&own).unwrap(), 60 * SECOND).unwrap();
    let error = link.ask("SELECT pg_sleep(5)").unwrap_err();
    assert!(error.to_string().contains("statement_timeout") && !error.to_string().contains("locked"), "{error}");
}

/// The rows that `frazil merge-audit` reads.
fn rows_of_a_query(url: &str) {
    let ask = |query: &str, most: usize| {
        let mut values = Vec::new();
        super::column(url, query, &|| false, &mut |value| {
            values.push(value.map(|value| String::from_utf8(value.to_vec()).unwrap()));
            values.len() < most
        })
        .map(|()| values)
    };
    let some = |text: &str| Some(text.to_owned());
    let query = "SELECT 9223372036854775807 UNION ALL SELECT NULL UNION ALL SELECT 3";
    assert_eq!(ask(query, 10).unwrap(), [some("9223372036854775807"), None, some("3")]);
    assert_eq!(ask(query, 1).unwrap(), [some("9223372036854775807")], "it ends where the caller says so");
    for (query, says) in [
        ("SELECT 1, 2", "it gives 2 columns, not one"),
        ("SELECT id FROM frazil_nowhere", "frazil_nowhere"),
        ("CREATE TABLE frazil_written (id BIGINT)", "(25006)|(1792)"),
        ("COMMIT; CREATE TABLE frazil_written (id BIGINT)", "(25006)|(1792)"),
    ] {
        let error = ask(query, 10).unwrap_err();
        assert!(error.kind() == ErrorKind::Spec && says.split('|').any(|text| error.to_string().contains(text)), "{query}: {error}");
    }
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn rows_of_a_query_in_postgresql() {
    rows_of_a_query(&server("FRAZIL_TEST_POSTGRESQL"));
}

#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn rows_of_a_query_in_mariadb() {
    rows_of_a_query(&server("FRAZIL_TEST_MARIADB"));
}

/// An identity that is NULL equals no other.
#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn identity_that_is_null_differs() {
    use super::Texts;
    let url = server("FRAZIL_TEST_MARIADB");
    let (_, name, server) = namespace(&url, "null");
    let mut link = Link::connect(url::mysql(&url).unwrap(), 60 * SECOND).unwrap();
    let texts = super::mysql::Mysql { server: "NULL" };
    let swap = swap(&server, Some("0"), Key::Slot(1), Some("start"), "new");
    let rows = link.ask(&texts.swap(&name, &swap, SECOND, SECOND)).unwrap();
    assert_eq!(rows.last().unwrap()[0].as_deref(), Some("differs"));
    assert_eq!(open(&url).load(&name, Which::One(1)).unwrap().slots, [(1, "start".to_owned())]);
}

/// A wrapper whose texts omit part of the answers to a group.
struct Short<T>(T);

impl<T: super::Texts> super::Texts for Short<T> {
    fn load(&self, namespace: &str, which: &Which, number: usize) -> String {
        self.0.load(namespace, which, number)
    }

    fn swap(&self, namespace: &str, swap: &Swap, timeout: Duration, lock_timeout: Duration) -> String {
        self.0.swap(namespace, swap, timeout, lock_timeout)
    }

    fn swap_many(&self, swaps: &[(&str, &Swap)], timeout: Duration, lock_timeout: Duration) -> String {
        self.0.swap_many(swaps, timeout, lock_timeout)
    }

    fn rows(&self, rows: Vec<super::Values>) -> Vec<super::Values> {
        self.0.rows(rows).into_iter().skip(1).collect()
    }
}

/// A swap without an answer may have been done. If it were repeated, it would differ from its own
/// record.
fn a_group_with_a_missing_answer_is_lost(url: &str, link: Link, texts: impl super::Texts + 'static, inspect: super::Inspect) {
    let (mut store, name, server) = namespace(url, "short");
    assert_eq!(store.swap(&name, &swap(&server, Some("0"), Key::Slot(2), None, "start")).unwrap(), Swapped::Done);
    let mut short = super::Sql { link, texts: Box::new(Short(texts)), inspect, looked: Instant::now() };
    let swaps = [1, 2].map(|node| swap(&server, Some("0"), Key::Slot(node), Some("start"), "new"));
    let answers = short.ask_many(&[Ask::Swap(&name, &swaps[0]), Ask::Swap(&name, &swaps[1])]);
    assert!(
        answers.len() == 2 && answers.iter().all(|answer| answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::StoreCorrupt)),
        "{answers:?}"
    );
    let slots = open(url).load(&name, Which::Page(0)).unwrap().slots;
    assert_eq!(slots, [(1, "new".to_owned()), (2, "new".to_owned())], "both were done");
}

#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn group_with_a_missing_answer_is_lost_on_mariadb() {
    let url = server("FRAZIL_TEST_MARIADB");
    let mut link = Link::connect(url::mysql(&url).unwrap(), 60 * SECOND).unwrap();
    let texts = super::mysql::prepare(&mut link).unwrap();
    a_group_with_a_missing_answer_is_lost(&url, link, texts, super::mysql::inspect);
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn group_with_a_missing_answer_is_lost_on_postgresql() {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    let mut link = Link::connect(url::postgresql(&url).unwrap(), 60 * SECOND).unwrap();
    let texts = super::postgresql::prepare(&mut link).unwrap();
    a_group_with_a_missing_answer_is_lost(&url, link, texts, super::postgresql::inspect);
}

/// On a server whose `completion_type` is CHAIN, each commit begins a transaction, which contains
/// the next text.
#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn chained_commits_do_not_affect_the_next_text() {
    use super::Texts;
    let url = server("FRAZIL_TEST_MARIADB");
    let (_, name, server) = namespace(&url, "chain");
    let mut link = Link::connect(url::mysql(&url).unwrap(), 60 * SECOND).unwrap();
    let texts = super::mysql::Mysql { server: "@@server_id" };
    link.ask("SET SESSION completion_type = 'CHAIN'").unwrap();
    for _ in 0..2 {
        link.ask(&texts.swap(&name, &swap(&server, Some("0"), Key::Slot(1), Some("start"), "new"), SECOND, SECOND)).unwrap();
        link.ask(&texts.load(&name, &Which::Page(0), 0)).unwrap();
    }
}

#[test]
fn errors_name_the_table_that_is_used() {
    let login = url::mysql("mysql://anna:secret@db:6000/x").unwrap().for_table("leaf_alloc");
    for (code, says) in [
        ("1142", "grant SELECT and UPDATE on the table leaf_alloc"),
        ("1205", "another session holds the table leaf_alloc"),
        ("1054", "its table leaf_alloc must have"),
        ("1267", "its table leaf_alloc must have"),
    ] {
        let error = refusal::error(&refusal::Refusal { code: code.to_owned(), message: String::new() }, &login);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn parameter_refused_by_a_pooler_has_a_remedy() {
    let login = url::postgresql("postgresql://anna:secret@db:6000/x").unwrap();
    for (message, says) in [
        ("unsupported startup parameter: options", ["leave options out of the URL", "ALTER ROLE"]),
        ("transaction blocks not allowed in statement pooling mode", ["statement mode", "pool_mode=transaction"]),
    ] {
        let error = refusal::error(&refusal::Refusal { code: "08P01".to_owned(), message: message.to_owned() }, &login).to_string();
        assert!(says.iter().all(|part| error.contains(part)) && !error.contains("its table"), "{error}");
    }
}

/// A MySQL 8 or 9 whose cache does not have the login is reached without TLS. It requests the full
/// password.
#[test]
fn login_that_needs_tls_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mysql://anna:secret@{}/x?ssl-mode=DISABLED", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let packet = |number: u8, payload: &[u8]| [&[u8::try_from(payload.len()).unwrap(), 0, 0, number], payload].concat();
        // The greeting has protocol 4.1, a salt of 20 bytes, and the name of the plugin.
        let greeting =
            [b"\x0a8.4.3\0\x01\0\0\0saltsalt\0\x08\x82\x2d\x02\0\x08\0\x15".as_slice(), &[0; 10], b"saltsaltsalt\0caching_sha2_password\0"]
                .concat();
        // After the login the server requests the password, and then sends its public key.
        for answer in [packet(0, &greeting), packet(2, b"\x01\x04"), packet(4, b"\x01-----BEGIN PUBLIC KEY-----")] {
            std::io::Write::write_all(&mut stream, &answer).unwrap();
            assert!(std::io::Read::read(&mut stream, &mut [0; 512]).is_ok());
        }
    });
    let error = refused(&url);
    assert_eq!(error.kind(), ErrorKind::StoreAuth, "{error}");
    assert!(error.to_string().contains("write ssl-mode=REQUIRED") && !error.to_string().contains("feature"), "{error}");
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn late_answer_says_what_the_other_session_waits_for() {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    let link = || Link::connect(url::postgresql(&url).unwrap(), 2 * SECOND).unwrap();
    let (mut other, mut late) = (link(), link());
    super::postgresql::prepare(&mut other).unwrap();
    other.ask("BEGIN; LOCK TABLE frazil IN EXCLUSIVE MODE").unwrap();
    let waits = |late: &mut Link| late.ask("SET lock_timeout = 100; UPDATE frazil SET slot = slot WHERE false").unwrap_err().to_string();
    late.start();
    let error = waits(&mut late);
    assert!(error.contains("locked waits for its own client"), "{error}");
    // This session works, and never waits for a lock.
    let busy = thread::spawn(move || (other.start(), other.ask("SELECT pg_sleep(1)")));
    let mut late = link();
    late.ask("SELECT 1").unwrap();
    thread::sleep(SECOND / 4);
    late.start();
    let error = waits(&mut late);
    assert!(error.contains("locked waits for Timeout PgSleep"), "{error}");
    busy.join().unwrap().1.unwrap();
}

#[test]
fn silent_and_missing_servers_are_unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for address in [address, gone] {
        for scheme in ["postgresql", "mysql"] {
            let error = refused(&format!("{scheme}://anna:secret@{address}/x"));
            assert_eq!(error.kind(), ErrorKind::StoreUnreachable, "{error}");
            assert!(error.to_string().contains(&address), "{error}");
        }
    }
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn suite_on_postgresql() {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    suite::run(&|| open(&url));
}

#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn suite_on_mariadb() {
    let url = server("FRAZIL_TEST_MARIADB");
    suite::run(&|| open(&url));
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
fn cases_of_sql_on_postgresql() {
    let url = server("FRAZIL_TEST_POSTGRESQL");
    cases_of_sql(&url, || Link::connect(url::postgresql(&url).unwrap(), 60 * SECOND).unwrap());
}

#[test]
#[ignore = "needs FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn cases_of_sql_on_mariadb() {
    let url = server("FRAZIL_TEST_MARIADB");
    cases_of_sql(&url, || Link::connect(url::mysql(&url).unwrap(), 60 * SECOND).unwrap());
    #[cfg(target_os = "linux")]
    stalled_client_keeps_no_locks(&url);
}

fn cases_of_sql(url: &str, link: impl Fn() -> Link) {
    refused_logins(url);
    table_made_at_once(url);
    meta_against_slots(url);
    held_lock(url, link());
    change_that_was_waited_for(url, &link);
    late_after_waiting(url, link());
    lost_connection(link(), link());
}

/// A proxy to a server, with room for few bytes. While it is shut, it returns no bytes.
#[cfg(target_os = "linux")]
fn narrow_way(url: &str, is_shut: &'static AtomicBool) -> String {
    use std::io::copy;
    use std::os::fd::AsRawFd;

    let (rest, path) = url.rsplit_once('/').unwrap();
    let (login, target) = rest.rsplit_once('@').unwrap();
    let target: std::net::SocketAddr = target.parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let way = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        way.set_recv_buffer_size(2_048).unwrap();
        // The segments are small, as over Ethernet. The loopback interface's segments of 64 KiB
        // would give the server's buffer room for thousands of answers.
        let segment: libc::c_int = 536;
        // SAFETY: the value is an integer, with its length.
        let set = unsafe { libc::setsockopt(way.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, (&raw const segment).cast(), 4) };
        assert_eq!(set, 0);
        way.connect(&target.into()).unwrap();
        let mut server = std::net::TcpStream::from(way);
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || copy(&mut from, &mut to));
        let mut buffer = [0; 512];
        loop {
            while is_shut.load(Ordering::SeqCst) {
                thread::sleep(SECOND / 100);
            }
            match std::io::Read::read(&mut server, &mut buffer) {
                Ok(count @ 1..) => std::io::Write::write_all(&mut &client, &buffer[..count]).unwrap(),
                _ => return,
            }
        }
    });
    format!("{login}@{place}/{path}")
}

/// The buffers of a stalled client have room for all that the server sends before its commit.
#[cfg(target_os = "linux")]
fn stalled_client_keeps_no_locks(url: &str) {
    static IS_SHUT: AtomicBool = AtomicBool::new(false);
    const SWAPS: u64 = 500;
    let (mut store, name, server) = namespace(url, "paused");
    let make = |old: Option<&str>, new: &str| (0..SWAPS).map(|node| swap(&server, Some("0"), Key::Slot(node + 10), old, new)).collect();
    let (first, then): (Vec<_>, Vec<_>) = (make(None, "old"), make(Some("old"), "new"));
    first.iter().for_each(|swap| assert_eq!(store.swap(&name, swap).unwrap(), Swapped::Done));
    let mut link = Link::connect(url::mysql(&narrow_way(url, &IS_SHUT)).unwrap(), 60 * SECOND).unwrap();
    let texts = super::mysql::prepare(&mut link).unwrap();
    let asked: Vec<_> = then.iter().map(|swap| (name.as_str(), swap)).collect();
    IS_SHUT.store(true, Ordering::SeqCst);
    thread::scope(|scope| {
        let paused = scope.spawn(|| {
            link.start();
            link.ask(&texts.swap_many(&asked, 30 * SECOND, 10 * SECOND)).unwrap()
        });
        let (begun, mut is_written) = (Instant::now(), false);
        while !is_written && begun.elapsed() < 20 * SECOND {
            is_written = store.load(&name, Which::One(10)).unwrap().slots == [(10, "new".to_owned())];
            thread::sleep(SECOND / 50);
        }
        IS_SHUT.store(false, Ordering::SeqCst);
        assert!(is_written, "the server waits for its client, and so do all sessions that need these rows");
        assert!(!paused.join().unwrap().is_empty());
    });
}

fn refused_logins(url: &str) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, address) = rest.split_once('@').unwrap();
    let error = refused(&format!("{scheme}://anna:secret@{address}"));
    assert_eq!(error.kind(), ErrorKind::StoreAuth, "{error}");
    let (_, path) = address.split_once('/').unwrap();
    let nowhere = url.strip_suffix(path).unwrap().to_owned() + "nowhere";
    let error = refused(&nowhere);
    // MariaDB does not show an ordinary user whether the database exists.
    assert!(matches!(error.kind(), ErrorKind::Spec | ErrorKind::StoreAuth), "{error}");
}

/// Several first users make the table at once, and all succeed.
fn table_made_at_once(url: &str) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| drop(open(url)));
        }
    });
}

/// A namespace with the meta record `0`, and `start` in slot 1.
fn namespace(url: &str, case: &str) -> (Box<dyn Store>, String, String) {
    let mut store = open(url);
    let name = format!("sql.{case}.{:x}", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos());
    let server = store.load(&name, Which::Page(0)).unwrap().server;
    assert_eq!(store.swap(&name, &swap(&server, None, Key::Meta, None, "0")).unwrap(), Swapped::Done);
    assert_eq!(store.swap(&name, &swap(&server, Some("0"), Key::Slot(1), None, "start")).unwrap(), Swapped::Done);
    (store, name, server)
}

fn swap(server: &str, meta: Option<&str>, key: Key, old: Option<&str>, new: &str) -> Swap {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Swap {
        meta: text(meta),
        server: server.to_owned(),
        key,
        old: text(old),
        new: new.to_owned(),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    }
}

/// Once a new meta record is acknowledged, no slot is written under the previous one.
fn meta_against_slots(url: &str) {
    let (mut store, name, server) = namespace(url, "meta");
    let (name, server, over, written) = (&name, &server, &AtomicBool::new(false), &AtomicU32::new(0));
    thread::scope(|scope| {
        for node in 1..4 {
            scope.spawn(move || write(url, name, server, node, over, written));
        }
        let mut seen = store.load(name, Which::Page(0)).unwrap();
        let begun = Instant::now();
        for round in 1.. {
            if round > 100 && (written.load(Ordering::Relaxed) > 50 || begun.elapsed() > 20 * SECOND) {
                break;
            }
            let meta = seen.meta.clone();
            let change = swap(server, meta.as_deref(), Key::Meta, meta.as_deref(), &round.to_string());
            let swapped = store.swap(name, &change);
            let now = store.load(name, Which::Page(0));
            // The other threads must not be left running when an assertion fails.
            let (Ok(Swapped::Done), Ok(now)) = (&swapped, &now) else {
                over.store(true, Ordering::Relaxed);
                panic!("{swapped:?} {now:?}");
            };
            for slot in now.slots.iter().filter(|slot| !seen.slots.contains(slot)) {
                // Between the two loads, `round` replaced `meta`.
                let under = slot.1.split(' ').next().map(str::to_owned);
                over.fetch_or(under != meta && under != now.meta, Ordering::Relaxed);
                assert!(under == meta || under == now.meta, "{slot:?} is new since {seen:?}");
            }
            seen = now.clone();
            // Records that are written from now on must be under the new meta record.
            let settled = store.load(name, Which::Page(0)).unwrap();
            for slot in settled.slots.iter().filter(|slot| !seen.slots.contains(slot)) {
                over.fetch_or(!slot.1.starts_with(&format!("{round} ")), Ordering::Relaxed);
                assert!(slot.1.starts_with(&format!("{round} ")), "{slot:?} was written after {round}");
            }
            seen = settled;
        }
        over.store(true, Ordering::Relaxed);
    });
    let written = written.load(Ordering::Relaxed);
    assert!(written > 50, "only {written} writes took part");
}

fn write(url: &str, name: &str, server: &str, node: u64, over: &AtomicBool, written: &AtomicU32) {
    let (mut store, mut n) = (open(url), 0);
    while !over.load(Ordering::Relaxed) {
        let loaded = store.load(name, Which::One(node)).unwrap();
        let old = loaded.slots.first().map(|slot| slot.1.clone());
        let new = format!("{} {n} {node}", loaded.meta.clone().unwrap());
        let swap = swap(server, loaded.meta.as_deref(), Key::Slot(node), old.as_deref(), &new);
        written.fetch_add(u32::from(store.swap(name, &swap).unwrap() == Swapped::Done), Ordering::Relaxed);
        n += 1;
    }
}

fn row(name: &str, slot: i64) -> String {
    format!("namespace = '{name}' AND slot = {slot}")
}

/// A call waits for another session's lock no longer than its timeout.
fn held_lock(url: &str, mut link: Link) {
    let (_, name, server) = namespace(url, "held");
    for slot in [1, -1] {
        link.start();
        link.ask(&format!("BEGIN; SELECT 1 FROM frazil WHERE {} FOR UPDATE", row(&name, slot))).unwrap();
        let mut store = connect(url, 2 * SECOND).unwrap();
        let begun = Instant::now();
        let error = store.swap(&name, &swap(&server, Some("0"), Key::Slot(1), Some("start"), "new")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnreachable);
        assert!(error.to_string().contains("locked"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        link.ask("ROLLBACK").unwrap();
        // The server does not execute the text later.
        assert_eq!(open(url).load(&name, Which::One(1)).unwrap().slots, [(1, "start".to_owned())]);
    }
}

/// If the lock's holder changes the record or the meta record, the waiting swap differs. If the
/// holder rolls back, the swap is done.
fn change_that_was_waited_for(url: &str, link: &impl Fn() -> Link) {
    for (slot, end, expected) in
        [(1, "COMMIT", Swapped::Differs), (-1, "COMMIT", Swapped::Differs), (1, "ROLLBACK", Swapped::Done), (-1, "ROLLBACK", Swapped::Done)]
    {
        let (mut store, name, server) = namespace(url, "wait");
        let mut link = link();
        link.ask(&format!("BEGIN; UPDATE frazil SET record = 'other' WHERE {}", row(&name, slot))).unwrap();
        let waiting = thread::scope(|scope| {
            let waiting = {
                let swap = swap(&server, Some("0"), Key::Slot(1), Some("start"), "new");
                let (url, name) = (url, &name);
                scope.spawn(move || open(url).swap(name, &swap).unwrap())
            };
            thread::sleep(SECOND / 2);
            link.ask(end).unwrap();
            waiting.join().unwrap()
        });
        assert_eq!(waiting, expected, "slot {slot}, {end}");
        let loaded = store.load(&name, Which::One(1)).unwrap();
        assert_eq!(loaded.slots[0].1 == "new", expected == Swapped::Done, "{loaded:?}");
    }
}

/// The clock is read after the wait for a lock, even if the record is absent.
fn late_after_waiting(url: &str, mut link: Link) {
    let (mut store, name, server) = namespace(url, "late");
    for (node, old) in [(1, Some("start")), (2, None)] {
        link.start();
        link.ask(&format!("BEGIN; INSERT INTO frazil (namespace, slot) VALUES ('{name}', 2)")).unwrap();
        link.ask(&format!("SELECT 1 FROM frazil WHERE {} FOR UPDATE", row(&name, 1))).unwrap();
        let now = store.load(&name, Which::Page(0)).unwrap().time_ms.unwrap();
        let swapped = thread::scope(|scope| {
            let late = Swap { latest_ms: now + 300, ..swap(&server, Some("0"), Key::Slot(node), old, "new") };
            let (url, name) = (url, &name);
            let waiting = scope.spawn(move || open(url).swap(name, &late).unwrap());
            thread::sleep(SECOND);
            link.ask("ROLLBACK").unwrap();
            waiting.join().unwrap()
        });
        assert!(matches!(swapped, Swapped::OutOfTime(at) if at >= now + 900), "{swapped:?} at {now}");
        assert_eq!(store.load(&name, Which::Page(0)).unwrap().slots, [(1, "start".to_owned())]);
        // The next round inserts the placeholder again.
        link.ask(&format!("DELETE FROM frazil WHERE {}", row(&name, 2))).unwrap();
    }
}

/// A connection that the server cuts fails from then on, and its owner makes another.
fn lost_connection(mut lost: Link, mut link: Link) {
    let (number, kill) = match link.try_ask("SELECT pg_backend_pid()") {
        Ok(_) => ("SELECT pg_backend_pid()::text", "SELECT pg_terminate_backend(ID)"),
        Err(_) => ("SELECT CONNECTION_ID()", "KILL ID"),
    };
    let id = lost.ask(number).unwrap()[0][0].clone().unwrap();
    link.ask(&kill.replace("ID", &id)).unwrap();
    for _ in 0..2 {
        let error = lost.ask("SELECT 1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnreachable, "{error}");
    }
}
