//! ferroid: its generator for several threads, with its own clock, one for the process, as its page advises.
use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};

fn main() {
    let clock = MonotonicClock::<1>::with_epoch(TWITTER_EPOCH);
    type Ids = AtomicSnowflakeGenerator<SnowflakeTwitterId, MonotonicClock<1>>;
    let open = |node: u16| Ids::new(node.into(), clock.clone());
    let next = |ids: &mut Ids| Ok(ids.next_id(|_| std::thread::yield_now()).to_raw());
    trial::run(open, next, |id| id);
}
