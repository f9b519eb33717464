//! frazil, a fixed number.
use frazil::{Id, Snowflake};

fn main() {
    trial::run(
        |node| Snowflake::open(&format!("standard node={node}")),
        |ids| match ids {
            Ok(ids) => ids.next_id().map_err(|error| error.kind().name().into()),
            Err(error) => Err(error.kind().name().into()),
        },
        |id: Id| id.get() as u64,
    );
}
