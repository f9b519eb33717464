//! The systems whose IDs may be met: the presets, and others with other epochs or widths.

use frazil::admin::{Policies, Start, of_layout};
use frazil::bindings::parse_instant;
use frazil::{Layout, Result};

/// The values of a system's node fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nodes {
    /// Counted from 0.
    Counted,
    /// Taken from addresses or hashes, so that each value is as likely; a third of them are counted all the same.
    Spread,
    /// Random, or as good as that.
    Any,
    /// Numbers in the first field that are known, and any in the others.
    Among(&'static [u64]),
}

/// The values of a system's sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Begins in each tick where the policy `start` says.
    Starts,
    /// Counts on through some ticks, and begins anew after a while.
    CountsOn,
    /// Counts on through all ticks.
    Rounds,
    /// Random, or as good as that.
    Any,
}

pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    pub(super) start: Start,
    pub(super) nodes: Nodes,
    pub(super) sequence: Sequence,
    /// The frequency with which one of its IDs is asked about, beside the others.
    pub(super) weight: f64,
    /// Its IDs are seen by the public, in addresses and APIs, and not only by those who run it.
    pub(super) is_public: bool,
    /// The time of its first ID; before, none was made.
    pub(super) begin_ms: i64,
    /// The time of its last one, if it has ended.
    pub(super) end_ms: Option<i64>,
}

/// A system as it is written down: its name, the spec line that says its layout and start policy, its first day, and its last one if it
/// has ended.
struct Entry(&'static str, &'static str, Nodes, Sequence, f64, &'static str, Option<&'static str>);

/// The systems whose IDs are public. Twitter's datacenters had other numbers before 2015 (seen in published statuses).
const PUBLIC: &[Entry] = &[
    Entry("twitter", "twitter", Nodes::Among(&[0, 1, 4]), Sequence::Starts, 0.4, "2010-11-04", Some("2015-01-16")),
    Entry("twitter", "twitter", Nodes::Among(&[10, 11, 13]), Sequence::CountsOn, 1.0, "2015-01-01", None),
    Entry("discord", "discord", Nodes::Counted, Sequence::CountsOn, 1.0, "2015-02-01", None),
    // A user's logical shard, of thousands; a database's sequence, modulo 1024.
    Entry("instagram", "instagram", Nodes::Any, Sequence::Rounds, 0.6, "2011-08-24", None),
    // github.com/mastodon/mastodon: Mastodon::Snowflake, 16 bits of a hash and a sequence.
    Entry("Mastodon", "layout='time:47@1ms sequence:16 epoch:1970-01-01' start=zero", Nodes::Any, Sequence::Any, 0.3, "2016-10-06", None),
    // github.com/obsidianforensics/unfurl, parse_linkedin.py: what the lower bits mean is not known.
    Entry(
        "LinkedIn",
        "layout='time:41@1ms rest:10 sequence:12 epoch:1970-01-01' start=zero",
        Nodes::Any,
        Sequence::Any,
        0.3,
        "2013-01-01",
        None,
    ),
];

/// The systems whose IDs are met by those who run them.
const PRIVATE: &[Entry] = &[
    // Many a library counts from Twitter's epoch: github.com/bwmarrin/snowflake, Hutool.
    Entry("twitter", "twitter", Nodes::Counted, Sequence::Starts, 0.1, "2010-11-04", None),
    Entry("standard", "standard", Nodes::Counted, Sequence::Starts, 0.03, "2025-01-01", None),
    Entry("simple", "simple", Nodes::Counted, Sequence::Starts, 0.01, "2020-07-31", None),
    Entry("leaf", "leaf", Nodes::Counted, Sequence::Starts, 0.01, "2017-01-01", None),
    Entry("shardingsphere", "shardingsphere", Nodes::Counted, Sequence::Starts, 0.01, "2016-11-01", None),
    // It counts from midnight in the JVM's zone.
    Entry("ShardingSphere in UTC+8", "shardingsphere epoch=1477929600000", Nodes::Counted, Sequence::Starts, 0.01, "2016-11-01", None),
    Entry("baidu", "baidu", Nodes::Counted, Sequence::Starts, 0.02, "2016-05-20", None),
    // As its README configures it, in UTC+8.
    Entry(
        "UidGenerator by its README",
        "layout='time:29@1s worker:21 sequence:13 epoch:2016-09-19T16:00:00Z' start=zero",
        Nodes::Counted,
        Sequence::Starts,
        0.02,
        "2016-11-01",
        None,
    ),
    // The lower half of a private address, unless the program gives another.
    Entry("sonyflake", "sonyflake", Nodes::Spread, Sequence::Starts, 0.02, "2025-01-01", None),
    // github.com/sony/sonyflake, version 1: its default StartTime.
    Entry("Sonyflake v1", "sonyflake epoch=2014-09-01", Nodes::Spread, Sequence::Starts, 0.03, "2014-12-01", None),
    Entry("game", "game", Nodes::Counted, Sequence::Starts, 0.01, "2025-01-01", None),
    Entry("game16", "game16", Nodes::Counted, Sequence::Starts, 0.01, "2025-01-01", None),
    Entry("js53", "js53", Nodes::Counted, Sequence::Starts, 0.01, "2025-01-01", None),
    // github.com/Ahoo-Wang/CosId: CosId.COSID_EPOCH.
    Entry(
        "CosId",
        "layout='time:41@1ms machine:10 sequence:12 epoch:1577203200000' start=zero",
        Nodes::Counted,
        Sequence::CountsOn,
        0.02,
        "2021-06-01",
        None,
    ),
    // github.com/f4b6a3/tsid-creator, and Hypersistence TSID: the counter begins at random.
    Entry(
        "TSID",
        "layout='time:41@1ms node:10 sequence:12 epoch:2020-01-01' start=zero",
        Nodes::Any,
        Sequence::Any,
        0.05,
        "2020-04-01",
        None,
    ),
    // Snowflakes that count from 1970, as many do that are written at home.
    Entry(
        "a Snowflake since 1970",
        "layout='time:41@1ms worker:10 sequence:12 epoch:1970-01-01' start=zero",
        Nodes::Counted,
        Sequence::Starts,
        0.03,
        "2010-11-04",
        None,
    ),
    Entry(
        "a Snowflake since 1970 in UTC+8",
        "layout='time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1969-12-31T16:00:00Z' start=zero",
        Nodes::Counted,
        Sequence::Starts,
        0.01,
        "2010-11-04",
        None,
    ),
];

/// All of them; the more usual ones first where nothing else tells them apart.
///
/// # Errors
/// None but a mistake in the tables.
pub(super) fn all() -> Result<Vec<System>> {
    let entries = PUBLIC.iter().map(|entry| (entry, true)).chain(PRIVATE.iter().map(|entry| (entry, false)));
    let systems = entries.map(|(&Entry(name, line, nodes, sequence, weight, begin, end), is_public)| {
        let (layout, Policies { start, .. }) = of_layout(line)?;
        let day = |text| parse_instant("life", text);
        let (begin_ms, end_ms) = (day(begin)?, end.map(day).transpose()?);
        Ok(System { name, layout, start, nodes, sequence, weight, is_public, begin_ms, end_ms })
    });
    systems.collect()
}
