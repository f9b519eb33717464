//! The audit's readers of JSON and of dumps: each value is a part of its line, and a number is never changed.
#![no_main]

#[allow(dead_code)]
mod lines {
    use frazil::admin::foreign::Reason;
    use smallvec::SmallVec;

    pub(super) type Texts<'a> = SmallVec<[Result<&'a [u8], Reason>; 1]>;
}

#[allow(dead_code)]
#[path = "../../cli/src/audit/dump.rs"]
mod dump;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use std::collections::HashMap;

fn check(line: &[u8], texts: lines::Texts<'_>) {
    for text in texts.into_iter().flatten() {
        let (line, text) = (line.as_ptr_range(), text.as_ptr_range());
        assert!(line.start <= text.start && text.end <= line.end, "a value from elsewhere");
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes, dump::of_json(bytes, "id"));
    // An object that a parser of JSON accepts has the key's value as it is written.
    if let Ok(object) = serde_json::from_slice::<HashMap<String, &RawValue>>(bytes)
        && let Some(value) = object.get("id")
    {
        let read: Vec<_> = dump::of_json(bytes, "id").into_iter().collect();
        assert_eq!(read, [Ok(value.get().as_bytes())], "{:?}", bytes.escape_ascii().to_string());
    }
    // Few inputs become a whole row. So each run also reads a number in rows that are whole.
    let number = bytes.iter().take(8).fold(0_u64, |number, &byte| number << 8 | u64::from(byte)).to_string();
    let (object, insert) =
        (format!("{{\"x\":[1,{{}}],\"id\":{number}}}"), format!("INSERT INTO t (a, id) VALUES ('b', {number}), (NULL, {number});"));
    let read: Vec<_> = dump::of_json(object.as_bytes(), "id").into_iter().collect();
    assert_eq!(read, [Ok(number.as_bytes())], "{object}");
    let read = dump::Dump::new("id").rows(insert.as_bytes()).into_iter().map(|text| text.map(<[u8]>::trim_ascii));
    assert_eq!(read.collect::<Vec<_>>(), [Ok(number.as_bytes()); 2], "{insert}");
    let mut rows = dump::Dump::new("id");
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        check(line, rows.rows(line));
    }
});
