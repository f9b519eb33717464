//! The vectors of all languages' suites, and the error table, which has its own.

#![allow(clippy::unwrap_used, missing_docs)]

use crate::common::{rows, vectors};
use frazil::{Error, ErrorKind, Id, Layout, Snowflake, TextFormat};
use serde_json::{Value, json};

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} in {row}"))
}

fn check_refusal(row: &Value, error: Error) {
    assert_eq!(error.kind().name(), text(row, "error"), "{row}: {error}");
    for says in rows(row, "says") {
        let says = says.as_str().unwrap();
        assert!(error.to_string().contains(says), "{row} does not say {says:?}: {error}");
    }
}

#[test]
fn known_ids() {
    for row in rows(&vectors("known_ids"), "vectors") {
        let layout = Layout::parse(text(row, "layout")).unwrap();
        let id: Id = text(row, "id").parse().unwrap();
        let parts = layout.decode(id).unwrap();
        if let Some(unix_ms) = row["unix_ms"].as_i64() {
            assert_eq!(parts.unix_ms(), unix_ms, "{row}");
        }
        let fields = row["fields"].as_object().unwrap();
        for (name, value) in fields {
            let got = if name == "sequence" { Some(parts.sequence()) } else { parts.field(name) };
            assert_eq!(got, value.as_u64(), "{name} of {row}");
        }
        assert_eq!(parts.fields().count() + 1, fields.len());
        let nodes: Vec<_> = parts.fields().collect();
        assert_eq!(layout.compose(parts.unix_ms(), &nodes, parts.sequence()), Ok(id));
    }
}

#[test]
fn texts() {
    let file = vectors("texts");
    for row in rows(&file, "valid") {
        let id: Id = text(row, "id").parse().unwrap();
        assert_eq!(id.to_string(), text(row, "id"));
        for format in TextFormat::ALL {
            assert_eq!(id.text(*format), text(row, format.name()));
            assert_eq!(Id::parse(text(row, format.name()), *format), Ok(id));
        }
    }
    for row in rows(&file, "invalid") {
        let error = Id::parse(text(row, "text"), text(row, "format").parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IdInvalid, "{row}");
        assert!(error.to_string().len() < 300, "{error}");
    }
    let parse = |row| Id::parse_prefixed(text(row, "text"), text(row, "prefix"), text(row, "format").parse().unwrap());
    for row in rows(&file, "spelled") {
        assert_eq!(parse(row).unwrap().to_string(), text(row, "id"), "{row}");
    }
    for row in rows(&file, "refused") {
        let error = parse(row).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IdInvalid, "{row}");
        assert!(error.to_string().contains(text(row, "says")), "{error} does not say: {row}");
    }
}

#[test]
fn layouts() {
    let file = vectors("layouts");
    for row in rows(&file, "valid") {
        let layout = Layout::parse(text(row, "text")).unwrap();
        let fields: Vec<_> = layout.node_fields().iter().map(|field| json!([field.name(), field.bits()])).collect();
        let got = json!({
            "text": row["text"], "canonical": layout.to_string(), "time_bits": layout.time_bits(), "tick_ms": layout.tick_ms(),
            "epoch_ms": layout.epoch_ms(), "fields": fields, "sequence_bits": layout.sequence().bits(), "nodes": layout.nodes().to_string(),
            "ids_per_second": layout.ids_per_second(), "expires_at_ms": layout.expires_at_ms(),
        });
        assert_eq!(&got, row);
        assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
    }
    for row in rows(&file, "invalid") {
        check_refusal(row, Layout::parse(text(row, "text")).unwrap_err());
    }
}

#[test]
fn specs() {
    let file = vectors("specs");
    for row in rows(&file, "canonical") {
        let ids = Snowflake::open(text(row, "spec")).unwrap_or_else(|error| panic!("{row}: {error}"));
        assert_eq!(ids.spec(), text(row, "canonical"));
        assert_eq!(frazil::Spec::parse(&ids.spec()).unwrap().to_string(), ids.spec());
    }
    for row in rows(&file, "invalid") {
        match Snowflake::open(text(row, "spec")) {
            Ok(ids) => panic!("{row} opened {ids:?}"),
            Err(error) => {
                assert!(!error.to_string().contains("secret"), "{error}");
                check_refusal(row, error);
            }
        }
    }
}

#[test]
fn mistakes() {
    for row in rows(&vectors("mistakes"), "mistakes").iter().filter(|row| row["typed"].is_null()) {
        let value = row["value"].as_str().map_or_else(|| row["value"].to_string(), str::to_owned);
        let result = match (row["option"].as_str(), row["call"].as_str()) {
            (Some(option), _) => Snowflake::open(&format!("{} {option}={value}", text(row, "spec"))).err(),
            (_, Some("decode")) if row["value"].is_string() => value.parse::<Id>().err(),
            (_, Some("text")) if row["value"].is_string() => value.parse::<TextFormat>().err(),
            // The type does not allow such a value.
            _ => continue,
        };
        check_refusal(row, result.unwrap_or_else(|| panic!("{row} is taken")));
    }
}

/// Follows the steps of a replay.
fn walk(ids: &Snowflake, row: &Value, name: &str) {
    for (at, step) in rows(row, "steps").iter().enumerate() {
        let context = format!("{name} step {at}: {step}");
        match step[0].as_str().unwrap() {
            "set_time" => ids.set_time(step[1].as_i64().unwrap()).unwrap(),
            "next" => assert_eq!(ids.next_id().expect(&context).to_string(), step[1], "{context}"),
            "error" => assert_eq!(ids.next_id().expect_err(&context).kind().name(), step[1], "{context}"),
            "credit" => assert_eq!(ids.credit().unwrap(), step[1].as_u64().unwrap(), "{context}"),
            "batch" => {
                let batch = ids.batch(step[1].as_u64().unwrap() as usize).expect(&context);
                assert_eq!(batch[0].to_string(), step[2], "{context}");
                assert_eq!(batch[batch.len() - 1].to_string(), step[3], "{context}");
                assert!(batch.is_sorted_by(|a, b| a < b), "{context}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn replays() {
    for replay in rows(&vectors("replays"), "replays") {
        walk(&Snowflake::open(text(replay, "spec")).unwrap(), replay, text(replay, "name"));
    }
}

/// IDs that the libraries of docs/moving.md have minted.
#[test]
fn foreign() {
    for row in rows(&vectors("foreign"), "ids") {
        let (layout, id) = (Layout::parse(text(row, "layout")).unwrap(), text(row, "id").parse::<Id>().unwrap());
        let parts = layout.decode(id).unwrap();
        assert_eq!(parts.unix_ms(), row["unix_ms"].as_i64().unwrap(), "{row}");
        assert!(parts.fields().all(|(name, value)| Some(value) == row["fields"][name].as_u64()), "{row}: {parts:?}");
        if let Some(text) = row["text"].as_str() {
            assert_eq!((id.text(TextFormat::Base32).to_string(), Id::parse(text, TextFormat::Base32)), (text.to_owned(), Ok(id)), "{row}");
        }
    }
}

#[test]
fn takeover() {
    for row in rows(&vectors("takeover"), "takeovers") {
        let (system, spec, last) = (text(row, "system"), text(row, "spec"), text(row, "last"));
        let opened = Snowflake::open(&format!("{spec} after={last}")).unwrap();
        assert_eq!(opened.layout().to_string(), text(row, "layout"));
        let parts = opened.layout().decode(last.parse().unwrap()).unwrap();
        assert_eq!(parts.unix_ms(), row["unix_ms"].as_i64().unwrap(), "{system}");
        let fields = row["fields"].as_object().unwrap();
        assert_eq!(Some(parts.sequence()), fields["sequence"].as_u64(), "{system}");
        assert_eq!(parts.fields().count() + 1, fields.len());
        assert!(parts.fields().all(|(name, value)| Some(value) == fields[name].as_u64()), "{system}");
        walk(&opened, row, system);

        let result = Snowflake::open(spec).unwrap();
        result.set_time(parts.unix_ms()).unwrap();
        result.observe(parts.id()).unwrap();
        walk(&result, row, system);
    }
}

/// tests/vectors/errors.json is generated from the table in `error.rs`. Numbers and names are only
/// added.
#[test]
fn error_table() {
    let errors: Vec<_> =
        ErrorKind::ALL.iter().map(|kind| json!({"code": kind.code(), "name": kind.name(), "meaning": kind.meaning()})).collect();
    let lines: Vec<_> = errors.iter().map(|row| format!("    {row}")).collect();
    let about = "The error table of core/base/src/error.rs: append-only, and the same in every language.";
    let file = format!("{{\n  \"about\": \"{about}\",\n  \"errors\": [\n{}\n  ]\n}}\n", lines.join(",\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/errors.json");
    if std::env::var_os("FRAZIL_REGENERATE").is_some() {
        std::fs::write(path, &file).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, file, "errors.json differs from the table: run `make generate`");
}
