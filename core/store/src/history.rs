//! The histories of stores without a clock that this process calls.
//!
//! etcd numbers its revisions, and ZooKeeper its transactions. These numbers never go back, unless the
//! store was restored from a backup. A process can notice this only until the restored store has
//! caught up. So once noticed, it holds until the process ends. The number belongs to the process and
//! not to a connection, because a restored store drops every connection first.

use super::hosts::Failure;
use frazil_base::append_map::AppendMap;
use frazil_base::error::{ErrorKind, login_hint, shell_word};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A value above every number, for a history that went back.
const WENT_BACK: i64 = i64::MAX;

static SEEN: AppendMap<(String, String), AtomicI64> = AppendMap::new();

/// The highest number seen of one cluster at one address.
pub(super) struct History(Arc<AtomicI64>);

impl History {
    pub(super) fn of(address: &str, cluster: &str) -> Self {
        History(SEEN.get(&(address.to_owned(), cluster.to_owned())))
    }

    /// The number that an answer to a later call must reach. Answers may overtake each other, so
    /// the value when the answer arrives is not used.
    pub(super) fn highest(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn reached(&self, number: i64) {
        self.0.fetch_max(number, Ordering::AcqRel);
    }

    /// Checks an answer's number against the value of [`highest`](History::highest) before the call
    /// was sent.
    ///
    /// # Errors
    /// `STORE_CHANGED`, for this answer and every later one.
    pub(super) fn check(&self, floor: i64, number: i64, store: &str, place: &str) -> Result<(), Failure> {
        // If a server lends the store, it may have noticed this between its own call and this
        // answer.
        if number >= floor && number < WENT_BACK {
            self.reached(number);
            return Ok(());
        }
        self.reached(WENT_BACK);
        let (command, login) = (accepting(store, place), login_hint(store));
        let why = format!(
            "the store's history went back: it was restored from a backup, or replaced; if intended, stop all processes that use it, run \
             `{command}`{login}, and start them again"
        );
        Err((ErrorKind::StoreChanged, why))
    }
}

/// The command that accepts a store as it is, for a namespace or a tag's namespace.
fn accepting(store: &str, place: &str) -> String {
    let store = shell_word(store);
    match place.split_once('~') {
        Some((namespace, tag)) => format!("frazil segment {store} --namespace={namespace} --start=N -- {}", shell_word(tag)),
        None => format!("frazil nodes {store} --namespace {place} --accept"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_that_went_back_names_the_command() {
        let check = |place| History::of("command", place).check(5, 4, "etcd://***@h", place).unwrap_err().1;
        let store = shell_word("etcd://***@h");
        let command = format!(
            "stop all processes that use it, run `frazil nodes {store} --namespace orders --accept`, with the user and the password for ***"
        );
        assert!(check("orders").contains(&command), "{}", check("orders"));
        let command = format!("`frazil segment {store} --namespace=orders --start=N -- tickets`");
        assert!(check("orders~tickets").contains(&command), "{}", check("orders~tickets"));
    }

    #[test]
    fn history_is_kept_for_each_cluster_and_address() {
        let history = History::of("a", "1");
        history.reached(7);
        history.reached(5);
        assert_eq!(history.highest(), 7);
        assert_eq!(History::of("a", "1").highest(), 7);
        assert_eq!(History::of("a", "2").highest(), 0);
        assert_eq!(History::of("b", "1").highest(), 0);
    }

    #[test]
    fn history_that_went_back_stays_refused() {
        let history = History::of("back", "");
        let floor = history.highest();
        history.check(floor, 5, "", "").unwrap();
        // An answer that was overtaken by another one is not a step back.
        history.check(floor, 4, "", "").unwrap();
        assert_eq!(history.highest(), 5);
        assert_eq!(history.check(5, 4, "", "").unwrap_err().0, ErrorKind::StoreChanged);
        assert!(history.check(history.highest(), 1000, "", "").is_err());
        assert!(History::of("back", "").check(History::of("back", "").highest(), 1000, "", "").is_err());
    }
}
