//! 64-bit, time-ordered, globally unique IDs: Twitter's Snowflake and everything that grew from it.
//!
//! An ID is a non-negative `i64` that holds the time, the number of its generator, and a counter. IDs of many machines sort by time and
//! never collide, and no server has to hand them out.
//!
//! ```no_run
//! use frazil::Snowflake;
//!
//! // The store leases a node number. For several machines: store=env:DATABASE_URL.
//! let ids = Snowflake::open("standard store=local")?;   // Send + Sync, cheap to clone
//! let id = ids.next_id()?;
//! let mut rows = [0i64; 1000];
//! ids.fill(&mut rows)?;                                 // many at once
//! # Ok::<(), frazil::Error>(())
//! ```
//!
//! A fixed node number needs no store:
//!
//! ```
//! # use frazil::Snowflake;
//! let ids = Snowflake::open("twitter datacenter=1 worker=7")?;
//! let parts = ids.layout().decode(ids.next_id()?)?;
//! assert_eq!(parts.field("worker"), Some(7));
//! # Ok::<(), frazil::Error>(())
//! ```
//!
//! Begin with [`Snowflake`]: [`open`](Snowflake::open), [`next_id`](Snowflake::next_id) and [`fill`](Snowflake::fill). [`Layout`] decodes
//! IDs, [`Segment`] makes plain numbers, [`uuid7`] UUIDs, and [`Error`] lists what can fail.
//!
//! # The promise
//! No ID is issued twice.
//! - **Within a process**, each ID of a node number and namespace is issued once. It does not matter how many threads call, how often and
//!   under which field names a generator is opened, or whether the clock went back.
//! - **With a store** (`store=local`, Redis, PostgreSQL, ...), this also holds across processes, machines and restarts. A process leases
//!   its node number, and a forked child leases its own. Uniqueness depends on no clock, as long as the store keeps its acknowledged
//!   writes.
//! - **With a fixed number and no store**, it holds as long as no two machines have the same number. It holds across a restart unless the
//!   clock went back or a policy ran ahead of the clock. A second process of the machine is refused if the system has a guard. A forked
//!   child is always refused.
//!
//! Everything else is an [`Error`].
//!
//! # Features
//! No feature is on by default. The file store (`store=local`) and `store=memory` are always available.
//!
//! | feature | brings |
//! |---|---|
//! | `redis`, `sql`, `etcd`, `zookeeper`, `frazil-server` | the client of that store; `sql` is PostgreSQL, MariaDB and MySQL |
//! | `stores` | all of these clients |
//! | `tls` | `frazils://`, which is `frazil://` over TLS |
//! | `serde` | an [`Id`] in JSON and other formats |
//! | `sqlx` | an [`Id`] as a column |
//!
//! # Terms
//! | term | meaning |
//! |---|---|
//! | layout | the split of 63 bits into fields |
//! | tick | one unit of the layout's time field |
//! | node fields | the fields that identify the generator; together they are the node number, which is *fixed* (given) or *leased* |
//! | sequence | the counter within a tick |
//! | stamp | tick and sequence as one integer |
//! | drift | the distance of a stamp's tick ahead of the clock |
//! | store | the record of node numbers |
//! | lease | a node number that a process holds for a time |
//! | bound | the last stamp that a lease allows |
//! | namespace | the part of a store in which one application's generators lease their numbers |
//! | tag | a named counter in a store, from which processes take ranges ([`Segment`]) |
//! | preset | a named layout with its policies |
//! | spec | the line that configures everything ([`Spec`]) |
//!
//! # Presets
//! The fields are from the most significant bit down, with their widths. The days are those of the epoch, and of the end of the layout. The
//! rate is that of one generator, sustained.
//!
//! | preset | fields | tick | days | IDs/s | generators |
//! |---|---|---|---|---:|---:|
//! | `standard` | time 41, node 10, sequence 12 | 1 ms | 2025-01-01 to 2094-09-07 | 4,096,000 | 1,024 |
//! | `twitter` | time 41, datacenter 5, worker 5, sequence 12 | 1 ms | 2010-11-04 to 2080-07-10 | 4,096,000 | 1,024 |
//! | `simple` | time 41, worker 5, datacenter 5, sequence 12 | 1 ms | 2020-07-31 to 2090-04-07 | 4,096,000 | 1,024 |
//! | `leaf` | time 41, worker 10, sequence 12 | 1 ms | 2010-11-04 to 2080-07-10 | 4,096,000 | 1,024 |
//! | `shardingsphere` | time 41, worker 10, sequence 12 | 1 ms | 2016-11-01 to 2086-07-08 | 4,096,000 | 1,024 |
//! | `baidu` | time 28, worker 22, sequence 13 | 1 s | 2016-05-19 to 2024-11-20 | 8,192 | 4,194,304 |
//! | `sonyflake` | time 39, sequence 8, machine 16 | 10 ms | 2025-01-01 to 2199-03-19 | 25,600 | 65,536 |
//! | `discord` | time 41, worker 5, process 5, sequence 12 | 1 ms | 2015-01-01 to 2084-09-06 | 4,096,000 | 1,024 |
//! | `instagram` | time 40, shard 13, sequence 10 | 1 ms | 2011-08-24 to 2046-06-27 | 1,024,000 | 8,192 |
//! | `game` | time 31, server 20, sequence 12 | 1 s | 2025-01-01 to 2093-01-19 | 4,096 | 1,048,576 |
//! | `game16` | time 31, server 16, sequence 16 | 1 s | 2025-01-01 to 2093-01-19 | 65,536 | 65,536 |
//! | `js53` | time 31, node 10, sequence 12 | 1 s | 2025-01-01 to 2093-01-19 | 4,096 | 1,024 |
//!
//! With its original epoch, `baidu` has ended. Give a later one, as in `baidu epoch=2025-01-01`. The policies are those of the system that
//! a preset is named after. An empty cell has the value of `standard`:
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
//! - `rollback`: the reaction to a clock that went back. `error` refuses until the clock has caught up. `wait:D` waits if that takes at
//!   most D, and refuses at once otherwise. `ahead:D` continues in logical time, up to D ahead of the clock.
//! - `exhausted`: the reaction to a used-up sequence of a tick. `error` refuses. `wait:D` waits for the next tick if it begins within D,
//!   and refuses at once otherwise. `ahead:D` borrows from ticks up to D ahead. A bare `wait` is `wait:5s`.
//! - `start`: the first sequence in a tick that the clock enters. `zero` is 0, `alternate:N` cycles through 0 to N, `random:N` draws a
//!   number below N, and `continue:N` counts on, modulo N.
//! - `lag=D`: IDs are stamped up to D late. Unused stamps of that time are a credit for bursts ([`Snowflake::credit`]).
//!
//! # Taking over
//! After `after=ID` in the spec, or a call of [`Snowflake::observe`], a generator issues only IDs above that one. So it can take over from
//! another system, whose layout a preset or a spec gives.

// # The modules
// frazil uses two crates without an API: `frazil-base` (errors, secrets, time, the operating system) and `frazil-store` (stores, and the
// clients of their servers). Each module imports only those above it. `open` goes spec → registry → generator, once. Each `next_id` goes
// generator → ID.
//
// | module | idea |
// |---|---|
// | `id` | an ID, its parts and its texts; the split of the bits; presets; ranges; numbers in other programs' notations |
// | `observe` | events for the log; counters, and the one table of metrics |
// | `wait` | the time limit of a call, and the events that end its wait sooner; requests and replies; calls that occupy no thread |
// | `clock` | the time, and the time for which the present tick certainly lasts |
// | `generator` | the lock-free core: the next stamp, the last stamp of the present tick (the *gate*), the policies, and the lease |
// | `guard` | lets one process of a machine issue from a fixed number |
// | `lease` | the window protocol, which moves a lease's bound; the worker of a store, which renews leases and refills tags |
// | `spec` | the spec line: `spec` parses it, `line` writes it, `plan` checks it |
// | `handle` | the handle that users hold; one generator per fixed node number and process; specs that are built by calls |
// | `counters` | prefetched numbers: ranges of a tag in a store, tickets, and a ring of a generator's IDs |
// | `source` | the trait of all handles, and their calls as futures |
// | `interop` | other systems' IDs: MongoDB's ObjectId, UUIDs |
// | `admin` | the queries and changes of the command `frazil` |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub mod admin;
mod clock;
mod counters;
mod generator;
mod guard;
mod handle;
mod id;
mod interop;
mod lease;
mod observe;
mod source;
mod spec;
mod wait;

pub use counters::{Buffered, Numbers, Segment, Supply, Tickets};
#[doc(inline)]
pub use frazil_base::error::{Error, ErrorKind, Result};
#[doc(inline)]
pub use frazil_base::os::fork::restored;
pub use handle::{Builder, Local, MAX_BATCH, Snowflake};
#[doc(hidden)]
pub use handle::{EVENT_LOOP_BATCH, EVENT_LOOP_TIMEOUT};
pub use id::{Field, Id, Layout, Parts, TextFormat};
pub use interop::{ObjectId, Uuid, parse_uuid, uuid_unix_ms, uuid4, uuid7, uuid7_at, uuid7_max, uuid7_min};
pub use lease::{Lease, close_all};
pub use observe::{Event, Level, Metric, Stats, end_events, on_event, stats};
pub use source::Source;
pub use spec::Spec;
pub use wait::{Pending, Wait};

/// Items for the other languages, the server and the command line. Rust programs do not need them, and each release may change them.
#[doc(hidden)]
pub mod bindings {
    pub use crate::counters::{Row, check_spec};
    pub use crate::handle::{DROP_TIMEOUT, EXIT_TIMEOUT};
    pub use crate::id::columns::{Columns, Misfits, overlap, parse_texts};
    pub use crate::id::{id_of_decimal, id_range, parts_to_json};
    pub use crate::interop::process_uuid;
    pub use crate::observe::{end_events_of, hold_events, on_event_of, resume_events, wait_for_events};
    pub use crate::wait::poll_once;
    pub use frazil_base::nearest::did_you_mean;
    pub use frazil_base::os::cancel::Uncancelled;
    pub use frazil_base::os::fork::{Waiting, Written, awaited_by_parent};
    pub use frazil_base::os::host::stay;
    pub use frazil_base::time::{parse_instant, show_epoch, show_instant};
    #[cfg(all(feature = "frazil-server", feature = "admin"))]
    pub use frazil_store::{Proxy, Question, busy};
}

/// Runs the Rust examples of the README and of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/segments.md")]
#[doc = include_str!("../../docs/start.md")]
#[doc = include_str!("../../docs/uuids.md")]
struct Guide;
