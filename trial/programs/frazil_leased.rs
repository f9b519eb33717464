//! frazil, a number leased from the folder store.
use frazil::{Id, Snowflake};

fn main() {
    trial::run(
        |_| Snowflake::open("standard store=local"),
        |ids| match ids {
            Ok(ids) => ids.next_id().map_err(|error| error.kind().name().into()),
            Err(error) => Err(error.kind().name().into()),
        },
        |id: Id| id.get() as u64,
    );
}
