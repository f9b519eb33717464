//! What remembers node numbers, so that no two generators hold the same one.
//!
//! This release has `memory`, which knows one process and serves tests; it gives out the same lease
//! objects that the network stores will.

pub(crate) mod memory;

use crate::error::{Error, ErrorKind, Result, shown};

/// The URLs of stores that a spec may name but this build has no client for.
const NOT_BUILT: &[&str] =
    &["redis://", "rediss://", "postgresql://", "postgres://", "mysql://", "etcd://", "etcds://", "zookeeper://", "file:"];

/// Accepts the stores that are built in.
pub(crate) fn check(store: &str) -> Result<()> {
    if store == "memory" {
        return Ok(());
    }
    if store == "local" || NOT_BUILT.iter().any(|scheme| store.starts_with(scheme)) {
        // Only the scheme is shown: what follows it may be a password.
        let scheme = store.split([':']).next().unwrap_or_default();
        return Err(Error::new(
            ErrorKind::StoreNotBuilt,
            format!("store={scheme} is not built into this version of frazil, which has: memory; give the node number by hand until then"),
        ));
    }
    // What is no known scheme may still hold a password.
    let scheme = if store.contains('@') { "...".to_owned() } else { shown(store.split([':', '/']).next().unwrap_or_default()) };
    Err(Error::new(
        ErrorKind::Spec,
        format!("store={scheme} is none of: memory, local, file:DIR, redis://, postgresql://, mysql://, etcd://, zookeeper://"),
    ))
}
