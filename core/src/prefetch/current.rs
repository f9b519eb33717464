//! The numbers being used, taken one after the other by any number of threads.

use super::block::{Block, Taken};
use crate::fork::Mark;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;

/// The bits of a place in the word; those above are the generation.
const PLACE_BITS: u32 = 28;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
/// The bits of a generation that the word holds.
const GENERATION: u64 = u64::MAX >> PLACE_BITS;
/// The most numbers of a generation. Calls that find it used up move the place on, and it must not come round.
pub(super) const MOST: u64 = 1 << (PLACE_BITS - 2);
/// From this place on it is put back.
const FAR: u64 = 1 << (PLACE_BITS - 1);

/// One block after the other, each a *generation*. Taking a number is one step of the word, which holds the generation and the place of the
/// next number.
///
/// **The invariant.** A number is taken at most once, because its place in its generation is: places come from steps of one atomic
/// word, which within a generation only go up, and each place below `count` is one number.
///
/// **Why what is read of the slot belongs together.** Its generation stands there twice: `begun` is the first field to be stored and the last
/// to be loaded, `done` the last to be stored and the first to be loaded; all are stored with release and loaded with acquire. Whoever
/// has read a field of a later generation than `begun`'s would have read that one's `begun`, too; and whoever has read `done` reads no field
/// of an earlier generation. So where both are alike all is that generation's. The step counts only if it fell into the same one: else
/// its thread stood still meanwhile, and [`Past`] has the number. Only 36 bits of a generation are compared: to be deceived it would have
/// to stand still for 68,719,476,736 generations, or up to as many less as are remembered. That is more than half a day where each
/// lasts for a microsecond. No generation is begun twice, also not in a forked child, which may find the slot half changed, or changed and the
/// word not.
///
/// The slot is read before the step, because behind it every look waits for the step's result: 8.0 ns a number instead of 9.5, where a step alone
/// takes 6.0.
pub(super) struct Current {
    word: CachePadded<AtomicU64>,
    slot: CachePadded<Slot>,
}

#[derive(Default)]
struct Slot {
    begun: AtomicU64,
    /// A forked child, or a copy of the machine, has a copy, which it must not use.
    process: AtomicU64,
    first: AtomicU64,
    stride: AtomicU64,
    count: AtomicU64,
    low: AtomicU64,
    done: AtomicU64,
}

/// The content of a slot.
#[derive(Clone, Copy)]
struct Content {
    process: u64,
    /// The word's before the first number is taken: its generation, and place 0.
    word: u64,
    first: u64,
    stride: u64,
    count: u64,
    low: u64,
}

impl Slot {
    /// `None` where it is just being changed.
    #[inline(always)]
    fn content(&self) -> Option<Content> {
        let done = self.done.load(Ordering::Acquire);
        let content = Content {
            process: self.process.load(Ordering::Acquire),
            word: done << PLACE_BITS,
            first: self.first.load(Ordering::Acquire),
            stride: self.stride.load(Ordering::Acquire),
            count: self.count.load(Ordering::Acquire),
            low: self.low.load(Ordering::Acquire),
        };
        (self.begun.load(Ordering::Acquire) == done).then_some(content)
    }
}

impl Content {
    /// The place of a word, if one of this generation's numbers is there: a word of another one is far from it.
    #[inline(always)]
    fn place(self, word: u64) -> Option<u64> {
        let at = word.wrapping_sub(self.word);
        (at < self.count).then_some(at)
    }

    #[inline(always)]
    fn number(self, at: u64) -> u64 {
        self.first.wrapping_add(at.wrapping_mul(self.stride))
    }
}

impl Current {
    /// Nothing, and nobody's.
    pub(super) fn new() -> Self {
        Current { word: CachePadded::new(AtomicU64::new(0)), slot: CachePadded::default() }
    }

    /// Takes one number, and says whether its place is `low`; or returns the step that found none, for [`Past::find`]. Inlined, and in registers:
    /// on x86-64 a step waits for every store before it.
    #[inline(always)]
    pub(super) fn take_one(&self, mark: Mark) -> Result<(u64, bool), Option<Step>> {
        let Some(content) = self.slot.content() else { return Err(None) };
        let word = self.word.fetch_add(1, Ordering::AcqRel);
        if let Some(at) = content.place(word)
            // After the step: see `fork.rs`. Else it may be found by its step.
            && mark.is(content.process)
        {
            return Ok((content.number(at), at == content.low));
        }
        self.refused(word);
        Err(Some(Step(word)))
    }

    /// A step that found nothing, and has not to go so far that places come round.
    #[cold]
    fn refused(&self, word: u64) {
        if word & PLACE >= FAR {
            let back = |now: u64| (now >> PLACE_BITS == word >> PLACE_BITS).then_some(now & !PLACE | MOST);
            // Whoever moved it on meanwhile has put it back.
            let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, back);
        }
    }

    /// Takes 1 to `most` numbers, if there is one left. By compare-and-swap, which is slower and never goes beyond the end. `None` also where
    /// another block is just being put here.
    pub(super) fn take(&self, mark: Mark, most: u64) -> Option<Taken> {
        let content = self.slot.content()?;
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let at = content.place(word)?;
            let count = most.min(content.count - at);
            match self.word.compare_exchange_weak(word, word + count, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let low = (at..at + count).contains(&content.low);
                    return mark.is_still(content.process).then_some(Taken {
                        process: content.process,
                        first: content.number(at),
                        stride: content.stride,
                        count,
                        low,
                    });
                }
                Err(now) => word = now,
            }
        }
    }

    /// Puts another block in the place of this one; it has at most `MOST` numbers. One thread of a process at a time: whoever holds the
    /// lock of its buffer. Returns the generation, and how far the one before it had come.
    pub(super) fn replace(&self, process: u64, block: Block) -> (u64, Left) {
        debug_assert!(block.count <= MOST);
        // Not the one after the word's: a parent may have been about to put that when it forked, and the child's threads find its fields in the slot.
        let generation = (self.slot.begun.load(Ordering::Acquire) + 1) & GENERATION;
        self.store(process, block, generation, usize::MAX);
        (generation, Left(self.word.swap(generation << PLACE_BITS, Ordering::AcqRel)))
    }

    /// Returns how far the last block has come.
    pub(super) fn left(&self) -> Left {
        Left(self.word.load(Ordering::Acquire))
    }

    /// Stores a block in the slot, or the first fields of it.
    pub(super) fn store(&self, process: u64, block: Block, generation: u64, most: usize) {
        let slot = &self.slot;
        let fields = [
            (&slot.begun, generation),
            (&slot.process, process),
            (&slot.first, block.first),
            (&slot.stride, block.stride),
            (&slot.count, block.count),
            (&slot.low, block.low),
            (&slot.done, generation),
        ];
        for (field, value) in fields.into_iter().take(most) {
            field.store(value, Ordering::Release);
        }
    }

    /// Leaves nothing to be taken.
    pub(super) fn clear(&self) -> Left {
        self.replace(0, Block { first: 0, stride: 0, count: 0, low: u64::MAX, made_ms: i64::MIN }).1
    }
}

/// The position at which a block was left.
#[derive(Clone, Copy)]
pub(super) struct Left(u64);

impl Left {
    /// Returns how many of a generation's `count` numbers were taken: each place below the position is one number.
    pub(super) fn taken(self, generation: u64, count: u64) -> u64 {
        if self.0 >> PLACE_BITS == generation { (self.0 & PLACE).min(count) } else { 0 }
    }
}

/// A step that fell behind the end of a block, or into another one than its thread had read.
#[derive(Clone, Copy)]
pub(super) struct Step(u64);

/// The number of blocks remembered: others may use up as many while a thread that took a number is stopped.
const REMEMBERED: usize = 4096;

/// The blocks that were used last, for whoever looks late.
#[derive(Default)]
pub(super) struct Past(VecDeque<(u64, Block)>);

impl Past {
    pub(super) fn remember(&mut self, generation: u64, block: Block) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((generation, block));
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The number of a step, if it took one, and whether its place is `low`.
    pub(super) fn find(&self, step: Step) -> Option<(u64, bool)> {
        let (generation, at) = (step.0 >> PLACE_BITS, step.0 & PLACE);
        let (_, block) = self.0.iter().rev().find(|(of, _)| *of == generation)?;
        (at < block.count).then(|| (block.first + at * block.stride, at == block.low))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::fork;

    fn block(first: u64, count: u64) -> Block {
        Block { first, stride: 1, count, low: 1, made_ms: 0 }
    }

    impl Current {
        /// The step of a thread that stands still after it.
        pub(in crate::prefetch) fn step(&self) -> Step {
            Step(self.word.fetch_add(1, Ordering::AcqRel))
        }
    }

    fn current(count: u64) -> (Current, Mark) {
        let (current, mark) = (Current::new(), fork::mark());
        current.replace(mark.current(), block(10, count));
        (current, mark)
    }

    #[test]
    fn what_is_another_processs_is_not_taken() {
        let (current, mark) = current(4);
        current.replace(mark.current() + 1, block(50, 4));
        assert!(current.take_one(mark).is_err());
        assert_eq!(current.take(mark, 2), None);
    }

    /// A fork while another thread puts a block: the child finds the slot as far as that thread had come.
    #[test]
    fn a_generation_that_a_parent_was_about_to_put_is_not_put_again() {
        for stored in 0..=7 {
            let (current, mark) = current(4);
            current.store(mark.current() + 1, block(50, 4), 2, stored);
            let mine = current.replace(mark.current(), block(100, 4)).0;
            assert!(stored == 0 || mine != 2, "after {stored} of its fields");
            assert_eq!(current.take_one(mark).ok(), Some((100, false)));
        }
    }

    #[test]
    fn places_do_not_come_round() {
        let (current, mark) = current(4);
        assert_eq!(current.take(mark, 1 << 62).unwrap().count, 4);
        current.word.store(current.word.load(Ordering::Relaxed) & !PLACE | (PLACE - 1), Ordering::Relaxed);
        for _ in 0..8 {
            assert_eq!(current.take(mark, 1 << 62), None);
            assert!(current.take_one(mark).is_err());
        }
        assert_eq!(current.word.load(Ordering::Relaxed) >> PLACE_BITS, 1);
    }

    #[test]
    fn a_step_whose_slot_is_used_anew_is_found_in_the_past() {
        let (current, mark) = current(4);
        let mut past = Past::default();
        past.remember(1, block(10, 4));
        let steps = [(); 5].map(|()| current.step());
        for first in [100, 200] {
            past.remember(current.replace(mark.current(), block(first, 4)).0, block(first, 4));
        }
        assert_eq!(steps.map(|step| past.find(step)), [Some((10, false)), Some((11, true)), Some((12, false)), Some((13, false)), None]);
        past.forget();
        assert_eq!(past.find(steps[0]), None);
    }

    #[test]
    fn the_past_is_short() {
        let mut past = Past::default();
        for generation in 0..=REMEMBERED as u64 {
            past.remember(generation, block(generation, 1));
        }
        let found = |generation: u64| past.find(Step(generation << PLACE_BITS)).map(|(number, _)| number);
        assert_eq!((found(0), found(1), found(REMEMBERED as u64)), (None, Some(1), Some(REMEMBERED as u64)));
    }

    /// The smallest blocks last for less than a microsecond: a thread can stand still for millions of them.
    #[test]
    fn a_step_is_not_taken_for_a_much_later_generations() {
        let (current, mark) = current(4);
        let step = current.step();
        for round in [1 << 16, 1 << 24, 1 << 32] {
            let mut past = Past::default();
            current.slot.begun.store(round, Ordering::Relaxed);
            for first in [100, 200] {
                past.remember(current.replace(mark.current(), block(first, 4)).0, block(first, 4));
            }
            assert_eq!(past.find(step), None, "{round} generations later");
        }
    }

    #[test]
    fn generations_come_round_in_the_word() {
        let (current, mark) = current(4);
        current.slot.begun.store(GENERATION, Ordering::Relaxed);
        for first in [100, 200] {
            assert_eq!(current.replace(mark.current(), block(first, 2)).0, first / 100 - 1);
            let numbers: Vec<_> = (0..3).map(|_| current.take_one(mark).ok()).collect();
            assert_eq!(numbers, [Some((first, false)), Some((first + 1, true)), None]);
            assert_eq!(current.take(mark, 2), None);
        }
    }
}
