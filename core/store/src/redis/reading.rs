//! The records of a namespace: some of them in one step, or all of them in many.

use super::super::Loaded;
use super::super::limits::ALL_RECORDS;
use super::super::resp::Reply;
use super::{META, Redis, bytes, list, load, text, texts};
use frazil_base::error::Result;
use std::time::Instant;

/// The approximate number of fields in a page. Reading them takes a small part of a millisecond.
const FIELDS: &str = if cfg!(test) { "50" } else { "100" };

/// The reply of `load.lua`: server, time, `maxmemory`, its policy, the meta record, and fields with
/// their records in turn.
///
/// The last part is the beginning of the next page, or 0.
type LoadReply = (String, i64, String, String, Option<Vec<u8>>, Vec<Vec<u8>>, u64);

fn answer(reply: Reply) -> Option<LoadReply> {
    let Ok([server, time, limit, policy, meta, fields, next]) = <[Reply; 7]>::try_from(list(reply)?) else { return None };
    let meta = if let Reply::Nothing = meta { None } else { Some(bytes(meta)?) };
    Some((text(server)?, text(time)?.parse().ok()?, text(limit)?, text(policy)?, meta, texts(fields)?, text(next)?.parse().ok()?))
}

impl Redis {
    /// Calls `load.lua`.
    pub(super) fn ask_for(&mut self, namespace: &str, wanted: &[&str], room: usize) -> Result<Loaded> {
        let reply = self.wire.call(&load(namespace, wanted), room)?;
        self.loaded(namespace, reply)
    }

    pub(super) fn loaded(&mut self, namespace: &str, reply: Reply) -> Result<Loaded> {
        let (server, time_ms, limit, policy, meta, fields, next) = self.read("EVAL", reply, answer)?;
        self.keeps(&limit, &policy)?;
        self.looked = Instant::now();
        let mut slots = Vec::with_capacity(fields.len() / 2);
        let mut fields = fields.into_iter();
        while let (Some(field), Some(record)) = (fields.next(), fields.next()) {
            if field != META.as_bytes() {
                slots.push(self.slot(namespace, field, record)?);
            }
        }
        let meta = meta.map(|record| self.text(namespace, "the namespace", record)).transpose()?;
        Ok(Loaded { meta, server, time_ms: Some(time_ms), slots, loses_writes: true, next: Some(next).filter(|next| *next != 0) })
    }

    pub(super) fn page(&mut self, namespace: &str, first: u64) -> Result<Loaded> {
        self.ask_for(namespace, &["page", &first.to_string(), FIELDS], ALL_RECORDS)
    }
}
