//! snowflaked: the generator of its page's first example.
use snowflaked::Generator;

fn main() {
    trial::run(Generator::new, |ids| Ok(ids.generate::<u64>()), |id| id);
}
