//! The numbers being used, taken one after the other by any number of threads.

use super::block::{Block, Taken};
use crate::fork::Mark;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// The bits of a place in the word; those above are the generation.
const PLACE_BITS: u32 = 28;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
/// The bits of a generation that the word holds.
const GENERATION: u64 = u64::MAX >> PLACE_BITS;
/// The most numbers of a generation.
pub(super) const MOST: u64 = PLACE;

/// One block after the other, each a *generation*. Taking a number is one step of the word, which holds the generation and the place of the
/// next number.
///
/// **The invariant.** A number is taken at most once, because its place in its generation is: places come from one atomic word, which within a
/// generation only goes up, by compare-and-swap and never beyond the end, and each place below `count` is one number.
///
/// **Why what is read of the slot belongs together.** Its generation stands there twice: `begun` is the first field to be stored and the last
/// to be loaded, `done` the last to be stored and the first to be loaded; all are stored with release and loaded with acquire. Whoever
/// has read a field of a later generation than `begun`'s would have read that one's `begun`, too; and whoever has read `done` reads no field
/// of an earlier generation. So where both are alike all is that generation's. The word is taken only where it is of the same one, else the
/// thread stood still meanwhile. Only 36 bits of a generation are compared: to be deceived it would have to stand still for 68,719,476,736
/// generations. That is more than half a day where each lasts for a microsecond. No generation is begun twice, also not in a forked child, which
/// may find the slot half changed, or changed and the word not.
///
/// A compare-and-swap takes 5.4 ns a number, as a step without a condition does, and two threads 11 ns where steps take 9; but a step that falls
/// behind the end, or into a generation that its thread has not read, has to find its number again.
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

    /// Takes one number, and says whether its place is `low`. `None` also where another block is just being put here. Inlined, and in registers: on
    /// x86-64 a locked instruction waits for every store before it.
    #[inline(always)]
    pub(super) fn take_one(&self, mark: Mark) -> Option<(u64, bool)> {
        let taken = self.advance(mark, 1)?;
        Some((taken.first, taken.low))
    }

    /// Takes 1 to `most` numbers, if there is one left.
    pub(super) fn take(&self, mark: Mark, most: u64) -> Option<Taken> {
        self.advance(mark, most)
    }

    #[inline(always)]
    fn advance(&self, mark: Mark, most: u64) -> Option<Taken> {
        let content = self.slot.content()?;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let at = content.place(word)?;
            // There is one at least.
            let count = if most == 1 { 1 } else { most.min(content.count - at) };
            match self.word.compare_exchange_weak(word, word + count, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let Content { process, stride, low, .. } = content;
                    // After the swap: see `fork.rs`.
                    let is_ours = mark.is(process) || is_still(mark, process);
                    let low = low.wrapping_sub(at) < count;
                    return is_ours.then(|| Taken { process, first: content.number(at), stride, count, low });
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

/// Out of the way of the registers.
#[cold]
#[inline(never)]
fn is_still(mark: Mark, process: u64) -> bool {
    mark.is_still(process)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::fork;

    fn block(first: u64, count: u64) -> Block {
        Block { first, stride: 1, count, low: 1, made_ms: 0 }
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
        assert_eq!(current.take_one(mark), None);
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
            assert_eq!(current.take_one(mark), Some((100, false)));
        }
    }

    #[test]
    fn no_place_is_beyond_the_end() {
        let (current, mark) = current(4);
        assert_eq!(current.take(mark, 1 << 62).unwrap().count, 4);
        assert_eq!((current.take_one(mark), current.take(mark, 1 << 62)), (None, None));
        assert_eq!(current.left().taken(1, 9), 4);
    }

    #[test]
    fn generations_come_round_in_the_word() {
        let (current, mark) = current(4);
        current.slot.begun.store(GENERATION, Ordering::Relaxed);
        for first in [100, 200] {
            assert_eq!(current.replace(mark.current(), block(first, 2)).0, first / 100 - 1);
            let numbers: Vec<_> = (0..3).map(|_| current.take_one(mark)).collect();
            assert_eq!(numbers, [Some((first, false)), Some((first + 1, true)), None]);
            assert_eq!(current.take(mark, 2), None);
        }
    }
}
