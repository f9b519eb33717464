//! The paths whose instructions `tests/instructions` counts. Each function is one path, with so
//! many calls that only a few take the slow path of a new tick.

#![allow(missing_docs)]

use frazil::{Buffered, Id, Local, ObjectId, Segment, Snowflake, TextFormat, uuid4, uuid7};
use std::hint::black_box;

const REPEATS: usize = 60;
/// A wide sequence, which is not used up.
const WIDE: &str = "layout=\"time:41@1ms node:2 sequence:20 epoch:2025-01-01\" start=zero";

/// Defines a path's function, by whose name callgrind finds its calls.
macro_rules! path {
    ($name:ident, $on:ident: $type:ty, $call:expr) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $name($on: &mut $type) {
            // Without this, two functions with the same body would be merged.
            black_box(stringify!($name));
            for _ in 0..CALLS {
                let _ = black_box($call);
            }
        }
    };
}

const CALLS: usize = 100;

path!(path_next_id, ids: Snowflake, ids.next_id());
path!(path_next_id_manual_clock, ids: Snowflake, ids.next_id());
path!(path_local_next_id, ids: Local, ids.next_id());
path!(path_fill_1000, ids: (Snowflake, Vec<i64>), ids.0.fill(black_box(&mut ids.1)));
path!(path_segment_next_id, numbers: Segment, numbers.next_id());
path!(path_buffered_next_id, ring: Buffered, ring.next_id());
path!(path_text_decimal, id: Id, black_box(*id).encode(TextFormat::Decimal, &mut [0; 19])[18]);
path!(path_text_base62, id: Id, black_box(*id).encode(TextFormat::Base62, &mut [0; 19])[10]);
path!(path_uuid4, _none: (), uuid4());
path!(path_uuid7, _none: (), uuid7());
path!(path_object_id, _none: (), ObjectId::new());

fn main() -> frazil::Result<()> {
    let open = |node: u8, more: &str| Snowflake::open(&format!("{WIDE} node={node} {more}"));
    let mut ids = open(0, "")?;
    let mut manual = open(1, "clock=manual")?;
    manual.set_time(1_800_000_000_000)?;
    let mut filled = (open(2, "")?, vec![0; 1000]);
    let mut local = open(3, "")?.local();
    let mut segment = Segment::open("paths store=memory step=1000000")?;
    let mut ring = Buffered::open(&format!("{WIDE} store=memory size=200000"))?;
    let mut id = ids.next_id()?;
    for _ in 0..REPEATS {
        path_next_id(&mut ids);
        path_next_id_manual_clock(&mut manual);
        path_local_next_id(&mut local);
        path_fill_1000(&mut filled);
        path_segment_next_id(&mut segment);
        path_buffered_next_id(&mut ring);
        path_text_decimal(&mut id);
        path_text_base62(&mut id);
        path_uuid4(&mut ());
        path_uuid7(&mut ());
        path_object_id(&mut ());
    }
    Ok(())
}
