//! sonyflake: the generator of its page's example, with a machine number.
use sonyflake::Sonyflake;

fn main() {
    let open = |node: u16| Sonyflake::builder().machine_id(&|| Ok(node)).finalize().expect("a generator");
    let next = |ids: &mut Sonyflake| ids.next_id().map(|id| id.to_u64()).map_err(|error| error.to_string());
    trial::run(open, next, |id| id);
}
