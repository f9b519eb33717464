//! Starts in large namespaces, by the shipped protocol: the numbers that they read and take. The
//! processes of a fleet act in rounds, so that they collide as much as possible.

use super::super::candidates::Candidates;
use super::super::protocol::{Do, Now, Protocol, Reply, Terms};
use super::super::record::{Slot, Tenure};
use super::store::{Kind, SimStore};
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Loaded, Swapped, Which};
use std::collections::HashSet;

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
const RENEW_MS: u64 = 1_000;
const HOUR_MS: i64 = 3_600_000;
/// The time that a round takes.
const ROUND_MS: u64 = 20;

fn terms(candidates: Vec<(Option<u64>, u32)>, kind: Kind) -> Terms {
    let bits: u32 = candidates.iter().map(|(_, bits)| bits).sum();
    let terms = Terms::of_a_test(&format!("time:{}@1ms node:{bits} sequence:4 epoch:2025-01-01", 59 - bits), false);
    Terms { candidates: Candidates::new(candidates), clock: kind != Kind::Clockless, ..terms }
}

fn record(tenure: Tenure, node: u64, end_ms: i64) -> String {
    let tick = (end_ms - 1_735_689_600_000) as u64;
    Slot { tenure, token: node + 1, version: 1, bound: tick << 4 | 15, holder: format!("other:{node}") }.to_string()
}

/// A namespace, and the processes that lease from it.
struct Fleet {
    store: SimStore,
    at: u64,
    loads: usize,
    swaps: usize,
    /// The number of records that were read, and of numbers that were requested. A page requests
    /// none.
    read: usize,
    asked: Vec<Vec<u64>>,
    /// A falsification of the store's answers.
    lie: fn(&mut Loaded),
    /// True if the store accepts no new record.
    is_full: bool,
}

impl Fleet {
    /// A namespace with the records of these numbers, held until `end_ms`.
    fn new(kind: Kind, tenure: Tenure, held: impl IntoIterator<Item = u64>, end_ms: i64) -> Self {
        let mut store = SimStore::new(kind, false);
        store.page = 100;
        held.into_iter().for_each(|node| store.put(node, record(tenure, node, BEGIN_MS + end_ms)));
        Fleet { store, at: 0, loads: 0, swaps: 0, read: 0, asked: Vec::new(), lie: |_| (), is_full: false }
    }

    /// Lets each process take one step. Their clocks are wrong by `off_ms`.
    fn round(&mut self, fleet: &mut [Protocol], off_ms: i64) {
        let true_ms = BEGIN_MS + self.at as i64;
        let now = Now { tick: (true_ms + off_ms - 1_735_689_600_000) as u64, mono_ms: self.at, next: 0 };
        let asked: Vec<_> = fleet.iter_mut().map(|process| process.step(now)).collect();
        for (process, what) in fleet.iter_mut().zip(asked) {
            let reply = match what {
                Do::Rest(_) => continue,
                Do::Load(which) => {
                    self.loads += 1;
                    if let Which::These(nodes) = &which {
                        self.asked.push(nodes.to_vec());
                    }
                    let mut loaded = self.store.load(which, true_ms);
                    self.read += loaded.slots.len();
                    (self.lie)(&mut loaded);
                    Reply::Loaded(loaded)
                }
                Do::Swap(swap) if self.is_full && swap.old.is_none() => {
                    process.done(Err(Error::new(ErrorKind::StoreReadonly, "no room left")), now);
                    continue;
                }
                Do::Swap(swap) | Do::Release(swap) => {
                    self.swaps += 1;
                    Reply::Swapped(self.store.swap(&swap, true_ms))
                }
                Do::Note(_) => unreachable!("a protocol writes no notes"),
            };
            process.done(Ok(reply), now);
        }
        self.at += ROUND_MS;
    }

    /// Runs rounds until all processes have a number. Returns the numbers.
    fn start_all(&mut self, fleet: &mut [Protocol], rounds: usize) -> Vec<u64> {
        for _ in 0..rounds {
            if fleet.iter().all(|process| process.grant().is_some()) {
                break;
            }
            self.round(fleet, 0);
        }
        granted(fleet)
    }

    /// Starts one process alone.
    fn start(&mut self, terms: Terms, seed: u64) -> Protocol {
        let mut process = [Protocol::new(terms, "test:1", fastrand::Rng::with_seed(seed))];
        assert_eq!(self.start_all(&mut process, 300).len(), 1, "{:?}", process[0].trouble());
        let [process] = process;
        process
    }

    fn forget_counts(&mut self) {
        (self.loads, self.swaps, self.read) = (0, 0, 0);
        self.asked.clear();
    }
}

fn granted(fleet: &[Protocol]) -> Vec<u64> {
    fleet.iter().filter_map(|process| process.grant()).map(|grant| grant.node).collect()
}

fn fleet(terms: &Terms, count: u64) -> Vec<Protocol> {
    (0..count).map(|seed| Protocol::new(terms.clone(), "test:1", fastrand::Rng::with_seed(seed))).collect()
}

fn distinct(nodes: &[u64]) -> usize {
    nodes.iter().collect::<HashSet<_>>().len()
}

#[test]
fn start_reads_few_records_of_a_large_namespace() {
    for kind in [Kind::Clocked, Kind::Clockless] {
        let terms = terms(vec![(None, 22)], kind);
        let mut namespace = Fleet::new(kind, Tenure::Held, 0..100_000, HOUR_MS);
        drop(namespace.start(terms.clone(), 1));
        for seed in 2..20 {
            namespace.forget_counts();
            let process = namespace.start(terms.clone(), seed);
            assert_eq!((namespace.loads, namespace.swaps), (1, 1), "{kind:?}");
            assert!(namespace.read <= 80, "{} records", namespace.read);
            assert!(process.grant().unwrap().node < 1 << 19, "{:?}", process.grant());
        }
    }
}

#[test]
fn numbers_whose_bound_has_passed_are_taken_before_any_other() {
    let terms = terms(vec![(None, 22)], Kind::Clocked);
    for tenure in [Tenure::Held, Tenure::Free] {
        let mut namespace = Fleet::new(Kind::Clocked, tenure, 0..50_000, -HOUR_MS);
        (0..200).for_each(|seed| drop(namespace.start(terms.clone(), seed)));
        assert_eq!(namespace.store.len(), 50_000);
    }
}

/// A storm: there are nearly as many processes as numbers, and all read before any writes.
#[test]
fn thousand_starts_at_once_have_numbers_after_a_few_attempts() {
    let terms = terms(vec![(None, 10)], Kind::Clocked);
    for records in [0, 500, 1_024] {
        let mut namespace = Fleet::new(Kind::Clocked, Tenure::Free, 0..records, -HOUR_MS);
        let mut processes = fleet(&terms, 1_000);
        let numbers = namespace.start_all(&mut processes, 100);
        assert_eq!((numbers.len(), distinct(&numbers)), (1_000, 1_000));
        println!("{records} records: {} loads, {} swaps, {} ms", namespace.loads, namespace.swaps, namespace.at);
        assert!(namespace.swaps < 6_000 && namespace.loads < 10_000, "{} swaps, {} loads", namespace.swaps, namespace.loads);
    }
}

/// Processes that find no number report it after they have seen that every number is held.
#[test]
fn thousand_starts_share_what_is_free_of_a_nearly_full_namespace() {
    let terms = terms(vec![(None, 10)], Kind::Clocked);
    let mut namespace = Fleet::new(Kind::Clocked, Tenure::Held, 0..1_000, 10 * HOUR_MS);
    let mut processes = fleet(&terms, 1_000);
    let numbers = namespace.start_all(&mut processes, 100);
    assert_eq!((numbers.len(), distinct(&numbers)), (24, 24));
    assert!(numbers.iter().all(|node| (1_000..1_024).contains(node)), "{numbers:?}");
    let refused = processes.iter().filter_map(Protocol::trouble).filter(|error| error.kind() == ErrorKind::NoFreeNode).count();
    assert_eq!(refused + processes.iter().filter(|process| process.awaits().is_some()).count() + 24, 1_000);
}

#[test]
fn last_free_number_is_found() {
    for (free, given) in [(None, None), (Some(Tenure::Free), None), (Some(Tenure::Held), None), (None, Some(3))] {
        for last in [0, 1, 700, 1_023] {
            let terms = terms(vec![(None, 6), (given, 2), (None, 4)], Kind::Clocked);
            let candidates = terms.candidates.clone();
            let last = candidates.nth(last % candidates.count());
            let mut namespace = Fleet::new(Kind::Clocked, Tenure::Held, (0..4_096).filter(|node| *node != last), HOUR_MS);
            free.into_iter().for_each(|tenure| namespace.store.put(last, record(tenure, last, BEGIN_MS - HOUR_MS)));
            namespace.forget_counts();
            assert_eq!(namespace.start(terms, last).grant().unwrap().node, last);
        }
    }
}

#[test]
fn no_free_node_only_after_reading_all_numbers() {
    for kind in [Kind::Clocked, Kind::Clockless] {
        let terms = terms(vec![(None, 4), (Some(2), 2), (None, 6)], kind);
        let mut namespace = Fleet::new(kind, Tenure::Held, 0..4_096, HOUR_MS);
        let mut processes = fleet(&terms, 1);
        while processes[0].trouble().is_none() {
            assert!(namespace.loads < 100);
            namespace.round(&mut processes, 0);
        }
        let error = processes[0].trouble().unwrap();
        assert_eq!(error.kind(), ErrorKind::NoFreeNode, "{error}");
        assert!(error.to_string().contains("all 1024 node numbers that the spec allows are held: 128 by other:128"), "{error}");
        let asked: HashSet<_> = namespace.asked.iter().flatten().copied().collect();
        assert_eq!(asked.len(), 1_024);
        assert!(asked.iter().all(|node| terms.candidates.contains(*node)));
    }
}

/// A store without room for another record keeps the existing ones.
#[test]
fn full_store_gives_the_number_that_is_open() {
    for open in [3, 100, 999] {
        let terms = terms(vec![(None, 22)], Kind::Clocked);
        let mut namespace = Fleet::new(Kind::Clocked, Tenure::Held, 0..1_000, HOUR_MS);
        drop(namespace.start(terms.clone(), 1));
        namespace.store.put(open, record(Tenure::Free, open, BEGIN_MS - HOUR_MS));
        namespace.is_full = true;
        for seed in 2..10 {
            let mut process = fleet(&terms, 1);
            process[0].reseed(fastrand::Rng::with_seed(seed));
            while process[0].grant().is_none() {
                namespace.round(&mut process, 0);
                assert!(process[0].trouble().is_none(), "number {open}, seed {seed}: {:?}", process[0].trouble());
            }
            assert_eq!(granted(&process), [open]);
            namespace.store.put(open, record(Tenure::Free, open, BEGIN_MS - HOUR_MS));
        }
        // Without an open number, the start fails soon.
        namespace.store.put(open, record(Tenure::Held, open, BEGIN_MS + HOUR_MS));
        namespace.forget_counts();
        let mut process = fleet(&terms, 1);
        while process[0].trouble().is_none() {
            namespace.round(&mut process, 0);
        }
        assert_eq!(process[0].trouble().map(Error::kind), Some(ErrorKind::StoreReadonly));
        assert!(namespace.loads < 20, "{} loads", namespace.loads);
    }
}

/// A start waits for the bound of a crashed holder.
#[test]
fn start_waits_for_a_bound_that_passes_soon() {
    let terms = terms(vec![(None, 10)], Kind::Clocked);
    let mut namespace = Fleet::new(Kind::Clocked, Tenure::Held, 0..1_024, HOUR_MS);
    namespace.store.put(77, record(Tenure::Held, 77, BEGIN_MS + 2_500));
    let mut processes = fleet(&terms, 1);
    assert_eq!(namespace.start_all(&mut processes, 500), [77]);
    assert!((2_500..5_000).contains(&namespace.at), "{}", namespace.at);
}

/// Processes come and go, by a release or a crash, and some start at once. The number of records
/// stays limited.
#[test]
fn there_are_at_most_twice_as_many_records_as_numbers_held_at_once() {
    let terms = Terms { window_ms: 100 * HOUR_MS as u64, ..terms(vec![(None, 22)], Kind::Clocked) };
    let mut namespace = Fleet::new(Kind::Clocked, Tenure::Free, [], 0);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut processes, mut most, mut seed) = (Vec::new(), 0, 0);
    for _ in 0..4_000 {
        let together = [1, 1, 1, 2, 10][random.usize(..5)];
        seed += together;
        let mut started: Vec<_> = (0..together).map(|n| Protocol::new(terms.clone(), "x:1", fastrand::Rng::with_seed(seed + n))).collect();
        assert_eq!(namespace.start_all(&mut started, 300).len() as u64, together);
        processes.append(&mut started);
        most = most.max(processes.len());
        while processes.len() > 300 || random.u8(..4) > 0 && !processes.is_empty() {
            let mut ended = processes.swap_remove(random.usize(..processes.len()));
            let (node, true_ms) = (ended.grant().unwrap().node, BEGIN_MS + namespace.at as i64);
            if random.bool() {
                ended.release(0);
                namespace.round(std::slice::from_mut(&mut ended), 0);
            }
            // The record of a number after its window has passed.
            namespace.store.put(node, record(Tenure::Held, node, true_ms - 1));
        }
    }
    println!("{} records of {most} numbers held at once", namespace.store.len());
    assert!(most > 100 && namespace.store.len() <= 2 * most, "{} records of {most}", namespace.store.len());
}

#[test]
fn records_of_other_formats_are_not_taken() {
    let terms = terms(vec![(None, 10)], Kind::Clocked);
    let unreadable = |free: Option<u64>| {
        let mut namespace = Fleet::new(Kind::Clocked, Tenure::Held, [], 0);
        (0..1_024).filter(|node| Some(*node) != free).for_each(|node| namespace.store.put(node, "2 whatever".to_owned()));
        namespace
    };
    assert_eq!(unreadable(Some(600)).start(terms.clone(), 1).grant().unwrap().node, 600);
    let mut processes = fleet(&terms, 1);
    unreadable(None).start_all(&mut processes, 30);
    let error = processes[0].trouble().unwrap();
    assert!(error.kind() == ErrorKind::StoreCorrupt && error.to_string().contains("newer"), "{error}");
}

/// The write compares the store's real record, whatever the store answered.
#[test]
fn false_records_cost_only_attempts() {
    let terms = terms(vec![(None, 10)], Kind::Clocked);
    let lies: [fn(&mut Loaded); 3] = [
        // The store answers from a replica with old records.
        |loaded| {
            loaded
                .slots
                .iter_mut()
                .filter(|(node, _)| node % 2 == 0)
                .for_each(|(node, text)| *text = record(Tenure::Free, *node, BEGIN_MS - HOUR_MS))
        },
        // The store leaves some records out.
        |loaded| loaded.slots.retain(|(node, _)| node % 3 > 0),
        // The store answers with records that were not requested, and twice.
        |loaded| {
            let more = (0..3_000).map(|node| (node, record(Tenure::Free, node, BEGIN_MS - HOUR_MS)));
            loaded.slots.splice(0..0, more);
        },
    ];
    for lie in lies {
        let mut namespace = Fleet { lie, ..Fleet::new(Kind::Clocked, Tenure::Held, 0..600, HOUR_MS) };
        let mut processes = fleet(&terms, 4);
        namespace.start_all(&mut processes, 2_000);
        let numbers = granted(&processes);
        assert_eq!(distinct(&numbers), numbers.len());
        assert!(numbers.iter().all(|node| (600..1_024).contains(node)), "{numbers:?}");
    }
}

/// A namespace of a store without a clock, in which only a few processes are still alive.
fn sparse(live: u64) -> (Fleet, Vec<Protocol>, Terms) {
    let terms = terms(vec![(None, 16)], Kind::Clockless);
    let mut namespace = Fleet::new(Kind::Clockless, Tenure::Held, 0..5_000, -10 * HOUR_MS);
    // The live processes started before the others ended.
    let mut processes = fleet(&terms, live);
    namespace.store.page = 5_000;
    namespace.start_all(&mut processes, 500);
    assert_eq!(granted(&processes).len() as u64, live);
    namespace.store.page = 100;
    namespace.forget_counts();
    (namespace, processes, terms)
}

#[test]
fn clock_far_ahead_of_live_holders_is_noticed_in_a_sparse_namespace() {
    let (mut namespace, mut live, terms) = sparse(3);
    let mut ahead = fleet(&terms, 1);
    while ahead[0].trouble().is_none() {
        namespace.round(&mut live, 0);
        namespace.at -= ROUND_MS;
        namespace.round(&mut ahead, HOUR_MS);
        assert!(namespace.at < 60_000 && ahead[0].grant().is_none(), "{:?}", ahead[0].grant());
    }
    assert_eq!(ahead[0].trouble().map(crate::Error::kind), Some(ErrorKind::ClockSkew));
    // A holder whose clock jumps is refused, too.
    let before = live[0].grant();
    while live[0].trouble().is_none() {
        namespace.round(&mut live[1..], 0);
        namespace.at -= ROUND_MS;
        namespace.round(&mut live[..1], HOUR_MS);
        assert!(namespace.at < 120_000 && live[0].grant() == before, "{:?}", live[0].grant());
    }
    assert_eq!((live[0].trouble().map(crate::Error::kind), live[0].grant()), (Some(ErrorKind::ClockSkew), before));
}

/// A page of the survey need not contain the record of the process's lease. Then it shows nothing
/// about that lease.
#[test]
fn page_without_the_leases_record_keeps_the_lease() {
    let (mut namespace, mut live, _) = sparse(2);
    namespace.store.page = 1;
    live.retain(|process| process.grant().unwrap().node > 0);
    let before = granted(&live);
    assert!(!before.is_empty());
    // The namespace's record is gone, and the slots remain.
    namespace.lie = |loaded| loaded.meta = None;
    (0..200).for_each(|_| namespace.round(&mut live, HOUR_MS));
    assert!(live.iter().all(|process| process.trouble().map(Error::kind) == Some(ErrorKind::StoreChanged)));
    assert_eq!(granted(&live), before);
    assert!(live.iter_mut().all(|process| process.take_loss().is_none()));
}

/// The namespace is read up to the first live record. The draws of later starts contain the first
/// start's record.
#[test]
fn sparse_namespace_is_surveyed_by_one_start() {
    let (mut namespace, live, terms) = sparse(1);
    // The live process has a number that a draw may miss.
    let text = namespace.store.load(Which::One(live[0].grant().unwrap().node), 0).slots.remove(0).1;
    namespace.store.put(live[0].grant().unwrap().node, record(Tenure::Held, 1, BEGIN_MS - HOUR_MS));
    namespace.store.put(4_321, text);
    let first = namespace.start(terms.clone(), 1);
    assert!((44..60).contains(&namespace.loads), "{} loads", namespace.loads);
    assert_eq!(namespace.swaps, 1);
    assert!(first.grant().unwrap().node < 8, "{:?}", first.grant());
    for seed in 2..20 {
        namespace.forget_counts();
        namespace.start(terms.clone(), seed);
        assert!(namespace.loads <= 2 && namespace.swaps <= 2, "{} loads", namespace.loads);
    }
}

#[test]
fn start_among_dead_holders_watches_and_continues() {
    let terms = terms(vec![(None, 16)], Kind::Clockless);
    let mut namespace = Fleet::new(Kind::Clockless, Tenure::Held, 0..2_000, -HOUR_MS);
    let mut processes = fleet(&terms, 20);
    let numbers = namespace.start_all(&mut processes, 500);
    assert_eq!(distinct(&numbers), 20);
    assert!((RENEW_MS * 3 / 2..4_000).contains(&namespace.at), "{}", namespace.at);
    // Released numbers show nothing about clocks.
    let mut namespace = Fleet::new(Kind::Clockless, Tenure::Free, 0..2_000, -HOUR_MS);
    namespace.start(terms, 1);
    assert!(namespace.at < 1_000, "{}", namespace.at);
}

/// The write decides between two processes that drew the same number.
#[test]
fn one_of_two_processes_gets_a_number_that_both_drew() {
    let terms = terms(vec![(None, 22)], Kind::Clocked);
    let mut namespace = Fleet::new(Kind::Clocked, Tenure::Free, [], 0);
    let mut twins: Vec<_> = (0..2).map(|_| Protocol::new(terms.clone(), "test:1", fastrand::Rng::with_seed(1))).collect();
    let numbers = namespace.start_all(&mut twins, 30);
    assert_eq!((numbers.len(), distinct(&numbers)), (2, 2));
    assert_eq!(namespace.store.swap(&frazil_store::Swap::of_meta(String::new(), None, String::new(), 0), 0), Swapped::Differs);
}
