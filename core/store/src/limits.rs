//! The memory that an answer may take. A server may be of another kind than expected, or broken.

use frazil_base::error::ErrorKind;

/// All records of a namespace, with the additional memory of each. This is enough for 150,000 node
/// numbers, and keeps an answer and its parsed form below 64 MiB.
pub(super) const ALL_RECORDS: usize = 40 << 20;
/// An answer about one record, or about the server.
pub(super) const ONE_RECORD: usize = 1 << 20;
/// The longest record. frazil's records are less than a tenth of it.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) const LONGEST_RECORD: usize = 64 << 10;
/// The most records of a namespace, for stores that send each record as one answer or know their
/// count.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) const MOST_RECORDS: usize = 150_000;

/// The refusal of an answer that takes more than a limit.
pub(super) fn too_large(limit: usize) -> (ErrorKind, String) {
    let of = if limit > ONE_RECORD { "a whole namespace" } else { "one record" };
    let limit = limit >> 10;
    let why = format!(
        "it answers with more than {limit} KiB, more than {of} ever takes: is it another server's port, or did another program write there?"
    );
    (ErrorKind::StoreUnsuitable, why)
}
