//! ObjectIds and UUIDs: their texts are read as themselves, and a time that is written into one is read from it.
#![no_main]

use frazil::{ObjectId, parse_uuid, uuid_unix_ms, uuid7_at, uuid7_max, uuid7_min};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([u8; 12], i64, &str)| {
    let (bytes, ms, text) = input;
    let id = ObjectId::from_bytes(bytes);
    assert_eq!(id.to_bytes(), bytes);
    assert_eq!(ObjectId::parse(&id.to_string()).expect("its own text"), id);
    assert_eq!(id.encode(&mut [0; 24]), id.to_string().as_bytes());
    assert!(ObjectId::min_id(id.unix_ms()).expect("its own time") <= id && id <= ObjectId::max_id(id.unix_ms()).expect("its own time"));
    if let Ok(read) = ObjectId::parse(text) {
        assert_eq!(read.to_string(), text.to_ascii_lowercase());
    }
    if let Ok(read) = parse_uuid(text) {
        assert_eq!(parse_uuid(&read.to_string()).expect("its own text"), read, "{text:?}");
        let _ = uuid_unix_ms(read);
    }
    // Later times can be made, and are not read.
    if ms <= frazil::admin::LAST_MS
        && let Ok(made) = uuid7_at(ms)
    {
        assert_eq!(uuid_unix_ms(made).expect("version 7"), ms);
        assert!(uuid7_min(ms).expect("the same time") <= made && made <= uuid7_max(ms).expect("the same time"));
    }
});
