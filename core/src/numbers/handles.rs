//! The public handles: a segment, tickets, a ring.

use super::{Numbers, Supply};
use crate::error::Result;
use crate::spec::Spec;
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
    /// A range belongs to one process. The next one is fetched in the background when a tenth of the present one is used; its
    /// size follows Leaf's rule (doubled when a range lasts less than 15 minutes, halved when more than 30), between `step` and
    /// 1,000,000, and after a caller had to wait up to 8 ranges lie ready. Numbers increase within a process, over all
    /// its threads; among processes, and with several stores, they do not. With several stores a tag begins when all of them
    /// answer; later one that lacks it is left out until an operator begins it there (`TAG_MISSING` in `last_error`), because what it
    /// would hand out may have been handed out; and a line that one store contradicts is refused (`SEGMENT_MISMATCH`). What a process has fetched and not used when it ends is a gap.
    ///
    /// The spec line: the tag, and `store` (several, separated by spaces: each has its own offset, and one that is alive
    /// is enough), `namespace`, `step` (1000), `start` (1: the first number of a tag that is new), `increment` and `offset` (the number
    /// of stores, and 1, 2, ...), `wait` (5s: how long a call waits for a number), `table` (`leaf` or `tinyid`: that system's table
    /// in PostgreSQL or MariaDB/MySQL, whose rows say the rest).
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
    /// With k stores the first one hands out 1, 1 + k, 1 + 2k, ..., the second one 2, 2 + k, ...; each call asks the next store,
    /// or the one after it where that one is away. Nothing is prepared ahead, so there are few gaps, and every
    /// number costs a round trip to a store. Numbers increase roughly. The spec line: as [`Segment`]'s, without `step`, `increment`, `offset`.
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
    /// A ring of IDs that a thread prepares: UidGenerator's cached mode, over any generator.
    ///
    /// The ring is filled when it is opened, and again whenever less than `refill` percent are left; when it is full, the thread
    /// rests. Who finds it empty waits (`empty=wait:D`) or is refused (`empty=error`). IDs are stamped when they are
    /// prepared, not when they are taken: up to a ring's length old, or with `exhausted=ahead` ahead. It is dropped, and filled
    /// anew, in a forked child and when the clock has gone back; the latter is looked at before each piece of at most 4,096 IDs.
    /// An ID that the generator is told to [`observe`](crate::Snowflake::observe) does not call back what is prepared: `discard` drops it.
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
    /// Opens a tag, and waits for the first range up to `wait=`.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` for what the line says; as [`Numbers::next_id`].
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
    /// Opens a tag; the stores are asked when a number is.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` for what the line says.
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
    /// Opens the generator, and fills the ring as far as `empty=` leaves time for.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for what the line says; those of [`Snowflake::open`](crate::Snowflake::open).
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
