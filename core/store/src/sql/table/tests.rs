//! Tests of the spec lines. On servers that the environment names: the tables, with simulations of
//! the other systems' clients.

use super::{Dialect, creation};
use crate::sql::link::Link;
use crate::sql::{hex, url};
use crate::table::Table;
use frazil::{Numbers, Segment, Tickets};
use frazil_base::error::ErrorKind;
use std::collections::HashSet;
use std::env;
use std::time::Duration;

#[test]
fn lines_that_are_refused() {
    use ErrorKind::{OutOfRange, Spec};
    let long = "t".repeat(129);
    for (line, kind, says) in [
        ("t table=leaf store=file:x", Spec, "store=file:x is neither postgresql:// nor mysql://"),
        ("t table=leaf store=memory", Spec, "table=leaf"),
        ("t table=uid store=mysql://h/x", Spec, "table=\"uid\" is none of: leaf, tinyid"),
        ("t table=leaf", Spec, "a store is missing"),
        ("t table=leaf store=mysql://h/x namespace=n", Spec, "namespace= has no meaning with table="),
        ("t table=leaf store=mysql://h/x start=1", Spec, "start="),
        ("t table=tinyid store=mysql://h/x increment=2", Spec, "increment="),
        ("t table=tinyid store=mysql://h/x offset=1", Spec, "offset="),
        ("t table=leaf store=mysql://h/x step=0", OutOfRange, "step=0"),
        ("t table=leaf store='mysql://a/x mysql://b/x'", Spec, "table=leaf takes one"),
        ("t table=tinyid store='mysql://a/x mysql://a/x'", Spec, "twice"),
        (&format!("{long} table=leaf store=mysql://h/x"), OutOfRange, "leaf_alloc.biz_tag takes 128"),
        (&format!("{} table=tinyid store=mysql://h/x", &long[..64]), OutOfRange, "tiny_id_info.biz_type takes 63"),
    ] {
        let error = Segment::open(line).unwrap_err();
        assert_eq!(error.kind(), kind, "{line}: {error}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    let error = Tickets::open("t table=leaf store='mysql://a/x mysql://b/x'").unwrap_err();
    assert_eq!(error.kind(), Spec);
    assert!(error.to_string().contains("table= has no meaning for tickets"), "{error}");
}

/// A server, and a session that acts as the other systems do.
struct Server {
    url: String,
    dialect: Dialect,
}

impl Server {
    fn of(variable: &str, dialect: Dialect) -> Self {
        let url = env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: a store's URL"));
        Server { url, dialect }
    }

    fn link(&self) -> Link {
        let login = match self.dialect {
            Dialect::Postgresql => url::postgresql(&self.url),
            Dialect::Mysql => url::mysql(&self.url),
        };
        Link::connect(login.unwrap(), Duration::from_secs(20)).unwrap()
    }

    fn run(&self, text: &str) -> Vec<Vec<Option<String>>> {
        let mut link = self.link();
        link.start();
        link.ask(text).unwrap()
    }

    fn leaf(&self, tag: &str, max_id: i64, step: i64) {
        let tag = self.quoted(tag);
        self.run(&format!("DELETE FROM leaf_alloc WHERE biz_tag = {tag}"));
        self.run(&format!("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ({tag}, {max_id}, {step})"));
    }

    fn tinyid(&self, tag: &str, max_id: i64, step: i64, delta: i64, remainder: i64) {
        self.run(&format!("DELETE FROM tiny_id_info WHERE biz_type = '{tag}'"));
        self.run(&format!(
            "INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) \
             VALUES ('{tag}', {max_id}, {max_id}, {step}, {delta}, {remainder})"
        ));
    }

    fn quoted(&self, tag: &str) -> String {
        match self.dialect {
            Dialect::Postgresql => format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex(tag)),
            Dialect::Mysql => format!("CONVERT(x'{}' USING utf8mb4)", hex(tag)),
        }
    }

    fn open(&self, tag: &str, rest: &str) -> crate::Result<Segment> {
        Segment::open(&format!("{tag} store={} {rest}", self.url))
    }

    fn refused(&self, tag: &str, rest: &str, kind: ErrorKind, says: &[&str]) -> String {
        let error = self.open(tag, rest).expect_err(tag);
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        let address = self.url.rsplit('@').next().unwrap();
        for says in says.iter().chain([&address.split('/').next().unwrap()]) {
            assert!(text.contains(says), "{text}");
        }
        assert!(!text.contains("secret"), "{text}");
        text
    }
}

fn take(numbers: &Numbers, count: usize) -> Vec<i64> {
    let mut buffer = vec![0; count];
    numbers.fill(&mut buffer).unwrap();
    buffer
}

/// Leaf's server: IDAllocDaoImpl.updateMaxIdAndGetLeafAlloc at first, then updateMaxIdByCustomStepAndGetLeafAlloc with twice the step.
/// The numbers are `max_id - step` up to `max_id` (SegmentIDGenImpl.updateSegmentFromDb).
fn leafs_own(link: &mut Link, tag: &str, rounds: i64) -> Vec<i64> {
    let (mut ids, mut step) = (Vec::new(), None);
    for _ in 0..rounds {
        let by = step.map_or_else(|| "step".to_owned(), |step: i64| step.to_string());
        link.start();
        let rows = link
            .ask(&format!(
                "BEGIN; UPDATE leaf_alloc SET max_id = max_id + {by} WHERE biz_tag = '{tag}'; \
                 SELECT max_id, step FROM leaf_alloc WHERE biz_tag = '{tag}'; COMMIT"
            ))
            .unwrap();
        let (max_id, row_step) = (link.number(&rows[0], 0).unwrap(), link.number(&rows[0], 1).unwrap());
        let taken = step.unwrap_or(row_step);
        ids.extend(max_id - taken..max_id);
        step = Some((2 * taken).min(8 * row_step));
    }
    ids
}

/// Tinyid's server: DbSegmentIdServiceImpl.getNextSegmentId with TinyIdInfoDAOImpl's statements, then SegmentId.nextId.
fn tinyids_own(server: &Server, tag: &str, least: usize) -> Vec<i64> {
    let (mut link, mut ids) = (server.link(), Vec::new());
    while ids.len() < least {
        link.start();
        let rows = link
            .ask(&format!("SELECT id, biz_type, max_id, step, delta, remainder, version FROM tiny_id_info WHERE biz_type = '{tag}'"))
            .unwrap();
        let number = |column| link.number(&rows[0], column).unwrap();
        let (id, old, step, delta, remainder, version) = (number(0), number(2), number(3), number(4), number(5), number(6));
        let new = old + step;
        let update = format!(
            "UPDATE tiny_id_info SET max_id = {new}, update_time = now(), version = version + 1 \
             WHERE id = {id} AND max_id = {old} AND version = {version} AND biz_type = '{tag}'"
        );
        let rows = link
            .ask(&match server.dialect {
                Dialect::Postgresql => format!("WITH done AS ({update} RETURNING 1) SELECT count(*) FROM done"),
                Dialect::Mysql => format!("{update}; SELECT ROW_COUNT()"),
            })
            .unwrap();
        if link.number(&rows[0], 0).unwrap() == 1 {
            ids.extend((old + 1..=new).filter(|id| id % delta == remainder));
        }
    }
    ids
}

/// Numbers of many processes of frazil, each with separate ranges.
fn ours(open: impl Fn() -> Segment, handles: usize, each: usize) -> Vec<i64> {
    (0..handles).flat_map(|_| take(&open(), each)).collect()
}

/// Checks that the threads' numbers are all different.
fn none_twice(works: Vec<Box<dyn Fn() -> Vec<i64> + Send + Sync + '_>>) -> HashSet<i64> {
    let all: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = works.iter().map(|work| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let set: HashSet<_> = all.iter().copied().collect();
    assert_eq!(set.len(), all.len(), "a number was given out twice");
    set
}

#[test]
#[ignore = "needs FRAZIL_TEST_POSTGRESQL and FRAZIL_TEST_MARIADB: tests/servers runs it"]
fn tables_on_postgresql_and_mariadb() {
    let servers = [Server::of("FRAZIL_TEST_POSTGRESQL", Dialect::Postgresql), Server::of("FRAZIL_TEST_MARIADB", Dialect::Mysql)];
    for server in &servers {
        missing_table(server);
        missing_row(server);
        beside_leaf(server);
        beside_tinyid(server);
        bad_rows(server);
        step_of_the_row(server);
        row_that_goes_back(server);
        row_that_is_held(server);
        last_numbers(server);
        read_only(server);
    }
    several_databases(&servers);
}

/// The error contains the statement that makes the table.
fn missing_table(server: &Server) {
    for (name, table) in Table::ALL {
        server.run(&format!("DROP TABLE IF EXISTS {}", table.name()));
        let text = server.refused("t", &format!("table={name}"), ErrorKind::StoreUnsuitable, &[table.name()]);
        let (_, made_by) = text.split_once("it is made by: ").unwrap();
        assert_eq!(made_by, creation(table, server.dialect));
        server.run(made_by);
    }
    server.run("ALTER TABLE leaf_alloc RENAME TO leaf_alloc_away");
    server.run("CREATE TABLE leaf_alloc (tag INTEGER)");
    server.refused("t", "table=leaf", ErrorKind::StoreUnsuitable, &["its table leaf_alloc"]);
    server.run("DROP TABLE leaf_alloc");
    server.run("ALTER TABLE leaf_alloc_away RENAME TO leaf_alloc");
}

fn missing_row(server: &Server) {
    server.refused("nobody", "table=leaf", ErrorKind::TagMissing, &["leaf_alloc", "\"nobody\""]);
    server.refused("nobody", "table=tinyid", ErrorKind::TagMissing, &["tiny_id_info", "\"nobody\""]);
}

fn beside_leaf(server: &Server) {
    server.leaf("leaf-segment-test", 1, 10);
    let open = || server.open("leaf-segment-test", "table=leaf").unwrap();
    let theirs = || leafs_own(&mut server.link(), "leaf-segment-test", 60);
    let all = none_twice(vec![
        Box::new(|| ours(open, 5, 100)),
        Box::new(|| ours(open, 5, 100)),
        Box::new(|| {
            let ids = take(&open(), 3_000);
            assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
            ids
        }),
        Box::new(theirs),
        Box::new(theirs),
    ]);
    let max_id = server.run("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'");
    let max_id: i64 = max_id[0][0].as_deref().unwrap().parse().unwrap();
    assert!(all.iter().all(|id| (1..max_id).contains(id)), "max_id is the next number");
    // The tag has special characters, as a programmer may write one.
    let odd = "it's-a\\tag;/ä";
    server.leaf(odd, 7, 3);
    assert_eq!(take(&server.open(odd, "table=leaf").unwrap(), 4), [7, 8, 9, 10]);
}

fn beside_tinyid(server: &Server) {
    for (tag, delta, remainder) in [("test_odd", 2, 1), ("third", 3, 2)] {
        server.tinyid(tag, 1, 10, delta, remainder);
        let open = || server.open(tag, "table=tinyid").unwrap();
        let all = none_twice(vec![
            Box::new(|| ours(open, 4, 60)),
            Box::new(|| ours(open, 4, 60)),
            Box::new(|| take(&open(), 2_000)),
            Box::new(|| tinyids_own(server, tag, 300)),
            Box::new(|| tinyids_own(server, tag, 300)),
        ]);
        let row = server.run(&format!("SELECT max_id, version FROM tiny_id_info WHERE biz_type = '{tag}'"));
        let max_id: i64 = row[0][0].as_deref().unwrap().parse().unwrap();
        assert!(all.iter().all(|id| id % delta == remainder && (2..=max_id).contains(id)), "{tag}");
        assert_ne!(row[0][1].as_deref(), Some("0"), "every writer moves the version");
    }
}

fn bad_rows(server: &Server) {
    for (max_id, step) in [(-1, 10), (1, 0), (1, -10)] {
        server.leaf("bad", max_id, step);
        let says = format!("max_id={max_id} step={step}");
        server.refused("bad", "table=leaf", ErrorKind::StoreCorrupt, &["leaf_alloc", &says]);
    }
    for (max_id, step, delta, remainder) in [(-1, 10, 1, 0), (1, 0, 1, 0), (1, 10, 0, 0), (1, 10, 2, 2), (1, 10, 2, -1)] {
        server.tinyid("bad", max_id, step, delta, remainder);
        let says = format!("max_id={max_id} step={step} delta={delta} remainder={remainder}");
        server.refused("bad", "table=tinyid", ErrorKind::StoreCorrupt, &["tiny_id_info", &says]);
    }
}

/// A handle moves the row at once by the row's step, or by more if the spec asks for more.
fn step_of_the_row(server: &Server) {
    for (tag, step, max_id) in [("row", "", 501), ("spec", "step=2000", 2_001)] {
        server.leaf(tag, 1, 500);
        let segment = server.open(tag, &format!("table=leaf {step}")).unwrap();
        assert_eq!(segment.next_id().unwrap().get(), 1);
        let rows = server.run(&format!("SELECT max_id FROM leaf_alloc WHERE biz_tag = '{tag}'"));
        assert_eq!(rows[0][0].as_deref().unwrap().parse(), Ok(max_id));
    }
}

/// A row that went back is refused until an operator corrects it.
fn row_that_goes_back(server: &Server) {
    server.leaf("back", 100, 5);
    server.tinyid("back", 100, 5, 1, 0);
    for (name, column) in [("leaf", "biz_tag"), ("tinyid", "biz_type")] {
        let segment = server.open("back", &format!("table={name} wait=3s")).unwrap();
        let before = take(&segment, 100);
        let (_, table) = Table::ALL.into_iter().find(|(known, _)| *known == name).unwrap();
        let set = |max_id: i64| server.run(&format!("UPDATE {} SET max_id = {max_id} WHERE {column} = 'back'", table.name()));
        set(100);
        let refused = loop {
            match segment.next_id() {
                Ok(id) => assert!(id.get() > before[99]),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::StoreChanged, "{refused}");
        let says =
            format!("UPDATE {} SET max_id = N WHERE {column} = 'back', with N no less than any of them, and at least ", table.name());
        assert!(refused.to_string().contains(&says), "{refused}");
        // A handle that is opened later notices it, too.
        server.refused("back", &format!("table={name}"), ErrorKind::StoreChanged, &["gone back"]);
        set(1_000_000);
        assert!(segment.next_id().unwrap().get() >= 1_000_000);
    }
}

/// Another session's lock is waited for no longer than `wait=`.
fn row_that_is_held(server: &Server) {
    server.leaf("held", 1, 5);
    let mut link = server.link();
    link.start();
    link.ask("BEGIN; SELECT 1 FROM leaf_alloc WHERE biz_tag = 'held' FOR UPDATE").unwrap();
    server.refused("held", "table=leaf wait=3s", ErrorKind::SegmentExhausted, &["leaf_alloc", "locked"]);
    link.ask("ROLLBACK").unwrap();
    // The waiting handle may still have moved the row.
    assert!([1, 6].contains(&take(&server.open("held", "table=leaf").unwrap(), 1)[0]));
}

fn last_numbers(server: &Server) {
    let last = i64::MAX;
    server.leaf("last", last - 2, 100);
    let segment = server.open("last", "table=leaf").unwrap();
    assert_eq!(take(&segment, 2), [last - 2, last - 1]);
    assert_eq!(segment.next_id().unwrap_err().kind(), ErrorKind::SegmentExhausted);
    server.tinyid("last", last - 4, 100, 2, 1);
    let segment = server.open("last", "table=tinyid").unwrap();
    assert_eq!(take(&segment, 2), [last - 2, last]);
    let error = segment.next_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SegmentExhausted);
    assert!(error.to_string().contains("2^63"), "{error}");
}

/// In MariaDB, read-only is a setting of the whole server, which other tests use.
fn read_only(server: &Server) {
    if server.dialect == Dialect::Postgresql {
        let url = format!("{}?options=-c%20default_transaction_read_only%3Don", server.url);
        let replica = Server { url, dialect: server.dialect };
        replica.refused("held", "table=leaf", ErrorKind::StoreReadonly, &[]);
    }
}

/// Tinyid serves a tag from several databases like this.
fn several_databases([a, b]: &[Server; 2]) {
    let both = |rest: &str| Segment::open(&format!("shared table=tinyid store='{} {}' {rest}", a.url, b.url));
    a.tinyid("shared", 0, 10, 2, 0);
    b.tinyid("shared", 0, 10, 2, 1);
    let all = none_twice(vec![
        Box::new(|| ours(|| both("").unwrap(), 4, 60)),
        Box::new(|| take(&both("step=7").unwrap(), 1_000)),
        Box::new(|| tinyids_own(a, "shared", 200)),
        Box::new(|| tinyids_own(b, "shared", 200)),
    ]);
    assert!(all.iter().any(|id| id % 2 == 0) && all.iter().any(|id| id % 2 == 1));
    // If one database is away, the numbers of the other one remain.
    let one = Segment::open(&format!("shared table=tinyid store='{} mysql://frazil:secret@127.0.0.1:1/x'", a.url)).unwrap();
    assert!(take(&one, 100).iter().all(|id| id % 2 == 0));
    // Both databases hand out the even numbers.
    b.tinyid("shared", 0, 10, 4, 2);
    let error = both("").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SegmentMismatch, "{error}");
    assert!(error.to_string().contains("delta=4 remainder=2") && error.to_string().contains("delta=2 remainder=0"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
