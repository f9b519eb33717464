//! The known systems: the presets, and others with other epochs or widths.

use frazil::admin::{Policies, Start, id_of_bits, of_layout, spec_error};
use frazil::bindings::parse_instant;
use frazil::{Id, Layout, Result};

/// The values of a system's node fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeHabit {
    /// Counted from 0.
    Counted,
    /// Derived from addresses or hashes, so that all values are equally likely; a third of the systems count anyway.
    Spread,
    /// Random, or practically random.
    Any,
    /// Known numbers in the first field, and any in the others.
    Among(&'static [u64]),
}

/// The values of a system's sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceHabit {
    /// Begins in each tick where the policy `start` says.
    Starts,
    /// Continues across ticks, and is reset after some time.
    CountsOn,
    /// Continues across all ticks.
    Rounds,
    /// Random, or practically random.
    Any,
}

pub(in super::super) struct System {
    pub(in super::super) name: &'static str,
    moved: Option<Moved>,
    pub(in super::super) layout: Layout,
    pub(super) start: Start,
    pub(super) nodes: NodeHabit,
    pub(super) sequence: SequenceHabit,
    /// The relative frequency with which its IDs are inspected.
    pub(super) weight: f64,
    /// True if its IDs are public, in URLs and APIs.
    pub(super) is_public: bool,
    /// The time of its first ID.
    pub(super) begin_ms: i64,
    /// The time of its last ID, if it has ended.
    pub(super) end_ms: Option<i64>,
}

/// Twitter's datacenters had other numbers before 2015, as published statuses show.
const DATACENTERS_BEFORE_2015: &[u64] = &[0, 1, 4];
const DATACENTERS: &[u64] = &[10, 11, 13];

/// The systems whose IDs are public: the name, a spec or the fields of a layout whose ticks begin at 0, the node numbers, the sequence, the
/// weight, the first day, and the last one if it has ended.
///
/// Instagram: a user's logical shard, of thousands, and a database's sequence modulo 1024. Mastodon: Mastodon::Snowflake, 16 bits of a hash
/// and a sequence. LinkedIn: github.com/obsidianforensics/unfurl, parse_linkedin.py; the meaning of the lower bits is not known. Bluesky:
/// tid.ts.
const PUBLIC: &str = "\
twitter|twitter|before 2015|starts|0.4|2010-11-04|2015-01-16
twitter|twitter|since 2015|counts on|1.0|2015-01-01
discord|discord|counted|counts on|1.0|2015-02-01
instagram|instagram|any|rounds|0.6|2011-08-24
Mastodon|time:47@1ms sequence:16 epoch:1970-01-01|any|any|0.3|2016-10-06
LinkedIn|time:41@1ms rest:10 sequence:12 epoch:1970-01-01|any|any|0.3|2013-01-01
Bluesky|time:43@1ms us:10 sequence:10 epoch:1970-01-01|any|any|0.3|2022-11-01";

/// The systems whose IDs are private, in the same format.
///
/// Many libraries count from Twitter's epoch: github.com/bwmarrin/snowflake, Hutool. ShardingSphere counts from midnight in the JVM's zone,
/// and UidGenerator's README is in UTC+8. Sonyflake takes the lower half of a private address, unless the program gives another; version 1
/// had its default StartTime. CosId: CosId.COSID_EPOCH. TSID: github.com/f4b6a3/tsid-creator, and Hypersistence TSID, whose counter begins
/// at random. Those since 1970 are custom code. pgEdge: snowflake.c, and its older pages. InfluxDB: pkg/snowflake. Hazelcast:
/// FlakeIdGeneratorConfig.java. RisingWave: row_id.rs. Pixelfed: SnowflakeService.php. DolphinScheduler: CodeGenerateUtils.java. TiDB:
/// tikv's physicalShiftBits. Yitter: IdGeneratorOptions. Seata: IdWorker.java. CAP: ISnowflakeId.Default.cs. Nextcloud:
/// SnowflakeGenerator.php. Sentry: snowflake.py.
const PRIVATE: &str = "\
twitter|twitter|counted|starts|0.1|2010-11-04
standard|standard|counted|starts|0.03|2025-01-01
simple|simple|counted|starts|0.01|2020-07-31
leaf|leaf|counted|starts|0.01|2017-01-01
shardingsphere|shardingsphere|counted|starts|0.01|2016-11-01
ShardingSphere in UTC+8|shardingsphere epoch=1477929600000|counted|starts|0.01|2016-11-01
baidu|baidu|counted|starts|0.02|2016-05-20
UidGenerator by its README|time:29@1s worker:21 sequence:13 epoch:2016-09-19T16:00:00Z|counted|starts|0.02|2016-11-01
sonyflake|sonyflake|spread|starts|0.02|2025-01-01
Sonyflake v1|sonyflake epoch=2014-09-01|spread|starts|0.03|2014-12-01
game|game|counted|starts|0.01|2025-01-01
game16|game16|counted|starts|0.01|2025-01-01
js53|js53|counted|starts|0.01|2025-01-01
CosId|time:41@1ms machine:10 sequence:12 epoch:1577203200000|counted|counts on|0.02|2021-06-01
TSID|time:41@1ms node:10 sequence:12 epoch:2020-01-01|any|any|0.05|2020-04-01
a Snowflake since 1970|time:41@1ms worker:10 sequence:12 epoch:1970-01-01|counted|starts|0.03|2010-11-04
a Snowflake since 1970 in UTC+8|time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1969-12-31T16:00:00Z|counted|starts|0.01|2010-11-04
Yitter|time:51@1ms worker:6 sequence:6 epoch:1582136402000|counted|counts on|0.03|2020-04-01
Yitter for .NET|time:51@1ms worker:6 sequence:6 epoch:1582165202020|counted|counts on|0.03|2020-04-01
pgEdge|time:41@1ms node:10 sequence:12 epoch:2023-01-01|counted|starts|0.01|2023-06-01
pgEdge, sequence first|time:41@1ms sequence:12 node:10 epoch:2023-01-01|counted|starts|0.01|2023-06-01
InfluxDB|time:41@1ms machine:10 sequence:12 epoch:1491696000000|any|starts|0.01|2017-06-01
Hazelcast|time:41@1ms sequence:6 node:16 epoch:2018-01-01|counted|starts|0.02|2018-04-01
RisingWave|time:41@1ms vnode:10 sequence:12 epoch:1617235200000|any|starts|0.01|2022-01-01
Pixelfed|time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1549756800000|any|starts|0.01|2019-06-01
DolphinScheduler|time:41@1ms machine:5 sequence:5 epoch:1609430400000|any|starts|0.01|2021-06-01
TiDB's timestamps|time:45@1ms sequence:18 epoch:1970-01-01|counted|starts|0.01|2017-01-01
Seata|time:41@1ms worker:10 sequence:12 epoch:1588435200000|spread|rounds|0.02|2020-06-01
CAP|time:41@1ms worker:10 sequence:12 epoch:1288834974657|spread|rounds|0.02|2021-01-01
CockroachDB|time:40@1ms us10:7 node:15 sequence:1 epoch:2015-01-01|counted|starts|0.03|2015-06-01
CockroachDB, unordered|time:40@1ms us10:7 node:15 sequence:1 epoch:2015-01-01|counted|starts|0.01|2021-05-01
Nextcloud|time:41@1ms server:9 cli:1 sequence:12 epoch:2025-10-01|counted|starts|0.02|2025-11-01
Sentry|time:32@1s region:12 sequence:4 epoch:2022-04-26|counted|starts|0.02|2022-06-01
UUID_SHORT|time:32@1s server:7 sequence:24 epoch:1970-01-01|counted|counts on|0.002|2010-01-01";

/// The bit order of a system whose IDs do not begin with whole milliseconds or seconds. Such IDs are decoded, and never minted.
#[derive(Clone, Copy)]
struct Moved {
    /// Moves the bits to their positions in `layout`; `None` for a number that the system cannot make.
    read: fn(u64) -> Option<u64>,
    /// Moves the bits back, if the IDs are in order of time below their first bits.
    back: Option<fn(u64) -> u64>,
    /// The order of the fields in the IDs.
    order: &'static str,
}

fn moved(name: &str) -> Option<Moved> {
    type Read = fn(u64) -> Option<u64>;
    type Back = Option<fn(u64) -> u64>;
    let (read, back, order): (Read, Back, _) = match name {
        // Seata reads the clock at its start, and counts from there.
        "Seata" => (node_first, Some(without_node), "worker:10 time:41@1ms sequence:12 epoch:1588435200000"),
        "CAP" => (node_first, Some(without_node), "worker:10 time:41@1ms sequence:12 epoch:1288834974657"),
        "Bluesky" => (
            |id| Some(((id >> 10) / 1000) << 20 | ((id >> 10) % 1000) << 10 | id & 0x3ff),
            Some(|bits| ((bits >> 20) * 1000 + (bits >> 10 & 0x3ff).min(999)) << 10 | bits & 0x3ff),
            "time:53@1us clock:10 epoch:1970-01-01",
        ),
        "CockroachDB" => (
            row_id,
            Some(|bits| ((bits >> 23) * 100 + (bits >> 16 & 0x7f).min(99)) << 15 | bits >> 1 & 0x7fff),
            "time:48@10us node:15 epoch:2015-01-01",
        ),
        "CockroachDB, unordered" => (
            |id| row_id((id >> 15).reverse_bits() >> 16 << 15 | id & 0x7fff),
            None,
            "time:48@10us, its bits reversed, node:15 epoch:2015-01-01",
        ),
        "Nextcloud" => (
            |id| ((id >> 22) & 0x3ff < 1000).then_some(((id >> 32) * 1000 + (id >> 22 & 0x3ff)) << 22 | id & 0x3f_ffff),
            Some(|bits| ((bits >> 22) / 1000) << 32 | ((bits >> 22) % 1000) << 22 | bits & 0x3f_ffff),
            "seconds:31@1s milliseconds:10 server:9 cli:1 sequence:12 epoch:2025-10-01",
        ),
        // The version is constant, with its bits reversed.
        "Sentry" => (
            |id| (id >> 48 == 16).then_some(id & 0xffff_ffff_ffff),
            Some(|bits| 16 << 48 | bits),
            "version:5=16 time:32@1s region:12 sequence:4 epoch:2022-04-26",
        ),
        "UUID_SHORT" => (
            |id| Some((id >> 24 & 0xffff_ffff) << 31 | (id >> 56) << 24 | id & 0xff_ffff),
            None,
            "server:8 start:32@1s counter:24 epoch:1970-01-01",
        ),
        _ => return None,
    };
    Some(Moved { read, back, order })
}

fn node_first(id: u64) -> Option<u64> {
    Some((id >> 12 & 0x1ff_ffff_ffff) << 22 | (id >> 53) << 12 | id & 0xfff)
}

fn without_node(bits: u64) -> u64 {
    (bits >> 22) << 12 | bits & 0xfff
}

fn row_id(id: u64) -> Option<u64> {
    let (time, node) = (id >> 15, id & 0x7fff);
    (time / 100 < 1 << 40).then_some((time / 100) << 23 | (time % 100) << 16 | node << 1)
}

impl System {
    /// Moves the bits of an ID to their positions in `layout`.
    pub(in super::super) fn read(&self, id: Id) -> Option<Id> {
        match self.moved {
            None => Some(id),
            Some(moved) => (moved.read)(id.get() as u64).and_then(|bits| Id::new(bits as i64).ok()),
        }
    }

    /// The order of the fields, if it differs from `layout`.
    pub(in super::super) fn order(&self) -> Option<&'static str> {
        self.moved.map(|moved| moved.order)
    }

    /// Moves bits from their positions in `layout` to those in the IDs. Also returns the mask below a node number in front of the time.
    ///
    /// # Errors
    /// `SPEC` for a system whose IDs are not in order of time.
    pub(in super::super) fn back(&self, id: Id) -> Result<(Id, Option<u64>)> {
        let Some(moved) = self.moved else { return Ok((id, None)) };
        let unordered = || spec_error(format!("the IDs of {} have no order of time: {}", self.name, moved.order));
        let below = moved.order.starts_with("worker").then_some((1 << 53) - 1);
        let bits = moved.back.ok_or_else(unordered)?(id.get() as u64);
        Ok((id_of_bits(bits.min(i64::MAX as u64)), below))
    }
}

/// Parses the layout of a preset, of fields or of a spec, or finds the layout of a known system.
///
/// # Errors
/// As [`of_layout`].
pub(in super::super) fn layout_of(text: &str) -> Result<(Layout, Option<System>)> {
    let system = |error| all()?.into_iter().find(|system| system.name.eq_ignore_ascii_case(text)).ok_or(error);
    match of_layout(text) {
        Ok((layout, _)) => Ok((layout, None)),
        Err(error) => system(error).map(|system| (system.layout.clone(), Some(system))),
    }
}

/// Returns all systems; among equals, the more usual ones come first.
///
/// # Errors
/// Only for a mistake in the tables.
pub(super) fn all() -> Result<Vec<System>> {
    let rows = PUBLIC.lines().map(|row| (row, true)).chain(PRIVATE.lines().map(|row| (row, false)));
    rows.map(|(row, is_public)| parse(row, is_public)).collect()
}

fn parse(row: &'static str, is_public: bool) -> Result<System> {
    let cells: Vec<_> = row.split('|').collect();
    let [name, line, nodes, sequence, weight, begin, end @ ..] = cells.as_slice() else {
        return Err(spec_error(format!("{row} lacks a cell")));
    };
    let line = if line.starts_with("time:") { format!("layout='{line}' start=zero") } else { (*line).to_owned() };
    let (layout, Policies { start, .. }) = of_layout(&line)?;
    let day = |text| parse_instant("life", text);
    Ok(System {
        name,
        moved: moved(name),
        layout,
        start,
        nodes: match *nodes {
            "counted" => NodeHabit::Counted,
            "spread" => NodeHabit::Spread,
            "before 2015" => NodeHabit::Among(DATACENTERS_BEFORE_2015),
            "since 2015" => NodeHabit::Among(DATACENTERS),
            _ => NodeHabit::Any,
        },
        sequence: match *sequence {
            "starts" => SequenceHabit::Starts,
            "counts on" => SequenceHabit::CountsOn,
            "rounds" => SequenceHabit::Rounds,
            _ => SequenceHabit::Any,
        },
        weight: weight.parse().map_err(|error| spec_error(format!("{row}: {error}")))?,
        is_public,
        begin_ms: day(begin)?,
        end_ms: end.first().map(|end| day(end)).transpose()?,
    })
}
