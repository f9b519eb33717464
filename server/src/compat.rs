//! The systems whose clients a name also serves, on those systems' own paths. These paths mint on GET, which a link or a picture in a page
//! sends, so each name must opt in.

use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Result, Spec};
use std::fmt;

/// The key that the server takes out of a name's line.
const KEY: &str = "compat";
const SYSTEMS: [&str; 2] = ["leaf", "tinyid"];

#[derive(Clone, Copy, Default)]
pub struct Compat {
    pub leaf: bool,
    pub tinyid: bool,
}

impl Compat {
    /// Takes the key out of a spec: one system, or both with a comma between.
    ///
    /// # Errors
    /// `SPEC` for another system.
    pub fn take(spec: &mut Spec) -> Result<Self> {
        let mut compat = Compat::default();
        for system in spec.take(KEY)?.iter().flat_map(|text| text.split(',')) {
            match system {
                "leaf" => compat.leaf = true,
                "tinyid" => compat.tinyid = true,
                _ => {
                    let near = did_you_mean(system, SYSTEMS);
                    let why = format!("{KEY}={system:?} is not a supported system{near}: use {}", SYSTEMS.join(", "));
                    return Err(Error::new(ErrorKind::Spec, why));
                }
            }
        }
        Ok(compat)
    }
}

impl fmt::Display for Compat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked: Vec<_> =
            SYSTEMS.into_iter().zip([self.leaf, self.tinyid]).filter_map(|(system, asked)| asked.then_some(system)).collect();
        if asked.is_empty() { Ok(()) } else { write!(f, " {KEY}={}", asked.join(",")) }
    }
}
