//! The presets: named layouts, each with the policies of the system that it comes from.

use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::nearest::{self, did_you_mean};

/// A named layout with its policies. The crate's documentation has drawings of the bits.
pub struct Preset {
    /// The name in a spec.
    pub name: &'static str,
    /// The layout's text.
    pub layout: &'static str,
    /// The differences from `standard`, as spec keys.
    pub policies: &'static [(&'static str, &'static str)],
}

/// The preset of a spec that names none, and the source of policies that a preset lacks.
pub(crate) const STANDARD: &str = "standard";

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: STANDARD,
        layout: "time:41@1ms node:10 sequence:12 epoch:1735689600000",
        policies: &[("rollback", "ahead:1s"), ("exhausted", "wait"), ("start", "random:16"), ("lag", "0ms")],
    },
    // github.com/twitter-archive/snowflake, IdWorker.scala
    Preset {
        name: "twitter",
        layout: "time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657",
        policies: &[("rollback", "error"), ("exhausted", "wait"), ("start", "zero")],
    },
    Preset {
        name: "simple",
        layout: "time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1596211200000",
        policies: &[("rollback", "error"), ("start", "zero")],
    },
    // github.com/Meituan-Dianping/Leaf, SnowflakeIDGenImpl.java
    Preset {
        name: "leaf",
        layout: "time:41@1ms worker:10 sequence:12 epoch:1288834974657",
        policies: &[("rollback", "wait:5ms"), ("exhausted", "wait"), ("start", "random:100")],
    },
    // github.com/apache/shardingsphere, SnowflakeKeyGenerateAlgorithm.java
    Preset {
        name: "shardingsphere",
        layout: "time:41@1ms worker:10 sequence:12 epoch:1477958400000",
        policies: &[("rollback", "wait:10ms"), ("exhausted", "wait"), ("start", "alternate:1")],
    },
    // github.com/baidu/uid-generator, DefaultUidGenerator.java
    Preset {
        name: "baidu",
        layout: "time:28@1s worker:22 sequence:13 epoch:1463673600000",
        policies: &[("rollback", "error"), ("exhausted", "wait"), ("start", "zero")],
    },
    // github.com/sony/sonyflake, v2
    Preset {
        name: "sonyflake",
        layout: "time:39@10ms sequence:8 machine:16 epoch:1735689600000",
        policies: &[("rollback", "ahead"), ("exhausted", "wait"), ("start", "zero")],
    },
    // discord.com/developers/docs/reference#snowflakes; its 42nd time bit is the sign
    Preset { name: "discord", layout: "time:41@1ms worker:5 process:5 sequence:12 epoch:1420070400000", policies: &[] },
    // instagram-engineering.com, "Sharding & IDs at Instagram"; its 41st time bit is the sign
    Preset { name: "instagram", layout: "time:40@1ms shard:13 sequence:10 epoch:1314220021721", policies: &[] },
    Preset {
        name: "game",
        layout: "time:31@1s server:20 sequence:12 epoch:1735689600000",
        policies: &[("exhausted", "error"), ("lag", "16s")],
    },
    Preset {
        name: "game16",
        layout: "time:31@1s server:16 sequence:16 epoch:1735689600000",
        policies: &[("exhausted", "error"), ("lag", "1s")],
    },
    Preset { name: "js53", layout: "time:31@1s node:10 sequence:12 epoch:1735689600000", policies: &[] },
];

/// Returns whether a key is another system's name of a node number: a field of a preset, or a key
/// of another library. Spelling, and `id` at its end, do not matter.
pub(crate) fn names_node(key: &str) -> bool {
    let key = nearest::plain(key);
    let key = key.strip_suffix("id").unwrap_or(&key);
    let is_field = |field: &str| field.split(':').next() == Some(key) && !["time", "sequence", "epoch"].contains(&key);
    PRESETS.iter().any(|preset| preset.layout.split_whitespace().any(is_field)) || ["instance", "host", "pod", "workernode"].contains(&key)
}

/// # Errors
/// `SPEC`, with the nearest name.
pub fn find(name: &str) -> Result<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let near = did_you_mean(name, names.iter().copied());
        let why = format!("there is no preset {}{near}; there are: {}; or give layout=\"time:41@1ms ...\"", shown(name), names.join(", "));
        Error::new(ErrorKind::Spec, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::layout::Layout;

    #[test]
    fn every_preset_parses() {
        for preset in PRESETS {
            assert_eq!(
                Layout::parse(preset.layout).map(|layout| layout.to_string()).as_deref(),
                Ok(preset.layout),
                "{} is in canonical form",
                preset.name
            );
        }
        assert_eq!(PRESETS[0].policies.len(), 4, "standard names every policy");
    }
}
