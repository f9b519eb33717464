//! 64-bit, time-ordered, globally unique IDs: Twitter's Snowflake and everything that grew from it.
//!
//! An ID is a non-negative `i64` that holds the time, a number of the generator that made it, and a
//! counter. IDs of many machines sort by time, never collide, and need no server to hand them out.
//!
//! ```
//! use frazil::Snowflake;
//!
//! let ids = Snowflake::open("twitter datacenter=1 worker=7")?;   // Send + Sync, cheap to clone
//! let id = ids.next_id()?;
//!
//! let mut loot = [0i64; 1000];
//! ids.fill(&mut loot)?;                                          // many at once
//!
//! let parts = ids.layout().decode(id)?;
//! assert_eq!(parts.field("worker"), Some(7));
//! # Ok::<(), frazil::Error>(())
//! ```
//!
//! # The promise
//! Within a process and a namespace a node number's IDs are issued once: whatever threads ask, however often a generator
//! is opened and by whatever names, and after the clock went back. Across processes, machines and
//! restarts, with a store (`store=local`, Redis, PostgreSQL, ...): a process leases its node number, and
//! uniqueness depends on no clock, as long as the store keeps what it acknowledged; a forked child leases
//! its own. With a number that is given and no store: as long as no two machines have the same one,
//! and across a restart while the clock has not gone back and no policy ran ahead of it; a second process
//! of the machine is refused (on Linux), and so is a forked child. Everything else is an [`Error`].
//!
//! # Features
//! `redis`, `sql` (PostgreSQL, MariaDB, MySQL), `etcd`, `zookeeper`, `frazil-server`: the stores' clients;
//! `stores`: all of them; `tls`: `frazils://` without them. None is on by default; the file store and
//! `store=memory` are always there.
//!
//! # Terms
//! *layout*: how 63 bits are split. *tick*: one unit of its time field. *node fields*: the fields that
//! tell generators apart; together they are the *node number*. *sequence*: the counter within a tick.
//! *stamp*: tick and sequence as one integer. *drift*: how far a stamp's tick is ahead of the clock.
//! *lease*: a node number held for now. *bound*: the last stamp that a lease allows. *namespace*: the part
//! of a store in which one application's generators lease their numbers. *tag*: a named counter in a store,
//! of which processes take ranges ([`Segment`]). *preset*: a named layout with its policies. *spec*: one line
//! that configures everything ([`Spec`]).
//!
//! # Presets
//! From the sign bit down: the fields and their widths; the tick; the years from the epoch to the day on
//! which it ends; the sustained rate of one generator; and how many generators there can be.
//! ```text
//! standard       0 | time 41 | node 10 | sequence 12                           1ms  2025-01-01 to 2094-09-07   4096000 IDs/s     1024 nodes
//! twitter        0 | time 41 | datacenter 5 | worker 5 | sequence 12           1ms  2010-11-04 to 2080-07-10   4096000 IDs/s     1024 nodes
//! simple         0 | time 41 | worker 5 | datacenter 5 | sequence 12           1ms  2020-07-31 to 2090-04-07   4096000 IDs/s     1024 nodes
//! leaf           0 | time 41 | worker 10 | sequence 12                         1ms  2010-11-04 to 2080-07-10   4096000 IDs/s     1024 nodes
//! shardingsphere 0 | time 41 | worker 10 | sequence 12                         1ms  2016-11-01 to 2086-07-08   4096000 IDs/s     1024 nodes
//! baidu          0 | time 28 | worker 22 | sequence 13                          1s  2016-05-19 to 2024-11-20      8192 IDs/s  4194304 nodes
//! sonyflake      0 | time 39 | sequence 8 | machine 16                        10ms  2025-01-01 to 2199-03-19     25600 IDs/s    65536 nodes
//! discord        0 | time 41 | worker 5 | process 5 | sequence 12              1ms  2015-01-01 to 2084-09-06   4096000 IDs/s     1024 nodes
//! instagram      0 | time 40 | shard 13 | sequence 10                          1ms  2011-08-24 to 2046-06-27   1024000 IDs/s     8192 nodes
//! game           0 | time 31 | server 20 | sequence 12                          1s  2025-01-01 to 2093-01-19      4096 IDs/s  1048576 nodes
//! game16         0 | time 31 | server 16 | sequence 16                          1s  2025-01-01 to 2093-01-19     65536 IDs/s    65536 nodes
//! js53           0 | time 31 | node 10 | sequence 12                            1s  2025-01-01 to 2093-01-19      4096 IDs/s     1024 nodes
//! ```
//! `baidu` has ended with its own epoch: give it another, `baidu epoch=2025-01-01`. The policies come
//! from the systems that the presets are named after; those that they leave open, from `standard`:
//!
//! | preset | rollback | exhausted | start | lag |
//! |---|---|---|---|---|
//! | `standard`, and where a row is empty | `ahead:1s` | `wait` | `random:16` | `0ms` |
//! | `twitter`, `baidu` | `error` | `wait` | `zero` | |
//! | `simple` | `error` | | `zero` | |
//! | `leaf` | `wait:5ms` | `wait` | `random:100` | |
//! | `shardingsphere` | `wait:10ms` | `wait` | `alternate:1` | |
//! | `sonyflake` | `ahead` (with a store; else `ahead:1s`) | `wait` | `zero` | |
//! | `game` | | `error` | | `16s` |
//! | `game16` | | `error` | | `1s` |
//!
//! # Policies
//! - `rollback`: the clock went back. `error` refuses until it has caught up; `wait:D` waits if that
//!   takes at most D, and else refuses at once; `ahead:D` goes on in logical time, up to D ahead of the
//!   clock.
//! - `exhausted`: the tick's sequence is used up. `error` refuses; `wait:D` waits for the next tick if it
//!   begins within D, and else refuses at once; `ahead:D` borrows from ticks up to D ahead. A bare `wait`
//!   is `wait:5s`.
//! - `start`: the first sequence in a tick that the clock enters. `zero`; `alternate:N` cycles 0 to N;
//!   `random:N` draws below N; `continue:N` counts on, modulo N.
//! - `lag=D`: IDs are stamped up to D late, and what was not used in that time is a credit for bursts
//!   ([`Snowflake::credit`]).
//!
//! # Taking over
//! Opened with `after=ID`, or told by [`Snowflake::observe`], a generator issues only IDs above the one of
//! another system, whose layout a preset or a spec gives.
//!
//! # The modules
//! Each imports only what stands above it; a call goes spec → registry → generator once, at `open`, and
//! generator → ID on every `next_id`.
//!
//! | module | idea |
//! |---|---|
//! | `secret` | what is never printed |
//! | `error` | the one error table |
//! | `cancel` | `pthread_cancel`, which is put off where Rust would not survive it |
//! | `stay` | a library that is not unloaded |
//! | `nearest` | "did you mean", for every name that is not there |
//! | `sync` | the atomics, or loom's |
//! | `thread` | threads of frazil's own, which leave signals to the program |
//! | `fork` | notices that the process is a forked child |
//! | `event`, `stats` | what is logged; what is counted, and the one table of metrics |
//! | `time`, `text` | durations and dates; IDs in decimal, base62, base32, hex |
//! | `id`, `preset`, `layout` | an ID and its parts; how the bits are split |
//! | `json` | an ID's parts as JSON, for the command line and the server |
//! | `wait`, `request` | how long a call may wait, and what ends it sooner; calls that wait, and their replies |
//! | `clock`, `policy` | what time it is, and how long a tick surely lasts; what to do when it offers no room |
//! | `generator` | the lock-free core: the next stamp, how far it may go in this tick (the *gate*), and the lease |
//! | `guard` | one process of a machine for each number that is given without a store |
//! | `host` | the name of the machine |
//! | `append_map` | a map that a process adds to and never takes from |
//! | `store` | what remembers node numbers: text under keys, compared and set |
//! | `lease` | the window protocol, by which a bound moves on; and a store's thread, which keeps leases and refills tags |
//! | `spec`, `registry` | the spec line; one generator per fixed node number and process |
//! | `range` | the IDs of a range of time |
//! | `pending` | calls that wait without a thread of their own |
//! | `snowflake` | the handle that users hold |
//! | `prefetch` | numbers that a thread prepares ahead, and how they are handed over |
//! | `segment`, `buffered` | what is prepared: ranges of a store, IDs of a generator |
//! | `numbers` | the handles on them |
//! | `builder` | a spec by calls instead of a line |
//! | `source` | the trait of all handles |
//! | `future` | calls as futures, for any runtime |
//! | `interop` | other systems' IDs: MongoDB's ObjectId, UUIDs |
//! | `admin` | what the command `frazil` shows and changes, behind a feature |

#[cfg(feature = "admin")]
#[doc(hidden)]
pub mod admin;
mod append_map;
mod buffered;
mod builder;
mod cancel;
mod clock;
mod error;
mod event;
mod fork;
mod future;
mod generator;
mod guard;
mod host;
mod id;
mod interop;
#[cfg(feature = "json")]
mod json;
mod layout;
mod lease;
#[cfg(test)]
mod lite_tables;
mod nearest;
mod numbers;
mod pending;
mod policy;
mod prefetch;
mod preset;
mod range;
mod registry;
mod request;
mod secret;
mod segment;
mod snowflake;
mod source;
mod spec;
mod stats;
mod stay;
mod store;
mod sync;
mod text;
mod thread;
mod time;
mod wait;
#[cfg(windows)]
mod windows;

pub use builder::Builder;
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, Level, end_events, on_event};
pub use fork::restored;
pub use id::{Id, Parts};
pub use interop::{ObjectId, Uuid, parse_uuid, uuid_unix_ms, uuid4, uuid7, uuid7_at, uuid7_max, uuid7_min};
pub use layout::{Field, Layout};
pub use lease::{Lease, close_all};
pub use numbers::{Buffered, Numbers, Segment, Supply, Tickets};
pub use pending::Pending;
pub use snowflake::{EVENT_LOOP_BATCH, EVENT_LOOP_PATIENCE, Local, MAX_BATCH, Snowflake, batch_in_pieces};
pub use source::Source;
pub use spec::Spec;
pub use stats::{Metric, Stats, stats};
pub use text::TextFormat;
pub use wait::Wait;

/// Parts for the other languages, the server and the command line. No program in Rust needs them, and each release may change them.
#[doc(hidden)]
pub mod bindings {
    pub use crate::cancel::Uncancelled;
    pub use crate::event::{end_events_of, hold_events, on_event_of, resume_events, wait_for_events};
    pub use crate::fork::Written;
    pub use crate::interop::process_uuid;
    #[cfg(feature = "json")]
    pub use crate::json::parts_to_json;
    pub use crate::nearest::did_you_mean;
    pub use crate::numbers::{Row, check_spec};
    pub use crate::range::id_range;
    pub use crate::snowflake::{DROP_PATIENCE, EXIT_PATIENCE};
    pub use crate::stay::stay;
    #[cfg(feature = "lend")]
    pub use crate::store::{Proxy, Question, busy};
    pub use crate::time::{parse_instant, show_epoch, show_instant};
}

/// Runs the Rust examples of the README and of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/segments.md")]
#[doc = include_str!("../../docs/start.md")]
#[doc = include_str!("../../docs/uuids.md")]
struct Guide;
