//! The beginning of a run, drawn from the seed.

use super::*;

impl World {
    pub(in super::super) fn new(seed: u64, log: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let kind =
            [Kind::Clocked, Kind::Promoted, Kind::Clockless, Kind::Clockless, Kind::Lossy, Kind::Lossy, Kind::Lossy][random.usize(..7)];
        let tick_ms = [1, 1, 7, 50, 1_000, 3_600_000][random.usize(..6)];
        let coarse = tick_ms > 1_000;
        // Stamps that may run far ahead allow two losses within one window.
        let far = !coarse && random.u8(..4) == 0;
        let renew_ms = match (coarse, far) {
            (true, _) => 600_000,
            (_, true) => 900,
            _ => random.u64(300..=500),
        };
        let drift_ms = match random.u8(..4) {
            _ if far => random.u64(8_000..14_000),
            0 | 1 => 0,
            2 => random.u64(1..=renew_ms),
            _ => random.u64(1..=5 * renew_ms),
        };
        // A longer window keeps a bound ahead of the store's clock for a while after a loss.
        let longer_ms = if random.bool() { 0 } else { random.u64(..6_000) };
        let window_ms = drift_ms + renew_ms * 3 + random.u64(..=2 * renew_ms) + longer_ms;
        let disposable = matches!(kind, Kind::Clocked | Kind::Clockless) && random.u8(..8) == 0;
        let fields = if disposable { "node:8" } else { ["node:1", "node:2", "a:1 b:1", "a:1 b:1", "a:1 b:8"][random.usize(..5)] };
        let layout = Layout::parse(&format!("time:31@{tick_ms}ms {fields} sequence:2 epoch:2025-01-01")).unwrap();
        let bounded = |random: &mut fastrand::Rng| match drift_ms {
            0 if random.bool() => Reaction::Wait(5_000),
            0 => Reaction::Error,
            _ => Reaction::Ahead(Some(drift_ms)),
        };
        let (rollback, mut exhausted) = (bounded(&mut random), bounded(&mut random));
        if random.bool() {
            exhausted = Reaction::Error;
        }
        let start = [Start::Zero, Start::Alternate(1), Start::Continue(3)][random.usize(..3)];
        let lag_ms = if random.u8(..4) == 0 { random.u64(..window_ms) } else { 0 };
        let policies = Policies { rollback, exhausted, start, lag_ms };
        let contract = |fields: Vec<(Option<u64>, u32)>, window_ms: u64| {
            let (address, times) = (Address::parse("memory").unwrap(), Times { window_ms: Some(window_ms), renew_ms: Some(renew_ms) });
            let mut contract = Contract::new(address, "sim".to_owned(), &layout, fields, disposable, times, policies, false).unwrap();
            Arc::make_mut(&mut contract.terms).clock = kind != Kind::Clockless;
            Arc::new(contract)
        };
        let any: Vec<_> = layout.node_fields().iter().map(|field| (None, field.bits())).collect();
        let terms = Arc::clone(&contract(any.clone(), window_ms).terms);
        // If the meta record may be lost, all windows have to be equal.
        let restores = kind == Kind::Clocked && !disposable && random.bool();
        let mixed = !restores && matches!(kind, Kind::Clocked | Kind::Clockless) || random.u8(..4) == 0;
        let reach_ms = (layout.ticks(window_ms) + 1) * tick_ms + terms.allowance_ms + 1_000;
        let fault_ms = reach_ms * random.u64(3..=7);
        let mut world = World {
            at: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            store: SimStore::new(kind, mixed),
            processes: Vec::new(),
            starts: 0,
            spans: Spans::new(),
            stamps: 0,
            tokens: HashSet::new(),
            reclaimed: 0,
            restores,
            went_back: false,
            revived: HashSet::new(),
            excused: HashSet::new(),
            first_to_notice: None,
            reach_ms,
            fault_ms,
            measure_ms: 20 * renew_ms,
            calm: false,
            lively: true,
            beyond_cap: false,
            changes: None,
            faults: 0,
            most_faults: u64::MAX,
            reached: Reached::default(),
            log: log.then(Vec::new),
            random,
        };
        world.note(|| format!("{kind:?} {layout} W {window_ms} R {renew_ms} A {} disposable {disposable}", terms.allowance_ms));
        // The numbers that a process may have: any; given ones; or one field given.
        let given = world.random.usize(..4);
        let count = world.random.usize(3..=5);
        // In some worlds each process has a second, given number, and both leases are renewed
        // together.
        let has_two = !disposable && world.random.u8(..3) == 0;
        for _ in 0..count {
            let given = if given == 3 { world.random.usize(..3) } else { given };
            let mut chosen = any.clone();
            if !disposable && given > 0 {
                let fields = if given == 1 { chosen.len() } else { 1 };
                chosen.iter_mut().take(fields).for_each(|(value, bits)| *value = Some(world.random.u64(..1 << *bits)));
            }
            let longer = if mixed && world.random.u8(..3) == 0 { world.random.u64(2..=3) } else { 1 };
            // `poisoned` attributes a bound that is two reaches ahead to a wrong clock.
            let most = 2 * (world.reach_ms - tick_ms) - terms.allowance_ms - 2_000;
            let beside: Vec<_> = any.iter().map(|(_, bits)| (Some(world.random.u64(..1 << bits)), *bits)).collect();
            let also = (has_two && beside != chosen).then(|| contract(beside, window_ms));
            let contract = contract(chosen, (window_ms * longer).min(most).max(window_ms));
            let offset_ms = world.random.i64(-1_000..=1_000);
            let seed = world.random.u64(..);
            let start = world.random.u64(..=2 * renew_ms);
            world.start(None, contract, also, seed, offset_ms, start);
        }
        world
    }
}
