//! The public handles: a segment, tickets, a ring.

use super::{Numbers, Supply};
use crate::spec::Spec;
use frazil_base::error::Result;
use std::ops::Deref;
use std::time::Duration;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Numbers);

        impl Deref for $name {
            type Target = Numbers;

            fn deref(&self) -> &Numbers {
                &self.0
            }
        }
    };
}

handle! {
    /// Increasing 63-bit numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain.
    ///
    /// A range belongs to one process. The next range is fetched in the background when a tenth of the present
    /// one is used. Its size follows Leaf's rule: it is doubled when a range lasts less than 15 minutes, and
    /// halved when it lasts more than 30. It stays between `step` and 1,000,000. After a caller had to wait, up
    /// to 8 ranges are prefetched.
    ///
    /// Numbers increase within a process, over all its threads. They do not increase among processes, or with
    /// several stores. Numbers that a process has fetched but not used when it ends are lost.
    ///
    /// With several stores, a tag begins when all of them answer. A store that lacks the tag later is left out
    /// until an operator begins it there (`TAG_MISSING` in `last_error`), because its numbers may have been
    /// handed out. A line that contradicts one store is refused (`SEGMENT_MISMATCH`).
    ///
    /// The spec line: the tag, and `store` (one or several, separated by spaces; each has its own offset, and
    /// one that answers is enough), `namespace`, `step` (1000), `start` (1: the first number of a new tag),
    /// `increment` and `offset` (the number of stores, and 1, 2, ...), `wait` (5s: the longest wait for a
    /// number), `table` (`leaf` or `tinyid`: that system's table in PostgreSQL or MariaDB/MySQL, whose rows
    /// determine the rest).
    ///
    /// # Example
    /// ```
    /// let orders = frazil::Segment::open("orders store=memory step=100")?;
    /// assert_eq!(orders.next_id()?.get(), 1);
    /// assert_eq!(orders.next_id()?.get(), 2);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    Segment
}

handle! {
    /// Single numbers from two stores or more in turn: Flickr's ticket servers.
    ///
    /// With k stores the first one hands out 1, 1 + k, 1 + 2k, ..., and the second one 2, 2 + k,
    /// ... Each call takes from the next store, or from the one after it if that store is away.
    /// Nothing is prefetched, so there are few gaps, and every number costs a round trip to a
    /// store. Numbers increase roughly. The spec line is that of [`Segment`], without `step`,
    /// `increment` and `offset`.
    ///
    /// # Example
    /// ```no_run
    /// let tickets = frazil::Tickets::open("photos store='mysql://a/tickets mysql://b/tickets'")?;
    /// let id = tickets.next_id()?;
    /// # Ok::<(), frazil::Error>(())
    /// ```
    Tickets
}

handle! {
    /// A ring of IDs that a thread prefetches: UidGenerator's cached mode, over any generator.
    ///
    /// The ring is filled when it is opened, and again whenever less than `refill` percent are
    /// left. When it is full, the thread rests. A caller that finds the ring empty waits
    /// (`empty=wait:D`) or is refused (`empty=error`).
    ///
    /// IDs are stamped when they are prefetched, not when they are taken. They may be as old as the ring lasts,
    /// or ahead of the clock with `exhausted=ahead`. The ring is dropped and refilled in a forked child, and
    /// when the clock has gone back. The clock is checked before each piece of at most 4,096 IDs.
    /// [`observe`](crate::Snowflake::observe) does not drop prefetched IDs; `discard` does.
    ///
    /// The spec line: the generator's, and `size` (65536), `refill` (50), `empty` (`wait`, which is `wait:5s`).
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Buffered::open("standard node=7 size=8192")?;
    /// let (a, b) = (ids.next_id()?, ids.next_id()?);
    /// assert!(a < b);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    Buffered
}

impl Segment {
    /// Opens a segment: increasing numbers from ranges of a tag. Waits for the first range up to `wait=`.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` for errors of the line; as [`Numbers::next_id`].
    pub fn open(line: &str) -> Result<Self> {
        Numbers::open(Supply::Segment, Spec::parse(line)?, Duration::MAX).map(Segment)
    }

    /// Opens a tag like [`open`](Segment::open), as a future.
    ///
    /// # Errors
    /// As [`open`](Segment::open).
    pub async fn open_async(line: &str) -> Result<Self> {
        Numbers::open_async(Supply::Segment, Spec::parse(line)?).await.map(Segment)
    }
}

impl Tickets {
    /// Opens tickets: single numbers of a tag from several stores in turn. The stores are called when a number
    /// is needed.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` for errors of the line.
    pub fn open(line: &str) -> Result<Self> {
        Numbers::open(Supply::Tickets, Spec::parse(line)?, Duration::MAX).map(Tickets)
    }

    /// Opens a tag like [`open`](Tickets::open), as a future.
    ///
    /// # Errors
    /// As [`open`](Tickets::open).
    pub async fn open_async(line: &str) -> Result<Self> {
        Numbers::open_async(Supply::Tickets, Spec::parse(line)?).await.map(Tickets)
    }
}

impl Buffered {
    /// Opens a generator and a ring of its prefetched IDs. Fills the ring as far as `empty=` allows.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for errors of the line; those of [`Snowflake::open`](crate::Snowflake::open).
    pub fn open(line: &str) -> Result<Self> {
        Numbers::open(Supply::Buffered, Spec::parse(line)?, Duration::MAX).map(Buffered)
    }

    /// Opens a ring like [`open`](Buffered::open), as a future.
    ///
    /// # Errors
    /// As [`open`](Buffered::open).
    pub async fn open_async(line: &str) -> Result<Self> {
        Numbers::open_async(Supply::Buffered, Spec::parse(line)?).await.map(Buffered)
    }
}
