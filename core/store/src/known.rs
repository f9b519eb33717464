//! The addresses at which a server of the right kind has answered this process. If such a server
//! closes a connection, the URL is not suspected.

use frazil_base::append_map::AppendMap;
use std::sync::atomic::{AtomicBool, Ordering};

static ANSWERED: AppendMap<String, AtomicBool> = AppendMap::new();

pub(super) fn note(address: &str) {
    ANSWERED.get(&address.to_owned()).store(true, Ordering::Relaxed);
}

pub(super) fn is_known(address: &str) -> bool {
    ANSWERED.get(&address.to_owned()).load(Ordering::Relaxed)
}
