//! idgenerator: a separate generator for each call of `open`, with the options of its page's first example.
use idgenerator::{CoreIdGenerator, IdGeneratorOptions};

fn main() {
    let open = |node: u16| {
        let mut ids = CoreIdGenerator::default();
        let options = IdGeneratorOptions::new().worker_id(node.into()).worker_id_bit_len(6);
        ids.init(options).expect("the options are valid");
        ids
    };
    trial::run(open, |ids| Ok(ids.next_id()), |id| id as u64);
}
