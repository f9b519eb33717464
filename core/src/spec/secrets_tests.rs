//! Tests that no secret in a spec or an address is shown, even in errors.

use super::*;
use frazil_base::error::Error;
use frazil_base::secret::{address, addresses};
use frazil_store::{Address, Table};
use std::time::Duration;

/// Pieces of passwords, which must not be shown anywhere. Port 1 is closed on every machine.
const PIECES: [&str; 3] = ["s3cr", "t0k", "w0rd"];

/// Addresses with passwords in them, well-formed and not.
const WITH_SECRETS: &[&str] = &[
    "redis://:s3cr3t@127.0.0.1:1/0",
    "redis://me:s3cr3t@127.0.0.1:1/0",
    "redis://me:s3cr/t0k@127.0.0.1:1/0",
    "redis://me:s3cr?t0k@127.0.0.1:1/0",
    "redis://me:s3cr#t0k@127.0.0.1:1/0",
    "redis://me:s3cr@t0k@127.0.0.1:1/0",
    "redis://me:s3cr t0k@127.0.0.1:1/0",
    "redis://me:s3cr w0rd=t0k@127.0.0.1:1/0",
    "redis://me:s3cr local t0k@127.0.0.1:1/0",
    "redis://me:s3cr redis://t0k@127.0.0.1:1/0",
    "redis://me:s3cr%40t0k%zz@127.0.0.1:1/0",
    "redis://127.0.0.1:1/0?password=s3cr3t",
    "redis://127.0.0.1:1/0?pass%77ord=s3cr3t",
    "redis://127.0.0.1:1/0?password=s3cr&db=1#t0k",
    "redis://me:s3cr3t",
    "rediss://me:s3cr3t@127.0.0.1:1/x",
    "redis+unix://me:s3cr3t@/nowhere",
    "redis+unix:///nowhere?pass=s3cr3t",
    "postgresql://me:s3cr3t@127.0.0.1:1/db",
    "postgresql://me:s3cr t0k@127.0.0.1:1/db",
    "postgresql://me:s3cr w0rd=t0k",
    "postgresql://127.0.0.1:1/db?user=me&password=s3cr3t",
    "postgresql://127.0.0.1:1/db?password=s3cr@t0k",
    "postgresql://127.0.0.1:1/db?password=s3cr t0k",
    "postgresql://127.0.0.1:1/db?password=s3cr w0rd=t0k",
    "postgresql://127.0.0.1:1/db?sslmode=disable;password=s3cr3t",
    "postgresql://127.0.0.1:1/db?sslmode=disable&sslpassword=s3cr3t",
    "postgresql://127.0.0.1:1/db?sslmode=disable%26password=s3cr3t",
    "postgresql://127.0.0.1:1/db?sslkey=-----BEGIN PRIVATE KEY-----s3cr3t",
    "postgresql://127.0.0.1:1/db?sslkey=%2D%2D%2D%2D%2DBEGIN%20PRIVATE%20KEY-----s3cr3t",
    "postgresql://127.0.0.1:1/db?s3cr3t",
    "postgresql://me:s3cr?w0rd=t0k@127.0.0.1:1/db",
    "postgresql://me:s3cr3t@127.0.0.1:99999/db",
    "mysql://me:s3cr3t@127.0.0.1:1/db?ssl-mode=DISABLED",
    "mysql://me:s3cr3t@127.0.0.1:1",
    "mysql://127.0.0.1:1/db?user=me&password=s3cr3t",
    "mysql://127.0.0.1:1/db?ssl-mode=s3cr3t;w0rd=t0k@",
    "mariadb://me:s3cr/t0k@127.0.0.1:1/db",
    "etcd://me:s3cr3t@127.0.0.1:1,127.0.0.1:1",
    "etcd://me:s3cr/t0k@127.0.0.1:1",
    "etcd://127.0.0.1:1?password=s3cr3t",
    "etcds://me:s3cr3t@127.0.0.1:1?key=/nowhere&cert=/nowhere",
    "zookeeper://me:s3cr3t@127.0.0.1:1/app",
    "zookeeper://me:s3cr%zz@127.0.0.1:1",
    "zookeeper://127.0.0.1:1/app?auth=me:s3cr3t",
    "s3://me:s3cr3t@127.0.0.1:1",
    "jdbc:postgresql://127.0.0.1:1/db?user=me&password=s3cr3t",
    "me:s3cr3t@127.0.0.1:1",
    "redis//me:s3cr t0k@127.0.0.1:1",
];

/// All texts that a text given as one address can lead to: its printed forms, and every error.
fn shown_of(text: &str) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    let mut add = |place: &str, text: String| shown.push((place.to_owned(), text));
    let failed = |error: &Error| format!("{error} {error:?}");
    let quoted = format!("\"{text}\"");
    let pair = |key: &str, value: &str| Spec::from_parts(Some(""), &[(key.to_owned(), value.to_owned())]);
    let variable = format!("FRAZIL_TEST_SECRET_{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let lines = [
        format!("store={text}"),
        format!("store={quoted}"),
        format!("store={quoted} window=1"),
        format!("standard store={text} namespace=n"),
        format!("namespace=n store='{text} worker=1"),
        format!("store='{text}'x"),
        format!("store=local store={text}"),
        text.to_owned(),
        quoted.clone(),
        format!("standard {text}"),
        format!("namespace={text} store=local"),
        format!("namespace={quoted} store=local"),
        format!("worker={text}"),
        format!("layout={quoted}"),
        format!("after={text} worker=1"),
        format!("start={quoted} worker=1"),
        format!("store=memory epoch={quoted}"),
    ];
    // In other places, a store's address looks like a name with a colon in it.
    let is_store = |place: &str| text.contains("://") || place.contains("store=");
    let lines: Vec<_> = lines.into_iter().filter(|line| is_store(&line.replace("store=local", "").replace("store=memory", ""))).collect();
    let mut specs: Vec<_> = lines.iter().map(|line| (line.clone(), Spec::parse(line))).collect();
    let keys = if text.contains("://") { &["store", "namespace", "worker", "preset", text][..] } else { &["store"] };
    specs.extend(keys.iter().map(|key| (format!("the option {key}"), pair(key, text))));
    for (place, spec) in specs {
        match spec {
            Err(error) => add(&place, failed(&error)),
            Ok(spec) => {
                add(&place, format!("{spec} {spec:?}"));
                match spec.plan() {
                    Ok(_) => {}
                    Err(error) => add(&format!("{place}, planned"), failed(&error)),
                }
                for key in ["store", "offset"] {
                    if let Err(error) = spec.values(key) {
                        add(&format!("{place}, as a list"), failed(&error));
                    }
                }
            }
        }
    }
    // A list of stores, as for segments, is parsed word by word.
    let words: Vec<_> = match pair("store", text).and_then(|spec| spec.values("store")) {
        Ok(words) => words.unwrap_or_default(),
        Err(_) => vec![],
    };
    for address in words.iter().map(String::as_str).chain([text]) {
        match Address::parse(address) {
            Err(error) => add("Address::parse", failed(&error)),
            Ok(address) => {
                add("Address", format!("{address} {address:?} {:?}", address.clone()));
                match address.connect(Duration::from_millis(500)) {
                    Ok(_) => add("a connection", String::new()),
                    Err(error) => add("connect", failed(&error)),
                }
                if address.has_tables() {
                    match address.connect_table(Table::Leaf, Duration::from_millis(500)) {
                        Ok(_) => add("a connection", String::new()),
                        Err(error) => add("connect_table", failed(&error)),
                    }
                }
            }
        }
    }
    if let Err(error) = Spec::list("store", &[text.to_owned()]) {
        add("Spec::list", failed(&error));
    }
    add("a variable's name", pair("store", &format!("env:{variable}")).unwrap().to_string());
    add("Secret", format!("{:?} {:?}", Secret::new(text), Some(Secret::new(text))));
    shown
}

#[test]
fn no_secret_is_shown_anywhere() {
    let mut leaks = Vec::new();
    for text in WITH_SECRETS {
        for (place, shown) in shown_of(text) {
            if PIECES.iter().any(|piece| shown.contains(piece)) {
                leaks.push(format!("{text}\n    as {place}: {shown}"));
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

/// A value with a colon is not an address, and a value with an @ is not the end of a password.
#[test]
fn other_values_may_be_followed_by_an_at() {
    for line in [
        "exhausted=wait:1s rollback=ahead:1s layout=\"time:41@1ms node:10 sequence:12\" node=1",
        "layout=\"node:10 time:41@1ms\"",
        "start=random:16 layout='time:31@1s  node:10 sequence:22' store=redis://h:6379/0",
        "store=redis://me:p@h:6379/0 layout=\"time:41@1ms node:10 sequence:12\" rollback=ahead:1s",
        "store=file:/a:b rollback=x@y",
    ] {
        assert!(Spec::parse(line).is_ok(), "{line}");
    }
}

/// The canonical line still opens the same store, and its parts that are not secret are unchanged.
#[test]
fn values_that_are_not_secret_are_shown() {
    for plain in [
        "local",
        "memory",
        "env:STORE",
        "file:/var/lib/frazil",
        "file:/my data/ids@home?password=x",
        "redis://127.0.0.1",
        "redis://127.0.0.1:6379/3",
        "rediss://cache.example.com/0",
        "redis+unix:///run/my redis.sock?db=2",
        "postgresql:///db",
        "postgresql://[::1]:5432/db?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslkey=%2Fetc%2Fkey.pem",
        "postgresql://%2Frun%2Fpostgresql/db?application_name=shop&options=-csearch_path%3Dids",
        "mysql://db-1.internal:3306/ids?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem",
        "etcds://a,b.c-d:1,[fe80::1]:65535?ca=/etc/ca.pem&cert=/c.pem&key=/k.pem",
        "zookeeper://a:2181,b:2181/app/ids",
    ] {
        assert_eq!(address(plain), plain);
        assert_eq!(addresses(plain), plain);
        let spec = Spec::from_parts(Some("standard"), &[("store".to_owned(), plain.to_owned())]).unwrap();
        assert_eq!(Spec::parse(&spec.to_string()).unwrap(), spec);
    }
    for (given, shown) in [
        ("redis://me:s3cret@h:1/0", "redis://***@h:1/0"),
        ("redis://me:s p@h:1/0", "redis://***@h:1/0"),
        ("redis://h/0?password=s3cret&db=1#x", "redis://h/0?password=***&db=1#***"),
        ("postgresql://h/db?sslmode=require&user=me&pass%77ord=x", "postgresql://h/db?sslmode=require&user=***&***"),
        ("postgresql://h/db?sslkey=-----BEGIN", "postgresql://h/db?sslkey=***"),
        ("postgresql://u:p/w@h/db", "postgresql://***"),
        ("redis://u:p", "redis://***"),
        ("u:p@h", "***"),
    ] {
        assert_eq!(address(given), shown);
        assert_eq!(format!("standard store={shown}"), Spec::parse(&format!("standard store='{given}'")).unwrap().to_string());
    }
    for (given, shown) in [
        ("redis://a:s@h1 local redis://b:s@h2", "redis://***@h1 local redis://***@h2"),
        ("redis://a:s@h1\tredis://b:s@h2\n local", "redis://***@h1\tredis://***@h2\n local"),
        ("redis://a:s s@h1 memory", "redis://***@h1 memory"),
        ("redis://a:12 local x@h", "redis://*** ***"),
        ("env:A file:/b c local", "env:A file:/b c local"),
        ("nonsense redis://a:s@h", "*** redis://***"),
    ] {
        assert_eq!(addresses(given), shown, "{given}");
        assert_eq!(addresses(shown), shown, "what was hidden stays as it is");
    }
}
