//! Faults.

use super::*;

impl World {
    pub(super) fn fault(&mut self) {
        if self.calm || self.faults == self.most_faults {
            return;
        }
        self.faults += 1;
        let at = self.random.usize(..self.processes.len());
        let id = self.processes[at].id;
        let (reach_ms, some) = (self.reach_ms, self.random.u64(..self.reach_ms * 3 / 2));
        match self.random.u8(..20) {
            0..4 => {
                let most = [10, 1_000, reach_ms as i64 / 2, reach_ms as i64, 5 * HOUR_MS][self.random.usize(..5)];
                let jump = self.random.i64(-most..=most);
                // Half of the jumps set a wrong clock right.
                let before = self.processes[at].offset_ms;
                let offset_ms = &mut self.processes[at].offset_ms;
                *offset_ms = if jump & 1 == 0 && *offset_ms != 0 { 0 } else { (*offset_ms + jump).clamp(-9 * HOUR_MS, 9 * HOUR_MS) };
                let offset_ms = *offset_ms;
                self.note_crossings(at, before, offset_ms);
                self.note(|| format!("p{id}'s clock is {offset_ms} ms off"));
                self.wake_in(at, 0);
            }
            4..8 => {
                self.processes[at].paused_until = self.at + some;
                let until = self.true_ms() + self.processes[at].offset_ms + some as i64;
                self.reached.note_if(self.end_ms(at).is_some_and(|end| end < until), State::PausedAcrossBound);
                self.note(|| format!("p{id} is paused for {some}"));
            }
            8..10 if !self.is_usher(at) => {
                self.crash(at);
            }
            10 if !self.store.forgets() && !self.restores && self.random.bool() => self.clone_machine(at),
            10 if self.random.bool() => self.clone_noticed(at),
            10 => {
                if self.processes.len() < MOST_PROCESSES {
                    self.starts += 1;
                    let process = &self.processes[at];
                    self.reached.note_if(process.is_asking() && process.grant().is_some(), State::ForkDuringRenewal);
                    let child = process.fork(self.starts);
                    self.note(|| format!("p{id} forks p{}", child.id));
                    self.add(None, child, 0);
                }
            }
            11..14 => {
                let away = if self.random.bool() { 0 } else { some };
                self.give_up(at, away);
            }
            15..18 if self.store.forgets() => self.story(at),
            14 => {
                self.store.reachable = false;
                self.note(|| format!("the store is away for {some}"));
                self.plan(some, Event::Back);
            }
            _ => self.loss(),
        }
        let next = self.random.u64(..self.reach_ms / 3);
        self.plan(next, Event::Fault);
    }

    pub(super) fn crash(&mut self, at: usize) {
        let process = &self.processes[at];
        let (id, contract, also, offset_ms) = (process.id, process.contract.clone(), process.also.clone(), process.offset_ms);
        self.reached.note_if(process.is_asking(), State::CrashDuringCall);
        self.note(|| format!("p{id} crashes"));
        let seed = self.random.u64(..);
        let in_ms = self.random.u64(..=contract.terms.renew_ms);
        self.start(Some(at), contract, also, seed, offset_ms, in_ms);
    }

    /// Closes all handles of a process, and opens another one after `away` milliseconds.
    fn give_up(&mut self, at: usize, away: u64) {
        if self.paused(at).is_some() || self.is_usher(at) {
            return;
        }
        self.set_clocks(at);
        let back_at = self.at + away;
        let program = &mut self.processes[at];
        program.back_at = back_at;
        program.close_all();
        let id = program.id;
        self.note(|| format!("p{id} closes all handles, and comes back at {back_at}"));
        self.wake_in(at, 0);
    }

    /// Makes the store lose writes, as far as its kind allows.
    fn loss(&mut self) {
        let skew_ms = self.random.i64(-SKEW_MS..=SKEW_MS);
        let (what, few) = (self.random.u8(..6), self.random.usize(..12));
        match (self.store.kind, what) {
            (_, 0 | 1) => self.store.snapshot(),
            (Kind::Lossy | Kind::Promoted, 2 | 3) => {
                self.note(|| format!("a server without the last {few} writes takes over"));
                self.store.restart_without(few, skew_ms);
                self.hasten();
            }
            (Kind::Lossy | Kind::Promoted, 4) => {
                self.note(|| "a stale server takes over".to_owned());
                self.store.fail_over(few, skew_ms);
                self.hasten();
            }
            (Kind::Lossy, 5) if !self.store.keeps_meta => self.wipe(),
            (Kind::Clocked, 2 | 3) if self.restores => self.restore(few),
            _ => {}
        }
    }

    /// Restores a backup in place.
    fn restore(&mut self, which: usize) {
        let Some(backup) = self.store.backup(which) else { return };
        self.note(|| "a backup is restored".to_owned());
        self.reached.note_if(self.has_holder(), State::RestoredUnderHolder);
        let before = self.store.slots().clone();
        self.store.put_back(backup);
        let token = |(node, text): (&u64, &String)| Slot::parse(*node, text).map(|slot| slot.token).ok();
        let is_another = |slot: &(&u64, &String)| before.get(slot.0).and_then(|text| token((slot.0, text))) != token(*slot);
        self.revived.extend(self.store.slots().iter().filter(is_another).filter_map(token));
        self.went_back = true;
        self.hasten();
    }

    fn has_holder(&self) -> bool {
        self.processes.iter().any(|process| process.grant().is_some())
    }

    /// The end of the process's first lease, by its own clock.
    fn end_ms(&self, at: usize) -> Option<i64> {
        let process = &self.processes[at];
        process.grant().map(|grant| process.start_ms(grant.bound))
    }

    fn note_crossings(&mut self, at: usize, before: i64, after: i64) {
        let Some(end) = self.end_ms(at) else { return };
        let (was_over, is_over) = (self.true_ms() + before > end, self.true_ms() + after > end);
        self.reached.note_if(!was_over && is_over, State::BoundCrossedAhead);
        self.reached.note_if(was_over && !is_over, State::BoundCrossedBack);
    }

    pub(super) fn note_second_owner(&mut self, swap: &Swap) {
        let Key::Slot(node) = swap.key else { return };
        let token = |text: &String| Slot::parse(node, text).map(|slot| slot.token).ok();
        let (old, new) = (swap.old.as_ref().and_then(token), token(&swap.new));
        let has = |process: &Program| process.grants().iter().any(|grant| Some(grant.token) == old);
        self.reached.note_if(old != new && self.processes.iter().any(has), State::SecondOwner);
    }

    pub(super) fn wrote(&mut self, call: u64, from: usize, swap: &Swap) {
        if swap.old.is_none() {
            self.tempt(swap.key);
        }
        let Key::Slot(node) = swap.key else {
            // A holder whose record is missing begins another incarnation, with a `since`.
            let since_ms = |text: &String| Meta::parse(text).map_or(0, |meta| meta.since_ms);
            self.went_back &= [0, swap.old.as_ref().map_or(0, since_ms)].contains(&since_ms(&swap.new));
            return;
        };
        // A late write may come from a process that has crashed since.
        let process = &self.processes[from];
        if process.threads.iter().any(|thread| thread.batch.as_ref().is_some_and(|batch| batch.place(call).is_some())) {
            // The process that should notice the server's return did not notice it.
            self.first_to_notice.take_if(|(first_to_notice, _)| *first_to_notice == process.id);
        }
        let token = |text: &String| Slot::parse(node, text).map(|slot| slot.token).ok();
        let Some(new) = token(&swap.new) else { return };
        if self.went_back && (swap.old.as_ref().and_then(token) != Some(new) || self.revived.contains(&new)) {
            self.excused.insert(new);
        }
        self.note_era(new, node);
        let again = !self.tokens.insert(new) && swap.old.as_ref().and_then(token) != Some(new);
        self.reclaimed += u64::from(again);
    }

    /// Returns whether a process notices a server's return before all others. It can while it has a
    /// lease.
    pub(super) fn is_usher(&self, at: usize) -> bool {
        self.first_to_notice.as_ref().is_some_and(|(first_to_notice, _)| *first_to_notice == self.processes[at].id)
    }

    /// Returns whether a call gets through.
    pub(super) fn admits(&self, from: usize) -> bool {
        let is_current = |meta: &String| self.store.meta() == Some(meta);
        self.first_to_notice.as_ref().is_none_or(|(id, meta)| !is_current(meta) || self.processes[from].id == *id)
    }

    /// Plans a FLUSHALL if a record was made and another process is about to make the same one,
    /// because it is most harmful then.
    fn tempt(&mut self, key: Key) {
        let rival = |event: &Event| matches!(event, Event::Arrive { what: Do::Swap(swap), .. } if swap.key == key && swap.old.is_none());
        let may = self.store.kind == Kind::Lossy && !self.store.keeps_meta && !self.calm && self.random.u8(..4) == 0;
        if may && self.queue.values().any(rival) {
            self.plan(0, Event::Turn(Turn::Wipe));
        }
    }

    fn wipe(&mut self) {
        self.note(|| "FLUSHALL".to_owned());
        self.reached.note_if(self.has_holder(), State::WipedUnderHolder);
        self.store.wipe();
        self.hasten();
    }

    /// Delivers a call that was sent long ago.
    fn hasten(&mut self) {
        if self.random.bool() {
            return;
        }
        let late: Vec<_> = self.queue.iter().filter(|(_, event)| matches!(event, Event::Arrive { .. })).map(|(key, _)| *key).collect();
        for key in late {
            let event = self.queue.remove(&key).expect("just found");
            self.plan(0, event);
        }
    }

    /// Plays a story. A process is paused while another may take its slot. Then the store forgets
    /// that, and the paused process is the first to continue. Or the store is lost or wiped twice.
    fn story(&mut self, at: usize) {
        if self.processes[at].grant().is_none() || self.paused(at).is_some() {
            return;
        }
        if self.store.kind == Kind::Lossy && !self.store.keeps_meta && self.random.u8(..3) == 0 {
            // A call that is sent between the two wipes may arrive after both.
            self.wipe();
            let again = self.reach_ms + self.random.u64(..2 * self.reach_ms);
            self.plan(again, Event::Turn(Turn::Wipe));
            return;
        }
        let (few, skew_ms) = (self.random.usize(..5), self.random.i64(-SKEW_MS..=SKEW_MS));
        let away = self.random.u64(..self.reach_ms * 2);
        let far = self.processes[at].contract.terms.ahead_ticks * self.processes[at].contract.terms.layout.tick_ms() > 5_000;
        match self.random.u8(..if far { 8 } else { 4 }) {
            0 => {
                self.note(|| "a replica is promoted, and the primary may come back".to_owned());
                self.store.promote(few, skew_ms);
                self.hasten();
                return self.plan(away, Event::Turn(Turn::GoBack));
            }
            1 => return self.plan(0, Event::Turn(Turn::Again { left: few as u32 })),
            _ => {}
        }
        let (id, saved) = (self.processes[at].id, self.store.save());
        if far || self.random.bool() {
            self.note(|| format!("p{id} will extend, and then lose the store twice"));
            self.plan(self.reach_ms, Event::Turn(Turn::Ahead { at, saved }));
            return;
        }
        let away = self.random.u64(..self.reach_ms * 3 / 2);
        let ahead = self.random.bool();
        self.note(|| format!("p{id} is paused for {away}, and will find the store as it is now; others ahead {ahead}"));
        self.processes[at].paused_until = self.at + away;
        for other in (0..self.processes.len()).filter(|other| ahead && *other != at) {
            self.processes[other].offset_ms = self.processes[other].contract.terms.allowance_ms as i64 * 9 / 10;
            self.wake_in(other, 1);
        }
        self.plan(away, Event::Turn(Turn::Revive { at, saved: Some(saved) }));
    }

    pub(super) fn turn(&mut self, turn: Turn) {
        let skew_ms = self.random.i64(-SKEW_MS..=SKEW_MS);
        if self.calm {
            return;
        }
        match turn {
            Turn::Revive { at, saved } => {
                let id = self.processes[at].id;
                self.note(|| format!("p{id} continues; the store is as before {}", saved.is_some()));
                if let Some(saved) = saved {
                    self.store.restore(saved, skew_ms);
                    self.hasten();
                }
                self.processes[at].paused_until = 0;
                let in_ms = self.random.u64(..=LATENCY_MS);
                self.wake_in(at, in_ms);
            }
            Turn::Wipe => self.wipe(),
            Turn::Again { left } => {
                let few = self.random.usize(..12);
                self.note(|| format!("a server without the last {few} writes takes over, {left} more will"));
                self.store.restart_without(few, skew_ms);
                self.hasten();
                let again = self.random.u64(..self.reach_ms / 2);
                if left > 0 {
                    self.plan(again, Event::Turn(Turn::Again { left: left - 1 }));
                }
            }
            Turn::GoBack => self.go_back(),
            Turn::Ahead { at, saved } => {
                // Its stamps may already be ahead of its clock. Together both are ahead by a little
                // less than A.
                let terms = &self.processes[at].contract.terms;
                let stamps_ms = terms.ahead_ticks * terms.layout.tick_ms();
                self.processes[at].offset_ms = if stamps_ms > 5_000 { 800 } else { terms.allowance_ms as i64 - 1_200 };
                let renew_ms = self.processes[at].contract.terms.renew_ms;
                self.plan(renew_ms * 3 / 2, Event::Turn(Turn::Lose { at, saved }));
            }
            Turn::Lose { at, saved } => {
                self.note(|| "the store is as before, and may be again".to_owned());
                self.store.restore(saved.clone(), skew_ms);
                // Running processes continue, and starting ones look for a number.
                for other in (0..self.processes.len()).filter(|other| *other != at) {
                    if self.first_to_notice.is_none() && self.random.bool() {
                        self.crash(other);
                    }
                }
                let terms = &self.processes[at].contract.terms;
                let away = terms.window_ms + self.random.u64(2_000..=terms.allowance_ms.max(2_000));
                self.processes[at].paused_until = self.at + away;
                let saved = self.random.bool().then_some(saved);
                self.plan(away, Event::Turn(Turn::Revive { at, saved }));
            }
        }
    }

    /// Makes the replaced server answer again, first to a process that knows the present
    /// incarnation, if there is one.
    fn go_back(&mut self) {
        let knows = |process: &&Program| process.handles() > 0 && process.knows(self.store.meta());
        let knowing: Vec<_> = self.processes.iter().filter(knows).map(|process| process.id).collect();
        // Until an incarnation is begun on the present server, no process knows it.
        let known = self.store.is_begun() && !knowing.is_empty();
        let ushered = (0..self.processes.len()).any(|at| !self.admits(at));
        if !known || ushered || !self.store.go_back() {
            return;
        }
        self.reached.note(State::ServerCameBack);
        let first = knowing[self.random.usize(..knowing.len())];
        self.note(|| format!("the server before answers again, as it was, and first to p{first}"));
        self.first_to_notice = self.store.meta().map(|meta| (first, meta.clone()));
        self.hasten();
        let again = self.random.u64(..self.reach_ms);
        if self.random.bool() {
            self.plan(again, Event::Turn(Turn::GoBack));
        }
    }

    /// Copies a running virtual machine. Both copies may issue the same stamps up to the bound, and
    /// no further. If the store also forgets writes, it may confirm to one copy what it has
    /// confirmed to the other.
    fn clone_machine(&mut self, at: usize) {
        let room = self.processes.len() < MOST_PROCESSES;
        let process = &mut self.processes[at];
        if !room || process.is_asking() || process.contract.terms.disposable || process.trouble().is_some() {
            return;
        }
        self.starts += 1;
        let (id, copy) = (process.id, process.copy(self.starts));
        let copied = copy.id;
        self.note(|| format!("p{id} is copied as p{copied}"));
        self.processes.push(copy);
        self.plan(1, Event::Act(self.processes.len() - 1));
        self.wake_in(self.processes.len() - 1, 1);
    }

    /// The copy also has its original's threads, and its calls in progress.
    fn clone_noticed(&mut self, at: usize) {
        if self.processes.len() == MOST_PROCESSES {
            return;
        }
        self.starts += 1;
        let process = &mut self.processes[at];
        let (id, copy) = (process.id, process.noticed_copy(self.starts));
        process.echoes.push(copy.1);
        self.reached.note_if(process.is_asking(), State::CopyDuringCall);
        let copy = copy.0;
        let copied = copy.id;
        self.note(|| format!("p{id} is copied as p{copied}, which notices it"));
        self.add(None, copy, 0);
    }
}
