//! snowflake_me: the generator of its page's first example.
use snowflake_me::Snowflake;

fn main() {
    let open = |node: u16| {
        let builder = Snowflake::builder().machine_id(&|| Ok(node)).data_center_id(&|| Ok(1)).finalize();
        builder.expect("the numbers are small")
    };
    let next = |ids: &mut Snowflake| ids.next_id().map(|id| id.as_u64()).map_err(|error| error.to_string());
    trial::run(open, next, |id| id);
}
