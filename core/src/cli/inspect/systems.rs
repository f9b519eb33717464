//! The systems whose IDs may be met: the presets, and others with other epochs or widths.

use crate::error::Result;
use crate::layout::Layout;
use crate::policy::{Policies, Start};
use crate::preset::PRESETS;
use crate::spec::Spec;

/// How the numbers of a system's node fields and sequences come about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Nodes are counted from 0, and a tick's sequence begins where the policy `start` says.
    Counted,
    /// Nodes come from addresses or hashes, so that each is as likely; the sequence is as in `Counted`.
    Spread,
    /// Nodes are shards of which each is as likely, and the sequence counts on through all ticks.
    Rounds,
    /// All bits under the time are random, or as good as that.
    Random,
}

pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    pub(super) start: Start,
    pub(super) numbers: Numbers,
    /// How often it is met, beside the others.
    pub(super) weight: f64,
}

/// With the spec line that says their layout and start policy.
const OTHERS: &[(&str, &str, Numbers, f64)] = &[
    // github.com/sony/sonyflake, version 1: its default StartTime.
    ("Sonyflake v1", "sonyflake epoch=2014-09-01", Numbers::Spread, 0.5),
    // github.com/Ahoo-Wang/CosId: CosId.COSID_EPOCH.
    ("CosId", "layout='time:41@1ms machine:10 sequence:12 epoch:1577203200000' start=continue:2048", Numbers::Counted, 0.5),
    // github.com/f4b6a3/tsid-creator, and Hypersistence TSID: the counter begins at random.
    ("TSID", "layout='time:41@1ms node:10 sequence:12 epoch:2020-01-01' start=zero", Numbers::Random, 0.5),
    // github.com/mastodon/mastodon: Mastodon::Snowflake, 16 bits of a hash and a sequence.
    ("Mastodon", "layout='time:47@1ms sequence:16 epoch:0' start=zero", Numbers::Random, 0.5),
    // Snowflakes that count from 1970, as many do that are written at home.
    ("a Snowflake since 1970", "layout='time:41@1ms worker:10 sequence:12 epoch:0' start=zero", Numbers::Counted, 0.2),
    (
        "a Snowflake since 1970 in UTC+8",
        "layout='time:41@1ms worker:5 datacenter:5 sequence:12 epoch:-28800000' start=zero",
        Numbers::Counted,
        0.1,
    ),
    // It counts from midnight in the JVM's zone.
    ("ShardingSphere in UTC+8", "shardingsphere epoch=1477929600000", Numbers::Counted, 0.1),
];

/// All of them; the more usual ones first where nothing else tells them apart.
///
/// # Errors
/// None but a mistake in the tables.
pub(super) fn all() -> Result<Vec<System>> {
    let presets = PRESETS.iter().map(|preset| {
        let numbers = match preset.name {
            // A user's logical shard, of thousands; a database's sequence, modulo 1024.
            "instagram" => Numbers::Rounds,
            // The lower half of a private address, unless the program gives another.
            "sonyflake" => Numbers::Spread,
            _ => Numbers::Counted,
        };
        (preset.name, preset.name, numbers, 1.0)
    });
    let systems = presets.chain(OTHERS.iter().copied()).map(|(name, line, numbers, weight)| {
        let (layout, Policies { start, .. }) = Spec::of_layout(line)?;
        Ok(System { name, layout, start, numbers, weight })
    });
    systems.collect()
}
