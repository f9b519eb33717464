//! Opens a generator whose number is leased from `store=local`, and prints an ID with its parts.

use frazil::Snowflake;

fn main() -> Result<(), frazil::Error> {
    let ids = Snowflake::open("standard store=local")?;
    let id = ids.next_id()?;
    let parts = ids.layout().decode(id)?;
    println!("{id}: node {}, sequence {}, {:?}", parts.node(), parts.sequence(), parts.time());
    Ok(())
}
