//! The libraries of the trial: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE. Each function opens a library's generator with a number, and
//! mints an ID.

/// frazil, a fixed number.
fn frazil_fixed() {
    frazil(|node| format!("standard node={node}"));
}

/// frazil, a number leased from the folder store.
fn frazil_leased() {
    frazil(|_| "standard store=local".into());
}

fn frazil(spec: impl Fn(u16) -> String) {
    use frazil::{Id, Snowflake};
    let open = |node: u16| Snowflake::open(&spec(node));
    let next = |ids: &mut Result<Snowflake, frazil::Error>| match ids {
        Ok(ids) => ids.next_id().map_err(|error| error.kind().name().into()),
        Err(error) => Err(error.kind().name().into()),
    };
    trial::run(open, next, |id: Id| id.get() as u64);
}

/// ferroid: its generator for several threads, with its own clock, one for the process, as its page advises.
fn ferroid_atomic() {
    use ferroid::generator::AtomicSnowflakeGenerator;
    use ferroid::id::SnowflakeTwitterId;
    use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
    type Ids = AtomicSnowflakeGenerator<SnowflakeTwitterId, MonotonicClock<1>>;
    let clock = MonotonicClock::<1>::with_epoch(TWITTER_EPOCH);
    let open = |node: u16| Ids::new(node.into(), clock.clone());
    let next = |ids: &mut Ids| Ok(ids.next_id(|_| std::thread::yield_now()).to_raw());
    trial::run(open, next, |id| id);
}

/// idgenerator: a separate generator for each call of `open`, with the options of its page's first example.
fn idgenerator() {
    use idgenerator::{CoreIdGenerator, IdGeneratorOptions};
    let open = |node: u16| {
        let mut ids = CoreIdGenerator::default();
        let options = IdGeneratorOptions::new().worker_id(node.into()).worker_id_bit_len(6);
        ids.init(options).expect("the options are valid");
        ids
    };
    trial::run(open, |ids| Ok(ids.next_id()), |id| id as u64);
}

/// rs-snowflake: the generator and the call of its page's first example.
fn rs_snowflake() {
    use snowflake::SnowflakeIdGenerator;
    let open = |node: u16| SnowflakeIdGenerator::new(1, node.into());
    trial::run(open, |ids| Ok(ids.real_time_generate()), |id| id as u64);
}

/// snowflake_me: the generator of its page's first example.
fn snowflake_me() {
    use snowflake_me::Snowflake;
    let open = |node: u16| {
        let builder = Snowflake::builder().machine_id(&|| Ok(node)).data_center_id(&|| Ok(1)).finalize();
        builder.expect("the numbers are small")
    };
    let next = |ids: &mut Snowflake| ids.next_id().map(|id| id.as_u64()).map_err(|error| error.to_string());
    trial::run(open, next, |id| id);
}

/// snowflaked: the generator of its page's first example.
fn snowflaked() {
    use snowflaked::Generator;
    trial::run(Generator::new, |ids| Ok(ids.generate::<u64>()), |id| id);
}

/// sonyflake: the generator of its page's example, with a machine number.
fn sonyflake_rust() {
    use sonyflake::Sonyflake;
    let open = |node: u16| Sonyflake::builder().machine_id(&|| Ok(node)).finalize().expect("a generator");
    let next = |ids: &mut Sonyflake| ids.next_id().map(|id| id.to_u64()).map_err(|error| error.to_string());
    trial::run(open, next, |id| id);
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("frazil_fixed") => frazil_fixed(),
        Some("frazil_leased") => frazil_leased(),
        Some("ferroid_atomic") => ferroid_atomic(),
        Some("idgenerator") => idgenerator(),
        Some("rs_snowflake") => rs_snowflake(),
        Some("snowflake_me") => snowflake_me(),
        Some("snowflaked") => snowflaked(),
        Some("sonyflake_rust") => sonyflake_rust(),
        other => panic!("{other:?} is no library"),
    }
}
