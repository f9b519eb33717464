//! Attacks on a change of the layout: each test describes what goes wrong today.

use super::super::candidates::Candidates;
use super::super::change::{Change, Next};
use super::super::protocol::{Do, Now, Protocol, Reply, Terms};
use super::super::record::{ERA_KEYS, Meta, Phase};
use super::directed::drive;
use super::store::{Kind, SimStore};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Swap, Which};

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
const A: &str = "time:41@1ms node:2 sequence:4 epoch:2025-01-01";
const B: &str = "time:41@1ms other:2 sequence:4 epoch:2025-01-01";
/// One more bit below the time: it cannot be followed by A.
const LARGE: &str = "time:41@1ms other:2 sequence:5 epoch:2025-01-01";

fn holder(layout: &str, seed: u64, node: u64) -> Protocol {
    let terms = Terms::of_a_test(layout, false);
    Protocol::new(Terms { candidates: Candidates::new(vec![(Some(node), 2)]), ..terms }, "test:1", fastrand::Rng::with_seed(seed))
}

/// Runs a command to its end, and returns its writes.
fn command(store: &mut SimStore, layout: &str, at_ms: Option<i64>, cancels: bool, nonce: u64, at: u64, off_ms: i64) -> Result<Vec<Swap>, Error> {
    let mut change = Change::new(Layout::parse(layout).unwrap(), at_ms, cancels, nonce);
    let (mut which, mut writes, true_ms) = (Which::Page(0), Vec::new(), BEGIN_MS + at as i64);
    loop {
        which = match change.loaded(store.load(which, true_ms), true_ms + off_ms, 1 << 20)? {
            Next::Load(which) => which,
            Next::Swap(swap) => {
                store.swap(&swap, true_ms);
                writes.push(swap);
                Which::Page(0)
            }
            Next::Rest => Which::Page(0),
            _ => return Ok(writes),
        };
    }
}

fn meta(store: &SimStore) -> Meta {
    Meta::parse(store.meta().unwrap()).unwrap()
}

fn end_ms(protocol: &Protocol) -> i64 {
    Layout::parse(A).unwrap().stamp_end_ms(protocol.grant().unwrap().bound) - BEGIN_MS
}

/// 1. A plan that was cancelled comes back with the next fail-over, because the process that notices it has not yet read the cancellation.
/// At the moment all processes stop, and the operator cannot go back.
#[test]
fn cancelled_plan_comes_back_with_a_fail_over() {
    for paused in [false, true] {
        let mut store = SimStore::new(Kind::Promoted, false);
        let (mut one, mut two) = (holder(A, 1, 1), holder(A, 2, 2));
        drive(&mut one, &mut store, 0, 5_000);
        drive(&mut two, &mut store, 0, 5_000);
        command(&mut store, LARGE, Some(BEGIN_MS + 40_000), false, 7, 5_000, 0).unwrap();
        drive(&mut one, &mut store, 5_000, 7_000);
        drive(&mut two, &mut store, 5_000, 7_000);
        command(&mut store, LARGE, None, true, 8, 7_010, 0).unwrap();
        assert!(meta(&store).plan.is_none(), "the operator reads: cancelled");
        let noticed = if paused {
            // The first one is not paused. It sees the cancellation, and begins the incarnation of the new server.
            drive(&mut one, &mut store, 7_010, 9_000);
            store.restart_without(0, 0);
            drive(&mut one, &mut store, 9_000, 20_000);
            assert!(meta(&store).plan.is_none() && one.trouble().is_none());
            20_000
        } else {
            // A new server with every write takes over, within R.
            store.restart_without(0, 0);
            7_020
        };
        drive(&mut two, &mut store, noticed, noticed + 2_000);
        let plan = meta(&store).plan;
        println!("paused {paused}: {:?}", plan);
        assert!(plan.is_none(), "the cancelled plan is back");
        let _ = &mut one;
    }
}

/// The end of the first attack: an outage at the moment, and no command leads back.
#[test]
fn cancelled_plan_that_came_back_ends_all_processes() {
    let mut store = SimStore::new(Kind::Promoted, false);
    let (mut one, mut two) = (holder(A, 1, 1), holder(A, 2, 2));
    drive(&mut one, &mut store, 0, 5_000);
    drive(&mut two, &mut store, 0, 5_000);
    command(&mut store, LARGE, Some(BEGIN_MS + 40_000), false, 7, 5_000, 0).unwrap();
    drive(&mut one, &mut store, 5_000, 7_000);
    drive(&mut two, &mut store, 5_000, 7_000);
    command(&mut store, LARGE, None, true, 8, 7_010, 0).unwrap();
    store.restart_without(0, 0);
    for at in (7_020..60_000).step_by(20) {
        drive(&mut one, &mut store, at, at + 10);
        drive(&mut two, &mut store, at + 10, at + 20);
    }
    println!("{:?}\n{:?} {:?}", meta(&store), one.trouble(), two.trouble());
    let back = command(&mut store, A, None, false, 9, 60_000, 0);
    println!("back: {:?}", back.as_ref().map(|_| ()).map_err(|error| error.to_string()));
    let again = command(&mut store, LARGE, None, true, 10, 60_000, 0);
    println!("cancel: {:?}", again.as_ref().map(|_| ()).map_err(|error| error.to_string()));
    assert!(one.trouble().is_none() && two.trouble().is_none(), "both have ended with LAYOUT_MISMATCH");
}

/// 2. A holder of the old layout that is overruled keeps its bound beyond the moment.
#[test]
fn overruled_holder_issues_beyond_the_moment() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    let backup = store.save();
    command(&mut store, B, None, false, 7, 5_000, 0).unwrap();
    let moment = meta(&store).plan.unwrap().at_ms - BEGIN_MS;
    // All old processes are gone, and a new one has a lease of the same number.
    let mut new = holder(B, 2, 1);
    drive(&mut new, &mut store, 6_000, 30_000);
    assert!(new.grant().is_some());
    store.put_back(backup);
    // An old program starts from the backup, just before the holder looks.
    let mut fresh = holder(A, 3, 1);
    drive(&mut fresh, &mut store, 30_000, 30_100);
    assert!(fresh.grant().is_some());
    let noticed = 31_300;
    let mut last = 0;
    for at in (30_100..50_000).step_by(20) {
        drive(&mut new, &mut store, at, at + 10);
        drive(&mut fresh, &mut store, at + 10, at + 20);
        if at >= noticed && fresh.grant().is_some() && new.grant().is_some() {
            last = (at as i64).min(end_ms(&fresh)).max(last);
        }
    }
    println!("moment {moment}; the holder has noticed at {noticed}; both issue stamps until {last}; {:?}", meta(&store));
    assert!(last < noticed as i64 + 1_000, "both issue IDs until {last}, and the holder looked at {noticed}");
}

/// 3. Late writes of one command lead back to a phase that was left, with the same text.
#[test]
fn late_writes_of_a_cancelled_command_plan_a_moment_below_a_bound() {
    for kind in [Kind::Clockless, Kind::Clocked] {
        let mut store = SimStore::new(kind, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 5_000);
        let writes = command(&mut store, B, None, false, 7, 5_000, 0).unwrap();
        assert_eq!(writes.len(), 2);
        // The command had sent both writes over a connection that ended, too. Those copies arrive late. It is cancelled meanwhile.
        let moment = meta(&store).plan.unwrap().at_ms - BEGIN_MS;
        command(&mut store, B, None, true, 8, 5_100, 0).unwrap();
        drive(&mut old, &mut store, 5_100, moment as u64 - 3_500);
        for late in &writes {
            println!("{kind:?} late: {:?}", store.swap(late, BEGIN_MS + moment - 3_400));
        }
        let (again, bound) = (meta(&store).plan.unwrap(), end_ms(&old));
        println!("{kind:?} moment {}, bound {bound}", again.at_ms - BEGIN_MS);
        let mut new = holder(B, 2, 1);
        let mut both = 0;
        for at in (moment as u64 - 3_400..moment as u64 + 3_000).step_by(20) {
            drive(&mut new, &mut store, at, at + 10);
            drive(&mut old, &mut store, at + 10, at + 20);
            if at as i64 > moment && new.grant().is_some() && end_ms(&old) > at as i64 {
                both = at;
            }
        }
        println!("{kind:?} both issue until {both}");
        assert!(both == 0, "{kind:?}: the new layout has IDs from {moment} on, the old one until {bound}");
    }
}

/// 4. On a store without a clock, an operator's clock that is ahead ends the old layout before the moment of an earlier plan.
#[test]
fn clock_ahead_of_a_second_command_ends_the_era_early() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    command(&mut store, B, Some(BEGIN_MS + 3_600_000), false, 7, 5_000, 0).unwrap();
    drive(&mut old, &mut store, 5_000, 7_000);
    // One hour and a bit ahead. Goes back, as the pages say.
    let result = command(&mut store, A, None, false, 8, 7_000, 3_700_000);
    println!("{:?} {:?}", result.map(|_| ()), meta(&store));
    let troubles = drive(&mut old, &mut store, 7_000, 30_000);
    println!("{:?}: bound {}", troubles.last(), end_ms(&old));
    let mut new = holder(B, 2, 1);
    drive(&mut new, &mut store, 10_000, 30_000);
    println!("new: {:?} {:?}", new.grant(), new.awaits());
    assert!(end_ms(&old) > 30_000, "nobody issues IDs from {} until the moment at 3600000", end_ms(&old));
}

/// 5. The operator's clock is behind, on a store without one: healthy holders are blamed.
#[test]
fn slow_clock_of_the_operator_blames_healthy_holders() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    let error = command(&mut store, B, None, false, 7, 5_000, -7_200_000).unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::ClockSkew);
    let loaded = store.load(Which::Page(0), BEGIN_MS + 5_000);
    let (after, swap) = super::super::accept::accept(loaded.meta.as_ref().unwrap(), &loaded, BEGIN_MS + 5_000 - 7_200_000, 9).unwrap();
    store.swap(&swap, BEGIN_MS);
    let loaded = store.load(Which::Page(0), BEGIN_MS + 5_000);
    let back = super::super::accept::set_back(&after, &loaded);
    assert!(back.is_empty(), "the bounds of healthy holders are set back: {}", back.len());
}

/// 6. A holder whose far bound an operator had set back drops a plan without a word.
#[test]
fn holder_with_a_bound_that_was_set_back_drops_a_plan() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut old = holder(A, 1, 1);
    // Its store's clock, or its record, was far ahead once: see `accept`.
    drive(&mut old, &mut store, 0, 5_000);
    let _ = (&mut old, ERA_KEYS, Phase::Planned, |_: Do, _: Now, _: Reply| ());
}
