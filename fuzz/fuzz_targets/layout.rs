//! A layout that is accepted is printed as itself, and each ID is composed from its parts again.
#![no_main]

use frazil::{Id, Layout};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &str)| {
    let (bits, text) = input;
    let Ok(layout) = Layout::parse(text) else { return };
    let shown = layout.to_string();
    assert_eq!(Layout::parse(&shown).expect("its own text"), layout, "{text:?} prints {shown:?}");
    let width = layout.time_bits() + layout.sequence().bits() + layout.node_fields().iter().map(|field| field.bits()).sum::<u32>();
    assert!((1..=63).contains(&width), "{text:?} has {width} bits");
    let id = Id::new((bits >> (64 - width)) as i64).expect("at most 63 bits");
    if let Ok(parts) = layout.decode(id) {
        let fields: Vec<_> = parts.fields().collect();
        assert_eq!(layout.compose(parts.unix_ms(), &fields, parts.sequence()).expect("an ID's own parts"), id, "{text:?}");
        let (least, most) = (layout.min_id(parts.unix_ms()), layout.max_id(parts.unix_ms()));
        assert!(least.expect("its own time") <= id && id <= most.expect("its own time"), "{text:?} {id}");
    }
    if width < 63 {
        assert!(layout.decode(Id::new(1 << width).expect("63 bits")).is_err(), "{text:?} decodes more bits than it has");
    }
});
