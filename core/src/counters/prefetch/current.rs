//! The current block, from which any number of threads take one number after another.

use super::block::{Block, Taken};
use crossbeam_utils::CachePadded;
use frazil_base::os::fork::Mark;
use frazil_base::os::sync::{AtomicU64, Ordering};

/// The number of the word's low bits that hold an index. The bits above them hold the generation.
const INDEX_BITS: u32 = 28;
const INDEX: u64 = (1 << INDEX_BITS) - 1;
/// The bits of a generation that the word can hold.
const GENERATION: u64 = u64::MAX >> INDEX_BITS;
/// The most numbers of a generation.
pub(super) const MOST: u64 = INDEX;

/// The current block, and its successors. Each is a *generation*. The *word* holds the generation and the index of the next number. One
/// step of the word takes a number.
///
/// **The invariant.** A number is taken at most once, because its index in its generation is taken at most once. Indices come from one
/// atomic word. Within a generation the word only grows, by compare-and-swap and never beyond the end, and each index below `count` is one
/// number.
///
/// **The fields read from the slot belong together.** The slot holds its generation twice. `begun` is the first field to be stored and the
/// last to be loaded. `done` is the last to be stored and the first to be loaded. All stores release, and all loads acquire.
///
/// - A thread that loaded a field of some generation finds that generation or a later one in `begun`.
/// - A thread that loaded a generation from `done` finds no field of an earlier one.
/// - So if `begun` equals `done`, all fields are of that generation.
///
/// **The word belongs to the fields.** A thread takes a number only if the word has the generation of the fields. Otherwise the block was
/// replaced in between. Only 36 bits of a generation are kept, so a thread would err if it were suspended for 68,719,476,736 generations.
/// That is more than half a day, even if each generation lasts only a microsecond.
///
/// **No generation is begun twice**, also in a forked child. The child may find the slot half changed, or the slot changed but not the
/// word.
///
/// A compare-and-swap takes 5.4 ns a number, as an unconditional addition does. With two threads it takes 11 ns, and an addition 9 ns. But
/// an addition may go beyond the end, or into a generation that its thread has not read.
pub(super) struct Current {
    word: CachePadded<AtomicU64>,
    slot: CachePadded<BlockSlot>,
}

#[derive(Default)]
struct BlockSlot {
    begun: AtomicU64,
    /// The process that may use the block. A forked child or a copy of the machine also has the block, and must not use it.
    process: AtomicU64,
    first: AtomicU64,
    stride: AtomicU64,
    count: AtomicU64,
    refill_at: AtomicU64,
    done: AtomicU64,
}

/// The content of a slot.
#[derive(Clone, Copy)]
struct Content {
    process: u64,
    /// The word before the first number is taken: the generation, and index 0.
    word: u64,
    first: u64,
    stride: u64,
    count: u64,
    refill_at: u64,
}

impl BlockSlot {
    /// Loads the fields; `None` while another thread changes them.
    #[inline(always)]
    fn content(&self) -> Option<Content> {
        let done = self.done.load(Ordering::Acquire);
        let content = Content {
            process: self.process.load(Ordering::Acquire),
            word: done << INDEX_BITS,
            first: self.first.load(Ordering::Acquire),
            stride: self.stride.load(Ordering::Acquire),
            count: self.count.load(Ordering::Acquire),
            refill_at: self.refill_at.load(Ordering::Acquire),
        };
        (self.begun.load(Ordering::Acquire) == done).then_some(content)
    }
}

impl Content {
    /// Returns the index in a word of this generation. `None` for a word of another one, whose value is far away.
    #[inline(always)]
    fn index(self, word: u64) -> Option<u64> {
        let at = word.wrapping_sub(self.word);
        (at < self.count).then_some(at)
    }

    #[inline(always)]
    fn number(self, at: u64) -> u64 {
        self.first.wrapping_add(at.wrapping_mul(self.stride))
    }
}

impl Current {
    /// An empty block, of no process.
    pub(super) fn new() -> Self {
        Current { word: CachePadded::new(AtomicU64::new(0)), slot: CachePadded::default() }
    }

    /// Takes one number. Returns it, and whether its index is `refill_at`. `None` if no number is left, or while the block is being
    /// replaced. Inlined to stay in registers, because on x86-64 a locked instruction waits for every earlier store.
    #[inline(always)]
    pub(super) fn take_one(&self, mark: Mark) -> Option<(u64, bool)> {
        let taken = self.advance(mark, 1)?;
        Some((taken.first, taken.refill))
    }

    /// Takes 1 to `most` numbers, if any are left.
    pub(super) fn take(&self, mark: Mark, most: u64) -> Option<Taken> {
        self.advance(mark, most)
    }

    #[inline(always)]
    fn advance(&self, mark: Mark, most: u64) -> Option<Taken> {
        let content = self.slot.content()?;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let at = content.index(word)?;
            // The count is at least 1.
            let count = if most == 1 { 1 } else { most.min(content.count - at) };
            match self.word.compare_exchange_weak(word, word + count, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let Content { process, stride, refill_at, .. } = content;
                    // This is checked after the swap: see `fork.rs`.
                    let is_ours = mark.is(process) || is_still(mark, process);
                    let refill = refill_at.wrapping_sub(at) < count;
                    return is_ours.then(|| Taken { process, first: content.number(at), stride, count, refill });
                }
                Err(now) => word = now,
            }
        }
    }

    /// Replaces the block by another one, of at most `MOST` numbers. The caller holds the lock of its process's buffer, so only one thread
    /// of a process does this at a time. Returns the new generation, and the last position in the previous one.
    pub(super) fn replace(&self, process: u64, block: Block) -> (u64, Left) {
        debug_assert!(block.count <= MOST);
        // Uses the generation after the slot's, not after the word's. A parent's thread may have stored fields of the slot's generation
        // before a fork, where threads of the child find them.
        let generation = (self.slot.begun.load(Ordering::Acquire) + 1) & GENERATION;
        self.store(process, block, generation, usize::MAX);
        (generation, Left(self.word.swap(generation << INDEX_BITS, Ordering::AcqRel)))
    }

    /// Returns the position in the current block.
    pub(super) fn left(&self) -> Left {
        Left(self.word.load(Ordering::Acquire))
    }

    /// Stores a block in the slot, or only its first `most` fields.
    pub(super) fn store(&self, process: u64, block: Block, generation: u64, most: usize) {
        let slot = &self.slot;
        let fields = [
            (&slot.begun, generation),
            (&slot.process, process),
            (&slot.first, block.first),
            (&slot.stride, block.stride),
            (&slot.count, block.count),
            (&slot.refill_at, block.refill_at),
            (&slot.done, generation),
        ];
        for (field, value) in fields.into_iter().take(most) {
            field.store(value, Ordering::Release);
        }
    }

    /// Replaces the block by an empty one. Returns the last position in the previous block.
    pub(super) fn clear(&self) -> Left {
        self.replace(0, Block { first: 0, stride: 0, count: 0, refill_at: u64::MAX, made_ms: i64::MIN }).1
    }
}

/// Returns whether the process is still this one. Not inlined, so that the fast path keeps its registers.
#[cold]
#[inline(never)]
fn is_still(mark: Mark, process: u64) -> bool {
    mark.is_still(process)
}

/// A position: a generation, and the index of its next number.
#[derive(Clone, Copy)]
pub(super) struct Left(u64);

impl Left {
    /// Returns how many of a generation's `count` numbers were taken. Every index below the position's is a taken number.
    pub(super) fn taken(self, generation: u64, count: u64) -> u64 {
        if self.0 >> INDEX_BITS == generation { (self.0 & INDEX).min(count) } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_base::os::fork;

    fn block(first: u64, count: u64) -> Block {
        Block { first, stride: 1, count, refill_at: 1, made_ms: 0 }
    }

    fn current(count: u64) -> (Current, Mark) {
        let (current, mark) = (Current::new(), fork::mark());
        current.replace(mark.current(), block(10, count));
        (current, mark)
    }

    #[test]
    fn numbers_of_another_process_are_not_taken() {
        let (current, mark) = current(4);
        current.replace(mark.current() + 1, block(50, 4));
        assert_eq!(current.take_one(mark), None);
        assert_eq!(current.take(mark, 2), None);
    }

    /// Forks while another thread replaces a block. The child finds the slot partly stored.
    #[test]
    fn generation_that_a_parent_was_storing_is_not_used_again() {
        for stored in 0..=7 {
            let (current, mark) = current(4);
            current.store(mark.current() + 1, block(50, 4), 2, stored);
            let mine = current.replace(mark.current(), block(100, 4)).0;
            assert!(stored == 0 || mine != 2, "after {stored} of its fields");
            assert_eq!(current.take_one(mark), Some((100, false)));
        }
    }

    #[test]
    fn index_never_passes_the_end() {
        let (current, mark) = current(4);
        assert_eq!(current.take(mark, 1 << 62).unwrap().count, 4);
        assert_eq!((current.take_one(mark), current.take(mark, 1 << 62)), (None, None));
        assert_eq!(current.left().taken(1, 9), 4);
    }

    #[test]
    fn generations_wrap_in_the_word() {
        let (current, mark) = current(4);
        current.slot.begun.store(GENERATION, Ordering::Relaxed);
        for first in [100, 200] {
            assert_eq!(current.replace(mark.current(), block(first, 2)).0, first / 100 - 1);
            let numbers: Vec<_> = (0..3).map(|_| current.take_one(mark)).collect();
            assert_eq!(numbers, [Some((first, false)), Some((first + 1, true)), None]);
            assert_eq!(current.take(mark, 2), None);
        }
    }

    #[test]
    fn position_of_another_generation_has_taken_nothing() {
        let left = Left(5 << INDEX_BITS | 3);
        assert_eq!((left.taken(5, 10), left.taken(5, 2), left.taken(4, 10)), (3, 2, 0));
    }
}
