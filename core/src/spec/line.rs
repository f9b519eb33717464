//! How a spec is shown: the canonical line, in which no secret stands.

use super::{KEYS, Spec};
use crate::preset::STANDARD;
use crate::secret;
use std::fmt;

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unnamed = if self.pairs.iter().any(|(key, _)| key == "layout") { "" } else { STANDARD };
        f.write_str(&secret::misplaced(self.preset.as_deref().unwrap_or(unnamed)))?;
        let place = |key: &str| match key {
            "layout" => 0,
            "epoch" => 1,
            // Node fields stand where they were given, before the other keys.
            _ => KEYS.iter().position(|name| *name == key).map_or(2, |place| place + 1),
        };
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(key, _)| place(key));
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            if at > 0 || key != "layout" {
                f.write_str(" ")?;
            }
            let shown = if key == "store" { secret::addresses(value.expose()) } else { secret::misplaced(value.expose()).into_owned() };
            write!(f, "{key}={}", quoted(&shown))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

fn quoted(value: &str) -> String {
    if !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\')) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
