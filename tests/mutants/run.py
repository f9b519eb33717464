#!/usr/bin/env python3
"""Plants known bugs, one at a time. For bugs in the lease's protocol, the simulation must find a duplicate ID. Bugs in the code that takes
a number and reads the time must be found by a test.

    tests/mutants/run.py            # all mutants
    tests/mutants/run.py --short    # one of each kind, for which the test run has time
    tests/mutants/run.py NAME ...   # these mutants
    tests/mutants/run.py --matching K   # those whose names contain K
    tests/mutants/run.py --exhaustive   # those of the protocol that the exhaustive search must find, by that search alone

A mutant of the protocol is a name, a piece of code that occurs exactly once in the sources of frazil and frazil-base, and its replacement; or a
name and a list of such changes. Comments and spaces do not count. All mutants are in one build, in a copy of the sources, and are active one
after the other. The target folder (`target/mutants`) is kept, so that dependencies are built once.

Exit statuses: 0 if all are caught, 1 if one is missed, 3 if the harness failed.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import switched

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "mutants"
# Many more seeds than the unchanged code gets, because some mutants need rare events.
SEEDS = "20000"
SOURCES = ["core/src", "core/base/src"]
CARGO = ["cargo", "test", "--locked", "--quiet", "-p", "frazil", "-p", "frazil-base", "--lib", "--no-run"]
CARGO += ["--message-format", "json-render-diagnostics"]
# Only frazil's crates are optimised, because the dependencies have little to do.
OPTIMISED = [part for name in ("frazil", "frazil-base") for part in ("--config", f"profile.dev.package.{name}.opt-level=2")]
ENVIRONMENT = os.environ | {
    "CARGO_TARGET_DIR": str(TARGET),
    "CARGO_TERM_COLOR": "never",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_INCREMENTAL": "0",
}
# The limit of a run, because a mutant may hang.
TIMEOUT_S = 900


MUTANTS = [
    (
        "timed-out write taken as success",
        "            (state, Err(error)) => self.unknown(state, error, now),\n",
        (
            "            (state @ (State::Take(_) | State::Extend(_)), Err(_)) => self.swapped(state, Swapped::Done, now),\n"
            "            (state, Err(error)) => self.unknown(state, error, now),\n"
        ),
    ),
    (
        "any record with our token confirms",
        ("            (Some(_), Some(sent)) => {\n                let (bound, text) = held.sent.swap_remove(sent);\n"),
        (
            "            (Some(text), _) if Slot::parse(node, text).is_ok_and(|slot| slot.token == held.grant.token) => {\n"
            "                let (bound, text) = (Slot::parse(node, text).map_or(0, |slot| slot.bound), text.clone());\n"
        ),
    ),
    (
        "token and incarnation confirm an unknown write",
        "        let sent = found.and_then(|text| held.sent.iter().position(|(_, sent)| sent == text));\n",
        (
            "        let same = loaded.meta.as_ref() == self.incarnation.as_ref().map(|known| &known.text) && !held.sent.is_empty();\n"
            "        let own = found.and_then(|text| Slot::parse(node, text).ok().map(|slot| (slot, text)));\n"
            "        if let Some((slot, text)) = own.filter(|(slot, _)| same && slot.token == held.grant.token) {\n"
            "            held.sent.insert(0, (slot.bound, text.clone()));\n"
            "        }\n"
            "        let sent = found.and_then(|text| held.sent.iter().position(|(_, sent)| sent == text));\n"
        ),
    ),
    (
        "a bound is used before it is confirmed",
        "            State::Extend(extending) => Do::Swap(Arc::clone(&extending.swap)),\n",
        (
            "            State::Extend(extending) => {\n"
            "                self.held.iter_mut().for_each(|held| held.grant.bound = extending.bound);\n"
            "                Do::Swap(Arc::clone(&extending.swap))\n"
            "            }\n"
        ),
    ),
    (
        "the first stamp may be the old bound",
        "old.map_or(0, |(slot, _)| slot.bound + 1)",
        "old.map_or(0, |(slot, _)| slot.bound)",
    ),
    (
        "the first stamp is the clock's, whatever the old bound",
        "begin.max(old.map_or(0, |(slot, _)| slot.bound + 1))",
        "begin",
    ),
    (
        "a lost lease is still renewed",
        [
            ("slot.token != held.grant.token && slot.bound", "slot.token != slot.token && slot.bound"),
            (
                "            _ => self.state = self.lose(loaded, now),\n",
                (
                    "            (Some(text), _) => {\n"
                    "                held.text = Some(text.clone());\n"
                    "                self.state = self.extension(now);\n"
                    "            }\n"
                    "            _ => self.state = self.lose(loaded, now),\n"
                ),
            ),
        ],
    ),
    (
        "a record that went back is the loss of one lease",
        "self.look_for_lost_writes(&state, loaded);",
        "",
    ),
    (
        "a number that another process has is the only loss",
        "known.has_lost_writes |= is_anothers && !follows",
        "known.has_lost_writes |= is_anothers && follows",
    ),
    (
        "a lease outlives the history of a store without a clock",
        "take_if(|_| is_clockless && error.kind() == ErrorKind::StoreChanged)",
        "take_if(|_| is_clockless && error.kind() == ErrorKind::Internal)",
    ),
    (
        "an incarnation is its nonce alone",
        "known.meta.identity() != meta.identity()",
        "known.meta.nonce != meta.nonce",
    ),
    (
        "a slot is released with a stamp too few",
        "next.max(held.grant.first).saturating_sub(1)",
        "next.max(held.grant.first).saturating_sub(2)",
    ),
    (
        "a slot is released without the freeze",
        "let next = shared.generator.lease.freeze(owner);",
        "let next = Some((owner, shared.generator.lease.get().next()).1);",
    ),
    (
        "a slot is released as if nothing had been issued",
        "self.protocol.release(frozen.unwrap_or_else(|| grant.map_or(0, |grant| grant.first)));",
        "self.protocol.release(frozen.and(None).unwrap_or_else(|| grant.map_or(0, |grant| grant.first)));",
    ),
    (
        "a forked child mints with its parent's lease",
        [
            (
                "        if self.mark.is_still(*process) {",
                "        if *process > 0 {",
            ),
            ("self.mark.is_of(&lease.process, &lease.generation).then(", "(lease.process > 0).then("),
            ("&& self.mark.is_of(&lease.process, &lease.generation)\n        {", "&& lease.process > 0\n        {"),
            ("if !self.mark.is_still(lease.process) {", "if lease.process == 0 {"),
            ("self.mark.is_still(self.lease.get().process)", "self.lease.get().process > 0"),
        ],
    ),
    (
        "a reply to several calls is given to the wrong one",
        "for (call, reply) in calls.iter().zip(replies) {",
        "for (call, reply) in calls.iter().rev().zip(replies) {",
    ),
    (
        "of several calls one that got no reply is taken for done",
        "for (call, reply) in calls.iter().zip(replies) {",
        (
            "let is_done = |reply: &Result<Reply>| matches!(reply, Ok(Reply::Swapped(frazil_store::Swapped::Done)));\n"
            "let one = replies.iter().find(|reply| is_done(reply)).cloned();\n"
            "for (call, reply) in calls.iter().zip(replies) {\n"
            "let is_swap = matches!(call.what, Do::Swap(_));\n"
            "let reply = if is_swap && reply.is_err() { one.clone().unwrap_or(reply) } else { reply };\n"
        ),
    ),
    (
        "two workers of a store, and any of them moves a bound on",
        [
            ("match map.get(stores) {", "match map.get(stores).filter(|worker| worker.lock().lease_tasks.iter_mut().count() != 1) {"),
            (
                "Some(self.get()).filter(|lease| lease.serial == owner.serial)",
                "Some(self.get()).filter(|lease| lease.serial >= owner.serial)",
            ),
        ],
    ),
    ("the store does not compare the meta record", "self.records.meta != swap.meta || ", ""),
    ("the store does not compare its identity", " || self.server() != swap.server", ""),
    (
        "the store compares only the token",
        "|| record != swap.old.as_ref() || self.server",
        '|| record.and_then(|text| text.split(" version=").next()) != swap.old.as_ref().and_then(|text| text.split(" version=").next()) || self.server',
    ),
    (
        "no cap",
        "self.terms.layout.tick_start_ms(bound_tick + 1) - self.meta_reach_ms()",
        "i64::MIN + i64::from(bound_tick == 0)",
    ),
    ("no cap when a bound is moved on", "        swap.earliest_ms = cap_ms;\n", "        let _ = cap_ms;\n"),
    ("no floor", "(since_ms != 0).then(", "(since_ms == i64::MAX).then("),
    ("a floor without W", "since_ms.saturating_add(reach_ms(window_ms, allowance_ms))", "since_ms"),
    (
        "an incarnation may be begun any time after it was looked for",
        "let latest_ms = if since_ms == 0 { i64::MAX } else { since_ms };",
        "let latest_ms = i64::MAX;",
    ),
    (
        "slots are taken before the floor",
        "cap_ms.max(passed_ms).max(incarnation.meta.begins_ms().unwrap_or(i64::MIN))",
        "cap_ms.max(passed_ms)",
    ),
    (
        "the store's clock does not agree that the owner before is done",
        "cap_ms.max(passed_ms).max(",
        "cap_ms.max(",
    ),
    (
        "a holder continues after a loss without a limit of time",
        "swap.latest_ms = self.end_ms(held.grant.bound).min(floor_ms) - held.margin_ms;",
        "swap.latest_ms = i64::MAX.max(floor_ms);",
    ),
    (
        "a holder continues after a loss whose bound has passed, though not for long",
        "swap.latest_ms = self.end_ms(held.grant.bound).min(floor_ms) - held.margin_ms;",
        "swap.latest_ms = self.end_ms(held.grant.bound).max(floor_ms) + CLOCK_ERROR_MS;",
    ),
    (
        "copies of a machine that renew at once write the same record",
        "self.random.u64(1..=VERSION_STEP))",
        "self.random.u64(..1) + VERSION_STEP / VERSION_STEP)",
    ),
    (
        "a copy's record is adopted after a loss",
        "slot.tenure == Tenure::Held && slot.holder == holder && ours",
        "slot.tenure == Tenure::Held && (slot.holder == holder || ours || !ours)",
    ),
    (
        "the record of an owner after it is written over after a loss",
        [
            ("slot.token != held.grant.token && slot.bound", "slot.token != slot.token && slot.bound"),
            ("            return slot.bound < self.grant.first;\n", "            return true;\n"),
        ],
    ),
    (
        "going back to an older incarnation goes unnoticed",
        "meta.since_ms > known.meta.since_ms && ",
        "meta.since_ms + known.meta.since_ms != 0 && ",
    ),
    (
        "an incarnation whose floor lies below what was confirmed is followed",
        "!between.contains(&self.end_ms(self.highest))",
        "(between.is_empty() || !between.is_empty())",
    ),
    (
        "a new incarnation goes unnoticed",
        "            self.held.iter_mut().for_each(|held| held.shaken = true);\n",
        "",
    ),
    (
        "a lease of the old layout is extended beyond the moment",
        "self.terms.layout.last_tick().min(self.era().end_tick(&self.terms.layout).saturating_sub(1))",
        "self.terms.layout.last_tick()",
    ),
    (
        "a lease of the new layout begins before the moment",
        ".max(floor).max(first_tick(layout, era.from_ms)) << bits",
        ".max(floor) << bits",
    ),
    ("a disposable number is not counted", "version, bound: spent + 1, holder", "version, bound: spent, holder"),
]

# The exhaustive search, and the mutants of the protocol that it does not find, with the reasons.
EXHAUSTIVE = "simulation::exhaustive"
BEYOND_EXHAUSTIVE = (
    dict.fromkeys(
        (
            "a slot is released without the freeze",
            "a slot is released as if nothing had been issued",
            "a forked child mints with its parent's lease",
            "a reply to several calls is given to the wrong one",
            "of several calls one that got no reply is taken for done",
            "two workers of a store, and any of them moves a bound on",
            "a disposable number is not counted",
        ),
        "its code is not in the search",
    )
    | dict.fromkeys(
        (
            "a record that went back is the loss of one lease",
            "a number that another process has is the only loss",
            "a lease outlives the history of a store without a clock",
        ),
        "no server of the search is restored in place",
    )
    | dict.fromkeys(
        ("an incarnation is its nonce alone", "a copy's record is adopted after a loss"),
        "no machine of the search is copied over a store that forgets",
    )
    | dict.fromkeys(
        (
            "going back to an older incarnation goes unnoticed",
            "an incarnation whose floor lies below what was confirmed is followed",
        ),
        "no server of the search returns",
    )
    | dict.fromkeys(
        (
            "an incarnation may be begun any time after it was looked for",
            "slots are taken before the floor",
            "the record of an owner after it is written over after a loss",
        ),
        "it needs more faults than the short search has",
    )
    | dict.fromkeys(
        ("a lease of the old layout is extended beyond the moment", "a lease of the new layout begins before the moment"),
        "no layout of the search is changed",
    )
)

# Mutants with the tests that must fail.
FOUND_BY_TESTS = [
    (
        "the longest window is not kept in the meta record",
        "            return Ok(Some(Swap::of_meta(loaded.server.clone(), Some(text.clone()), longer.to_string(), i64::MAX)));\n",
        (
            "            self.incarnation = Some(Incarnation { text: text.clone(), meta: longer, era, clock: loaded.time_ms.is_some(), has_lost_writes: false });\n"
            "            return Ok(None);\n"
        ),
        "lease::simulation::directed::no_lease_begins_below_a_bound_that_a_longer_window_allowed",
    ),
    (
        "numbers of the new layout are leased while its plan is closed",
        "        if !era.is_open || self.held.is_none()",
        "        if self.held.is_none()",
        "lease::simulation::changes",
    ),
    (
        "a change is cancelled although numbers of the new layout are leased",
        "_ if has_later => Eras { is_open: true, ..eras },",
        '_ if has_later => Eras { next: "", ..eras },',
        "lease::change",
    ),
    (
        "a moment is moved although numbers of the new layout are leased",
        "_ if has_later => Eras { is_open: true, ..eras },",
        "_ if has_later => Eras { is_open: true, at_ms: eras.at_ms + 3 * meta.reach_ms(), ..eras },",
        "lease::change",
    ),
    (
        "texts of the record return after a cancelled change",
        "changed.text(draw)",
        "changed.text(u64::from(changed.next.is_empty()))",
        "lease::simulation::changes",
    ),
    (
        "the moment of a change is not above the bounds",
        "        at_ms = at_ms.max(end_ms);\n",
        "        at_ms = at_ms.max(end_ms.min(0));\n",
        "lease::simulation::changes",
    ),
    (
        "the moment of a change is not above released numbers",
        "        at_ms = at_ms.max(end_ms);\n",
        '        at_ms = if text.starts_with("1 free") { at_ms } else { at_ms.max(end_ms) };\n',
        "lease::change",
    ),
    (
        "pages that were read before a plan was written count",
        "if (&before.meta, &before.server) != (&loaded.meta, &loaded.server) {",
        "if before.server != loaded.server {",
        "lease::change",
    ),
    (
        "a clock decides that a plan is a fact",
        "meta.next().filter(|_| has_later(&meta))",
        "meta.next().filter(|next| has_later(&meta) || next.eras().from_ms < loaded.time_ms.unwrap_or(machine_ms))",
        "lease::change",
    ),
    (
        "the store confirms a lease of the new layout before the moment",
        ".unwrap_or(i64::MIN)).max(era.from_ms);",
        ".unwrap_or(i64::MIN));",
        "lease::simulation::changes",
    ),
    (
        "a plan may be written when its moment has passed",
        "new.to_string(), latest_ms)))",
        "new.to_string(), latest_ms.max(i64::MAX))))",
        "lease::simulation::changes",
    ),
    (
        "IDs of the new layout are not compared with those of the old one",
        "time(old) == time(new) || new.min_id",
        "time(old) != time(new) || new.min_id",
        "lease::change",
    ),
    (
        "a holder whose era is gone keeps its lease",
        "ErrorKind::LayoutMismatch if self.held.is_some() => {",
        "ErrorKind::LayoutMismatch if self.held.is_some() && self.terms.disposable => {",
        "lease::simulation::changes",
    ),
    (
        "a validity of counts is longer than its tick",
        "(rate - rate / MARGIN)",
        "(rate + rate / MARGIN)",
        "clock::tests::while_a_validity_lasts",
    ),
    (
        "a validity outlives its tick",
        ".saturating_sub(reading.ns);",
        ".saturating_sub(0 & reading.ns);",
        "clock::tests::while_a_validity",
    ),
    ("a validity lasts for more than 1 ms", "ns.min(LONGEST_NS)", "ns.max(LONGEST_NS)", "clock::tests::validity_ends"),
    (
        "a counter that went back is believed",
        ".wrapping_sub(self.0 >> Self::UNIT)",
        ".saturating_sub(self.0 >> Self::UNIT)",
        "clock::",
    ),
    (
        "a rate that has changed is believed",
        "    if rate != 0 && counts.abs_diff",
        "    if rate == 1 && counts.abs_diff",
        "clock::",
    ),
    (
        "a rate is measured across a step back",
        "if now.count < last.count {",
        "if now.count < last.count && rate == 1 {",
        "clock::",
    ),
    (
        "the first measurement of a rate is believed",
        "self.is_confirmed = self.rate != 0,",
        "self.is_confirmed = true,",
        "clock::",
    ),
    (
        "a rate of long ago is believed",
        "Said::TooLate => self.is_confirmed = false,",
        "Said::TooLate => {}",
        "clock::",
    ),
    (
        "a rate of long ago is believed while another thread measures",
        "if is_recent { self.rate",
        "if is_recent || now > self.begin { self.rate",
        "clock::",
    ),
    (
        "a counter that differs between cores is believed",
        "if self.is_confirmed && is_right {",
        "if self.is_confirmed && (is_right || rate > 0) {",
        "clock::",
    ),
    (
        "a counter that the kernel has found wrong is believed",
        "|| lists_it())",
        "|| lists_it() || available.is_ascii())",
        "clock::",
    ),
    (
        "a slot is read while it is used anew",
        "(self.begun.load(Ordering::Acquire) == done).then_some",
        "(self.begun.load(Ordering::Acquire) <= done | GENERATION).then_some",
        "loom_blocks",
    ),
    (
        "what was read of a slot is used for the step of another generation",
        "word.wrapping_sub(self.word)",
        "(word & INDEX)",
        "loom_blocks",
    ),
    (
        "a forked child begins the generation that its parent was about to put",
        "(self.slot.begun.load(Ordering::Acquire) + 1)",
        "((self.word.load(Ordering::Acquire) >> INDEX_BITS) + 1)",
        "loom_block_that_a_parent",
    ),
    (
        "a forked child takes of its parent's block",
        "mark.is(process) || is_still(mark, process)",
        "process > 0",
        "prefetch::current",
    ),
    ("numbers are taken from beyond the end", "most.min(content.count - at)", "most", "prefetch::current"),
    (
        "a batch is stamped with a tick that is over",
        "        if !shows(validity) {\n            return None;",
        "        if !shows(validity) && most == 0 {\n            return None;",
        "generator::lease",
    ),
    ("a batch goes beyond the gate", "let count = most.min(left);", "let count = most.max(1);", "loom_batches"),
    (
        "a single stamp goes beyond the gate",
        "if stamp <= self.gate.last.load(Ordering::Acquire) {",
        "if stamp <= self.bound() {",
        "loom_gate",
    ),
    (
        "a worker of a copy takes its original's reply",
        "if process.is_over() {\n            return;",
        "if process.number == 0 {\n            return;",
        "copy_ignores_calls_of_its_original",
    ),
    (
        "a holder draws nothing from the system before a renewal",
        "if now.mono_ms >= self.protocol.wake_ms() {",
        "if self.protocol.grant().is_none() {",
        "cases::copies_of_a_machine",
    ),
    (
        "a lease of a layout that came back ends with an error",
        "if !self.establish(loaded, now_ms).is_err_and(",
        "if self.held.is_some() && !self.establish(loaded, now_ms).is_err_and(",
        "era::tests::layout_that_came_back",
    ),
    (
        "a copy keeps its original's number",
        "let is_copied = restored || last != UNKNOWN && generation.is_some_and(|generation| generation != last);",
        "let is_copied = restored;",
        "loom_old_number",
    ),
    (
        "random bytes survive a fork",
        "|| !self.is_of_this_process() {",
        "|| false {",
        "interop::random",
    ),
    (
        "random bytes outlive their millisecond",
        "self.now.has_passed() || !self",
        "self.at == 0 || !self",
        "interop::random",
    ),
    (
        "a gate may be opened after the thread that shows a later tick has closed it",
        "if self.seen.fetch_max(now, Ordering::SeqCst) > now.max(seen) {",
        "if self.seen.fetch_max(now, Ordering::Relaxed) > now.max(seen) {",
        "loom_later_tick_closes",
    ),
    (
        "the thread that opens a gate reads an old tick",
        "if self.seen.fetch_max(now, Ordering::SeqCst) > now.max(seen) {",
        "if self.seen.load(Ordering::SeqCst) > now.max(seen) {",
        "loom_later_tick_closes",
    ),
    (
        "what a move skips is seen before the move",
        "self.0.skipped.fetch_add(stamps, Ordering::AcqRel);",
        "self.0.skipped.fetch_add(stamps, Ordering::Relaxed);",
        "loom_move_under_way",
    ),
    (
        "who sees what a move skips does not see the move",
        "let skipped = self.skipped.load(Ordering::Acquire);",
        "let skipped = self.skipped.load(Ordering::Relaxed);",
        "loom_move_under_way",
    ),
    (
        "threads of a forked child take two numbers",
        "while !try_lock(0) {",
        "while !try_lock(0) && pid == 0 {",
        "loom_threads_of_a_child_take",
    ),
    (
        "a thread of a forked child wipes the number that another one has taken",
        "compare_exchange(number, 0,",
        "compare_exchange(self.0.number.load(Ordering::Acquire), 0,",
        "loom_child_does_not_take",
    ),
    (
        "a value of a process is used before it is made",
        "(inherited, mine, Ordering::AcqRel, Ordering::Acquire)",
        "(inherited, mine, Ordering::Relaxed, Ordering::Acquire)",
        "loom_threads_that_are_first",
    ),
    (
        "a forked child uses its parent's value",
        "Some(made) if !mark().is_child_of(made.number) =>",
        "Some(made) if made.number > 0 =>",
        "loom_threads_of_a_child_get",
    ),
    (
        "an old rate is seen with a new time",
        ".as_nanos() as u64, Ordering::Release);",
        ".as_nanos() as u64, Ordering::Relaxed);",
        "loom_rate_that",
    ),
    (
        "the thread that looks at calls leaves one that has just come",
        "                state.staffed = false;\n",
        "                drop(state);\n                self.lock().staffed = false;\n",
        "loom_call_added",
    ),
    (
        "a call that was given up is looked at for ever",
        "if self.bell.cancelled.load(Ordering::Acquire) {",
        "if self.bell.cancelled.load(Ordering::Acquire) && self.bell.process == 0 {",
        "loom_cancelled_call",
    ),
    (
        "a lost lease is used to its bound",
        "if *token == loss.token => shared.generator.lease.freeze(owner),",
        "if *token == loss.token => Some((owner, shared.generator.lease.get().next()).1),",
        "cases::lease_whose_record_was_removed",
    ),
    (
        "a record that another process wrote before the bound had passed is taken for a later one",
        "(held.version + 1..held.version.saturating_add(following)).contains(&slot.version)",
        "slot.version > 0",
        "cases::removed_record_is_noted_also_after",
    ),
    (
        "a number that was renewed for months is taken for a restored one",
        ".saturating_mul(VERSION_STEP).max(FOLLOWING);",
        ".saturating_mul(VERSION_STEP).min(FOLLOWING);",
        "restored::number_that_was_renewed_for_months",
    ),
    (
        "a namespace that was begun anew is taken for one with a floor",
        "is_some_and(|floor_ms| floor_ms >= self.end_ms(held.grant.bound))",
        "is_none_or(|floor_ms| floor_ms >= self.end_ms(held.grant.bound))",
        "cases::namespace_that_was_removed",
    ),
    (
        "a lease is used whose record a store without a clock has lost",
        "error.kind() == ErrorKind::StoreChanged && is_gone",
        "error.kind() == ErrorKind::Internal && is_gone",
        "cases::lease_that_a_store_without_a_clock_has_lost",
    ),
    (
        "a draw that has nothing open says that all numbers are held",
        "            Look::Draw(_) => {",
        "            Look::Draw(_) if records.slots.len() > 1 => self.choose_last(&records, loaded.time_ms, now),\n            Look::Draw(_) => {",
        "starts::last_free_number",
    ),
    (
        "a part of a scan says that all numbers are held",
        "self.done >= candidates.count()",
        "self.done >= FEW.min(candidates.count())",
        "starts::no_free_node_only_after",
    ),
    (
        "a sample convicts a clock",
        "Look::Draw(_) | Look::Scan(_) => false,",
        "Look::Draw(_) | Look::Scan(_) => now.tick > 0,",
        "starts::sparse_namespace",
    ),
    (
        "one page convicts a clock",
        "loaded.next.filter(|next| !acquitted && *next > survey.next)",
        "loaded.next.filter(|next| !acquitted && *next < survey.next)",
        "starts::sparse_namespace",
    ),
    (
        "an old lease acquits a clock",
        "survey.highest.is_some_and(|highest| now.tick <= highest +",
        "survey.highest.is_some_and(|highest| highest > 0 || now.tick <= highest +",
        "starts::clock_far_ahead",
    ),
    (
        "processes that start at once want the same number again and again",
        "+ RISE * lost.min(u64::BITS)",
        "+ RISE * lost.min(0)",
        "starts::thousand_starts_at_once",
    ),
    (
        "a lease is given up before the call that waits for it has seen it",
        "is_coming && self.is_sought()",
        "is_coming && self.requests.is_empty()",
        "cases::repeated_release_node",
    ),
    (
        "a failure reaches none of the calls that wait",
        "wish.seeks().then(|| Err(error.clone()))",
        "(wish.seeks() && error.kind() == ErrorKind::Closed).then(|| Err(error.clone()))",
        "cases::waiting_caller_gets_the_error",
    ),
    (
        "an answer wakes nobody",
        "request.waker.wake_by_ref()",
        "drop(request.waker.clone())",
        "request::tests::request_is_answered_once",
    ),
]

SHORT = [
    "a slot is released without the freeze",
    "a forked child mints with its parent's lease",
    "two workers of a store, and any of them moves a bound on",
    "a reply to several calls is given to the wrong one",
    "timed-out write taken as success",
    "any record with our token confirms",
    "a bound is used before it is confirmed",
    "the first stamp may be the old bound",
    "a lost lease is still renewed",
    "an incarnation is its nonce alone",
    "a slot is released with a stamp too few",
    "the store compares only the token",
    "no cap",
    "no floor",
    "a holder continues after a loss without a limit of time",
    "a new incarnation goes unnoticed",
]


DUPLICATE = re.compile(r"^(?:seed (?P<seed>\d+): )?duplicate on node \d+", re.MULTILINE)
RAN = re.compile(r"^test result: (ok|FAILED)\. (\d+) passed;", re.MULTILINE)
FAILED = re.compile(r"^    (\S+)$", re.MULTILINE)


def build(copy: Path, arguments: list[str], environment: dict[str, str]) -> list[str]:
    """Compiles the tests of the libraries, and returns their programs."""
    command = [*CARGO, *arguments]
    # stderr is captured, because the compiler warns of code that a bug leaves unused.
    run = subprocess.run(command, check=False, cwd=copy, env=ENVIRONMENT | environment, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit("the library with its planted bugs does not compile:\n" + run.stderr[-4000:])
    return [message["executable"] for message in map(json.loads, run.stdout.splitlines()) if message.get("executable")]


def holder(programs: list[str], tests: str) -> str:
    """Returns the program that contains these tests."""
    for program in programs:
        listed = subprocess.run([program, "--list", tests], capture_output=True, text=True, check=True).stdout
        if ": test" in listed:
            return program
    sys.exit(f"no program has a test {tests}")


class Ended(NamedTuple):
    """The outcome of a test program."""

    status: int
    said: str
    acted: bool
    """True if code of the planted bug ran."""


def run(program: str, number: int, *arguments: str, end: re.Pattern | None = None, **environment: str) -> Ended:
    """Runs a test program with this bug active, or with none for 0. A line that matches `end` ends it at once."""
    with tempfile.TemporaryDirectory() as folder:
        acts = Path(folder, "acts")
        variables = {"FRAZIL_PLANTED": str(number), "FRAZIL_PLANTED_ACTS": str(acts)} | environment
        said = []
        with contextlib.ExitStack() as ends:
            with signals_later():
                tests = subprocess.Popen(
                    [program, *arguments],
                    cwd=TARGET / "source" / "core",
                    env={name: value for name, value in ENVIRONMENT.items() if not name.startswith("FRAZIL")} | variables,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
                end_all = partial(kill, tests.pid)
                late = threading.Timer(TIMEOUT_S, end_all)
                late.start()
                for end_it in (tests.stdout.close, tests.wait, end_all, late.cancel):
                    ends.callback(end_it)
            for line in tests.stdout:
                said.append(line)
                if end and end.match(line):
                    end_all()
            # WNOWAIT keeps the process ID reserved until everything is killed.
            os.waitid(os.P_PID, tests.pid, os.WEXITED | os.WNOWAIT)
        return Ended(tests.returncode, "".join(said), acts.exists())


def kill(session: int) -> None:
    """Kills a program and everything that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def passes(ended: Ended) -> bool:
    """Returns whether tests ran, no bug was active in them, and all passed."""
    results = RAN.findall(ended.said)
    return ended.status == 0 and not ended.acted and bool(results) and results[-1][0] == "ok" and results[-1][1] != "0"


def failed_test(ended: Ended, tests: str) -> str | None:
    """Returns the test that caught a bug: an expected one that failed in a program that ran to its end with the bug active."""
    results = RAN.findall(ended.said)
    if ended.status <= 0 or not ended.acted or not results or results[-1][0] != "FAILED":
        return None
    return next((name for name in FAILED.findall(ended.said.rpartition("\nfailures:\n")[2]) if tests in name), None)


def duplicate(program: str, ended: Ended) -> str | None:
    """Returns the duplicate that shows a bug of the protocol. Without the bug, the same seed must have no duplicate."""
    found = DUPLICATE.search(ended.said)
    if not found or not ended.acted:
        return None
    if found["seed"]:
        same = run(program, 0, "simulation::no_stamp_is_minted_twice", FRAZIL_SEED=found["seed"], FRAZIL_ONLY_DUPLICATES="1")
        if not passes(same):
            sys.exit(f"seed {found['seed']} of the simulation fails without a mutant:\n{same.said[-4000:]}")
    return found[0]


def harness(main: Callable[[], int]) -> int:
    """Returns what `main` returns. Returns 3 if the harness failed: after an exception, or if it ends with a text."""
    try:
        return main()
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        print(end.code, file=sys.stderr)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    return 3


def end_on_signals() -> None:
    """Makes SIGTERM and SIGHUP end this program by an exit, which also ends what it has started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextlib.contextmanager
def signals_later() -> Iterator[None]:
    """Delays signals while a program starts, until this program can end it."""
    came = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number)) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def changes(planted: list, chosen: list) -> list[list[tuple[str, str]]]:
    """Returns the changes of these mutants in the form that `switched.plant` takes."""
    return [[(old, new)] for _, old, new, _ in planted] + [change[0] if len(change) == 1 else [tuple(change)] for _, *change in chosen]


def copied(name: str, bugs: list[list[tuple[str, str]]]) -> Path:
    """Copies the sources into a folder of `TARGET`, plants bugs into the copy, and returns the folder."""
    copy = TARGET / name
    shutil.rmtree(copy, ignore_errors=True)
    ignore = shutil.ignore_patterns("target", "node_modules", "*.node", "*.so")
    for folder in ["core", "cli", "python", "node", "c-api", "server", "include"]:
        # The copies have new times, because cargo would treat older files as unchanged.
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignore, copy_function=shutil.copy)
    for file in ["Cargo.toml", "Cargo.lock", "README.md"]:
        shutil.copy2(ROOT / file, copy / file)
    switched.plant([copy / source for source in SOURCES], bugs)
    return copy


def main() -> int:
    end_on_signals()
    known = {mutant[0] for mutant in [*MUTANTS, *FOUND_BY_TESTS]}
    names = set(SHORT if sys.argv[1:] == ["--short"] else sys.argv[1:]) - {"--exhaustive"}
    if sys.argv[1:2] == ["--matching"]:
        pattern = " ".join(sys.argv[2:])
        names = {name for name in known if pattern in name} or sys.exit(
            f"no mutant's name holds {pattern!r}; there are: {', '.join(known)}"
        )
    if names - known:
        sys.exit(f"no such mutant: {', '.join(names - known)}; there are: {', '.join(known)}")
    protocols = "simulation"
    if sys.argv[1:] == ["--exhaustive"]:
        protocols, names = EXHAUSTIVE, {mutant[0] for mutant in MUTANTS} - set(BEYOND_EXHAUSTIVE)
        for name, why in BEYOND_EXHAUSTIVE.items():
            print(f"beyond the search: {name}: {why}")
    chosen = [mutant for mutant in MUTANTS if not names or mutant[0] in names]
    planted = [mutant for mutant in FOUND_BY_TESTS if not names or sys.argv[1:] == ["--short"] or mutant[0] in names]
    since = time.monotonic()
    try:
        copy = copied("source", changes(planted, chosen))
    except switched.CannotPlant as error:
        sys.exit(f"{error}: fix the list in {Path(__file__).name}")

    programs = build(copy, OPTIMISED, {})
    loom = [mutant for mutant in planted if mutant[-1].startswith("loom")]
    loom_programs = build(copy, [], {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(TARGET.parent / "loom")}) if loom else []
    holders = {mutant[-1]: holder(loom_programs if mutant in loom else programs, mutant[-1]) for mutant in planted}
    simulation = holder(programs, protocols) if chosen else ""
    unchanged = [(simulation, protocols)] if chosen else []
    unchanged += sorted((program, tests) for tests, program in holders.items())
    for of, tests in unchanged:
        ended = run(of, 0, tests)
        if not passes(ended):
            sys.exit(f"{tests} fails without a mutant, or there is no such test:\n{ended.said[-4000:]}")
    failed = 0
    for number, (name, *_) in enumerate([*planted, *chosen], 1):
        if number <= len(planted):
            mutant = planted[number - 1]
            tests = mutant[-1]
            ended = run(holders[tests], number, tests)
            found, why = failed_test(ended, tests), f"no test of {tests} fails"
        else:
            ended = run(simulation, number, protocols, "--nocapture", end=DUPLICATE, FRAZIL_SEEDS=SEEDS, FRAZIL_ONLY_DUPLICATES="1")
            found = duplicate(simulation, ended)
            why = f"survived {SEEDS} seeds" if ended.status == 0 else f"failed, but not with a duplicate, or took more than {TIMEOUT_S} s"
        if found:
            print(f"caught  {name} ({found})", flush=True)
        else:
            failed += 1
            print(f"MISSED  {name}: {why if ended.acted else 'its code does not run'}:\n{ended.said[-2000:]}", flush=True)
    all = len(chosen) + len(planted)
    print(f"{all - failed} of {all} mutants caught in {time.monotonic() - since:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(harness(main))
