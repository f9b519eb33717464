//! The memory that an answer may take. A server may be another one than it seems to be, or a broken one.

use crate::error::ErrorKind;

/// All records of a namespace, with what each takes beside its bytes: enough for 150,000 node numbers, and little enough that an answer and
/// what is made of it stay below 64 MiB.
pub(super) const ALL_RECORDS: usize = 40 << 20;
/// An answer about one record, or about the server.
pub(super) const ONE_RECORD: usize = 1 << 20;
/// One record: a store keeps none of a tenth of it.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) const LONGEST_RECORD: usize = 64 << 10;
/// The records of a namespace, where each is an answer of its own or where their count is known.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) const MOST_RECORDS: usize = 150_000;

/// The refusal of an answer that takes more.
pub(super) fn too_large(limit: usize) -> (ErrorKind, String) {
    let of = if limit > ONE_RECORD { "a whole namespace" } else { "one record" };
    let limit = limit >> 10;
    let why = format!(
        "it answers with more than {limit} KiB, which is more than {of} ever takes: is it another server's port, or did another program write there?"
    );
    (ErrorKind::StoreUnsuitable, why)
}
