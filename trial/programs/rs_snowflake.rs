//! rs-snowflake: the generator and the call of its page's first example.
use snowflake::SnowflakeIdGenerator;

fn main() {
    let open = |node: u16| SnowflakeIdGenerator::new(1, node.into());
    trial::run(open, |ids| Ok(ids.real_time_generate()), |id| id as u64);
}
