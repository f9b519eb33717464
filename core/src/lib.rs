//! 64-bit, time-ordered, globally unique IDs: Twitter's Snowflake and everything that grew from it.
//!
//! An ID is a non-negative `i64` that holds the time, the number of its generator, and a counter. IDs of many machines sort by time, never
//! collide, and need no server to hand them out.
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
//! No ID is issued twice.
//! - **Within a process**, each ID of a node number and namespace is issued once. It does not matter how many threads call, how often and
//!   under which field names a generator is opened, or whether the clock went back.
//! - **With a store** (`store=local`, Redis, PostgreSQL, ...), this also holds across processes, machines and restarts. A process leases
//!   its node number, and a forked child leases its own. Uniqueness depends on no clock, as long as the store keeps what it acknowledged.
//! - **With a fixed number and no store**, it holds as long as no two machines have the same number. It holds across a restart unless the
//!   clock went back or a policy ran ahead of the clock. A second process of the machine is refused where the system has a guard, and a
//!   forked child is refused always.
//!
//! Everything else is an [`Error`].
//!
//! # Features
//! `redis`, `sql` (PostgreSQL, MariaDB, MySQL), `etcd`, `zookeeper` and `frazil-server` are the clients of stores; `stores` is all of them.
//! `tls` is `frazils://` without the other clients. No feature is on by default. The file store and `store=memory` are always there.
//!
//! # Terms
//! - *layout*: the split of 63 bits into fields. *tick*: one unit of the layout's time field.
//! - *node fields*: the fields that tell generators apart. Together they are the *node number*. A number is *fixed* (given, without a
//!   store) or *leased*.
//! - *sequence*: the counter within a tick. *stamp*: tick and sequence as one integer. *drift*: how far a stamp's tick is ahead of the
//!   clock.
//! - *store*: where node numbers are recorded. *lease*: a node number that a process holds for a time. *bound*: the last stamp that
//!   a lease allows.
//! - *namespace*: the part of a store in which one application's generators lease their numbers. *tag*: a named counter in a store, from
//!   which processes take ranges ([`Segment`]).
//! - *preset*: a named layout with its policies. *spec*: the line that configures everything ([`Spec`]).
//!
//! # Presets
//! The columns are: the fields from the sign bit down, with their widths; the tick; the time from the epoch to the day on which the layout
//! ends; the sustained rate of one generator; the number of generators.
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
//! With its own epoch, `baidu` has ended: give a later one, as in `baidu epoch=2025-01-01`. The policies are those of the system that a
//! preset is named after. An empty cell has the value of `standard`:
//!
//! | preset | rollback | exhausted | start | lag |
//! |---|---|---|---|---|
//! | `standard` | `ahead:1s` | `wait` | `random:16` | `0ms` |
//! | `twitter`, `baidu` | `error` | `wait` | `zero` | |
//! | `simple` | `error` | | `zero` | |
//! | `leaf` | `wait:5ms` | `wait` | `random:100` | |
//! | `shardingsphere` | `wait:10ms` | `wait` | `alternate:1` | |
//! | `sonyflake` | `ahead` (with a store; else `ahead:1s`) | `wait` | `zero` | |
//! | `game` | | `error` | | `16s` |
//! | `game16` | | `error` | | `1s` |
//!
//! # Policies
//! - `rollback`: what to do after the clock went back. `error` refuses until the clock has caught up. `wait:D` waits if that takes at most
//!   D, and refuses at once otherwise. `ahead:D` continues in logical time, up to D ahead of the clock.
//! - `exhausted`: what to do when the tick's sequence is used up. `error` refuses. `wait:D` waits for the next tick if it begins within D,
//!   and refuses at once otherwise. `ahead:D` borrows from ticks up to D ahead. A bare `wait` is `wait:5s`.
//! - `start`: the first sequence in a tick that the clock enters. `zero` is 0, `alternate:N` cycles through 0 to N, `random:N` draws a
//!   number below N, and `continue:N` counts on, modulo N.
//! - `lag=D`: IDs are stamped up to D late. The stamps of that time that were not used are a credit for bursts ([`Snowflake::credit`]).
//!
//! # Taking over
//! After `after=ID` in the spec, or a call of [`Snowflake::observe`], a generator issues only IDs above that one. So it can follow on
//! another system, whose layout a preset or a spec gives.
//!
//! # The modules
//! Each module imports only those above it. `open` goes spec → registry → generator, once. Each `next_id` goes generator → ID.
//!
//! | module | idea |
//! |---|---|
//! | `secret` | texts that are never printed |
//! | `error` | the one error table |
//! | `cancel` | delays `pthread_cancel` where it would abort the process |
//! | `stay` | keeps the library loaded |
//! | `nearest` | "did you mean", for every unknown name |
//! | `sync` | the standard library's atomics and locks, or loom's |
//! | `thread` | frazil's own threads, which block signals; parking and waking |
//! | `fork` | notices that the process is a forked child, or a copy of its machine |
//! | `event`, `stats` | events for the log; counters, and the one table of metrics |
//! | `foreign` | numbers as other programs write them, and the marks of rounding |
//! | `time`, `text` | durations and dates; IDs in decimal, base62, base32, hex |
//! | `id`, `preset`, `layout` | an ID and its parts; how the bits are split |
//! | `json` | an ID's parts as JSON, for the command line and the server |
//! | `wait`, `request` | how long a call may wait, and what ends the wait sooner; waiting calls, and their replies |
//! | `clock`, `policy` | the time, and how long the present tick lasts at least; what to do when the tick has no room |
//! | `generator` | the lock-free core: the next stamp, the last stamp of the present tick (the *gate*), and the lease |
//! | `guard` | lets one process of a machine issue from a fixed number |
//! | `host` | the name of the machine |
//! | `append_map` | a map without removal, and without locks |
//! | `store` | the records of node numbers and tags: text under keys, written by compare-and-set |
//! | `lease` | the window protocol, which moves a lease's bound; the thread of a store, which keeps leases and refills tags |
//! | `spec`, `registry` | the spec line; one generator per fixed node number and process |
//! | `range` | the IDs of a range of time |
//! | `pending` | calls that wait without a thread of their own |
//! | `snowflake` | the handle that users hold |
//! | `prefetch` | numbers that a thread fetches ahead, and how callers take them |
//! | `segment`, `buffered` | the numbers that are prefetched: ranges from a store; IDs of a generator |
//! | `numbers` | the handles on prefetched numbers |
//! | `builder` | a spec by calls instead of a line |
//! | `source` | the trait of all handles |
//! | `future` | calls as futures, for any runtime |
//! | `interop` | other systems' IDs: MongoDB's ObjectId, UUIDs |
//! | `admin` | the queries and changes of the command `frazil`, behind a feature |

#![cfg_attr(docsrs, feature(doc_cfg))]

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
#[cfg_attr(not(feature = "admin"), allow(dead_code, reason = "the command line asks for more than parsers do"))]
mod foreign;
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
pub use snowflake::{EVENT_LOOP_BATCH, EVENT_LOOP_TIMEOUT, Local, MAX_BATCH, Snowflake, batch_in_pieces};
pub use source::Source;
pub use spec::Spec;
pub use stats::{Metric, Stats, stats};
pub use text::TextFormat;
pub use wait::Wait;

/// Items for the other languages, the server and the command line. No Rust program needs them, and each release may change them.
#[doc(hidden)]
pub mod bindings {
    pub use crate::cancel::Uncancelled;
    pub use crate::event::{end_events_of, hold_events, on_event_of, resume_events, wait_for_events};
    pub use crate::fork::{Waiting, Written, awaited_by_parent};
    pub use crate::id::id_of_decimal;
    pub use crate::interop::process_uuid;
    #[cfg(feature = "json")]
    pub use crate::json::parts_to_json;
    pub use crate::nearest::did_you_mean;
    pub use crate::numbers::{Row, check_spec};
    pub use crate::range::id_range;
    pub use crate::snowflake::{DROP_TIMEOUT, EXIT_TIMEOUT};
    pub use crate::stay::stay;
    #[cfg(feature = "lend")]
    pub use crate::store::{Proxy, Question, busy};
    pub use crate::time::{parse_instant, show_epoch, show_instant};
}

/// Runs the Rust examples of the README and of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/segments.md")]
#[doc = include_str!("../../docs/start.md")]
#[doc = include_str!("../../docs/uuids.md")]
struct Guide;
