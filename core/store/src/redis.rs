//! `store=redis://...`: records in Redis or a compatible server, such as Valkey.
//!
//! # Addresses
//! `redis://[user:password@]host[:port][/database]`, `rediss://...` for TLS, and on Unix
//! `redis+unix:///path[?db=N]`. TLS trusts the system's root certificates. For a private authority,
//! set the environment variable `SSL_CERT_FILE` to its PEM file. `SSL_CERT_FILE` and `SSL_CERT_DIR`
//! then replace all of the system's certificates.
//!
//! # Keys
//! A namespace has two keys. Neither expires, and the braces keep them together:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `frazil:{NAMESPACE}:meta` | string | the meta record |
//! | `frazil:{NAMESPACE}:slots` | hash | node number in decimal → record, and `meta` → a copy of the meta record |
//!
//! An account needs `ACL SETUSER name on >password ~frazil:* +eval +info +time +get +set +hget +hset
//! +hscan`, `+select` for a database other than 0, and `+scan` for `frazil nodes --all`.
//!
//! # Promises
//! A Redis that fails over, restarts, or loses its disk may lose acknowledged writes. [`Loaded::server`]
//! makes that visible. It consists of `run_id`, which changes with every start of a server, and
//! `master_replid`, which changes with every promotion. `run_id` alone is not enough, because a primary
//! may be demoted, lose its last writes to its replacement, and be promoted again, with the same
//! `run_id`. (`master_replid` also changes when the first replica is added, and an hour after the last
//! one left. The caution is unnecessary in these cases, but does no harm.)
//!
//! The server must be a primary with `maxmemory-policy noeviction` (or without `maxmemory`), not part of
//! a Redis Cluster.

mod address;
mod command;
mod reading;
mod refusal;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod wire;

use super::limits::ONE_RECORD;
use super::limits::{ALL_RECORDS, too_large};
use super::resp::Reply;
use super::{Answer, Ask, LEAVE, Loaded, NODES_END, Store, Swap, Swapped, Which};
use ::redis::{Cmd, cmd};
use address::Target;
use command::{as_swap, load, share_a_script, swap};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use wire::Wire;

const LOAD: &str = concat!(include_str!("redis/begin.lua"), include_str!("redis/load.lua"));
const SWAP: &str = concat!(include_str!("redis/begin.lua"), include_str!("redis/swap.lua"));

/// The field of the slots' hash that is not a slot.
const META: &str = "meta";

/// A connection to a server that was found suitable.
struct Redis {
    wire: Wire,
    looked: Instant,
}

/// The most swaps of one script, which take the server about 0.15 ms.
const AT_ONCE: usize = 16;

/// A number of namespaces that no server has.
const MOST_NAMESPACES: usize = 100_000;
/// The most pages of SCAN, enough for a thousand million keys.
const MOST_PAGES: usize = if cfg!(test) { 1_000 } else { 1_000_000 };

/// The longest time between two checks of the memory policy. Loads always check it.
const LOOK_AGAIN: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(60) };

/// Connects, and checks whether the server can keep a lease.
///
/// # Errors
/// `SPEC` for a malformed URL; `STORE_*` for everything else.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let target = Target::parse(url)?;
    let mut redis = Redis { wire: Wire::open(&target, timeout)?, looked: Instant::now() };
    let account = target.account();
    if let Some(password) = account.password() {
        redis.ask("AUTH", cmd("AUTH").arg(account.username()).arg(password), ONE_RECORD, Some)?;
    }
    // This precedes SELECT, which a sentinel does not support.
    let info = redis.ask("INFO", &cmd("INFO"), ONE_RECORD, text)?;
    redis.check_server(&info)?;
    if account.db() != 0 {
        redis.ask("SELECT", cmd("SELECT").arg(account.db()), ONE_RECORD, Some)?;
    }
    Ok(Box::new(redis))
}

impl Redis {
    /// Sends a command, and reads its reply as a given type.
    fn ask<T>(&mut self, name: &str, command: &Cmd, room: usize, read: fn(Reply) -> Option<T>) -> Result<T> {
        let reply = self.wire.call(command, room)?;
        self.read(name, reply, read)
    }

    fn read<T>(&self, name: &str, reply: Reply, read: fn(Reply) -> Option<T>) -> Result<T> {
        match reply {
            Reply::Refused(error) => {
                let (code, details) = error.split_once(' ').unwrap_or((&error, ""));
                Err(refusal::server(self.wire.address(), name, code, details))
            }
            reply => read(reply).ok_or_else(|| refusal::not_redis(self.wire.address(), name)),
        }
    }

    /// # Errors
    /// `STORE_*` if the server is no longer suitable.
    fn look_again(&mut self) -> Result<()> {
        if self.looked.elapsed() >= LOOK_AGAIN {
            let info = self.ask("INFO", &cmd("INFO"), ONE_RECORD, text)?;
            self.check_server(&info)?;
            self.looked = Instant::now();
        }
        Ok(())
    }

    /// Returns the outcome of each swap of one script.
    ///
    /// # Errors
    /// `STORE_*`, if the script has no outcomes.
    fn swapped(&self, reply: Reply, swaps: usize) -> Result<Vec<Result<Swapped>>> {
        let replies = self.read("EVAL", reply, list)?;
        if replies.len() != swaps {
            return Err(refusal::not_redis(self.wire.address(), "EVAL"));
        }
        Ok(replies.into_iter().map(|reply| self.outcome(reply)).collect())
    }

    fn outcome(&self, reply: Reply) -> Result<Swapped> {
        match self.read("EVAL", reply, text)?.as_str() {
            "done" => Ok(Swapped::Done),
            "differs" => Ok(Swapped::Differs),
            time => time.parse().map(Swapped::OutOfTime).map_err(|_| refusal::not_redis(self.wire.address(), "EVAL")),
        }
    }

    /// # Errors
    /// Returns the error of a server that cannot be a store, from the text of `INFO`.
    fn check_server(&self, info: &str) -> Result<()> {
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim()
        };
        let refuse = |kind, why: &str| Err(Error::new(kind, format!("store={} {why}", self.wire.address())));
        if field("loading") == "1" {
            return refuse(ErrorKind::StoreUnreachable, "is still loading its data").map_err(Error::retry_soon);
        }
        // Valkey uses the second field.
        let mode = [field("redis_mode"), field("server_mode")].concat();
        match (mode.as_str(), field("role")) {
            ("sentinel", _) => refuse(
                ErrorKind::StoreUnsuitable,
                "is a sentinel, which keeps no data: name the primary that it watches (SENTINEL GET-MASTER-ADDR-BY-NAME names it), \
                 or a name or proxy that follows the primary",
            ),
            ("cluster", _) => refuse(
                ErrorKind::StoreUnsuitable,
                "belongs to a Redis Cluster, which is not supported: use a server with cluster-enabled no, \
                 alone or with replicas; a small one serves thousands of generators",
            ),
            (_, "master") => self.keeps(field("maxmemory"), field("maxmemory_policy")),
            _ => refuse(ErrorKind::StoreReadonly, "is a replica, which takes no writes: name the primary"),
        }
    }

    /// # Errors
    /// `STORE_UNSUITABLE` if the server may drop keys when its memory is full.
    fn keeps(&self, limit: &str, policy: &str) -> Result<()> {
        if limit == "0" || policy == "noeviction" {
            return Ok(());
        }
        let address = self.wire.address();
        let policy = if policy.is_empty() { "unknown".to_owned() } else { plain(policy) };
        let why = format!(
            "store={address} may forget node numbers when its memory is full: maxmemory-policy is {policy} and must be noeviction; \
             fix it with: CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
        );
        Err(Error::new(ErrorKind::StoreUnsuitable, why))
    }

    /// # Errors
    /// `STORE_CORRUPT` for data that frazil did not write.
    fn text(&self, namespace: &str, what: &str, record: Vec<u8>) -> Result<String> {
        String::from_utf8(record).map_err(|_| self.foreign(namespace, &format!("the record of {what} is not text")))
    }

    fn foreign(&self, namespace: &str, what: &str) -> Error {
        let address = self.wire.address();
        let why = format!("store={address} namespace={namespace}: {what}; frazil did not write it: {LEAVE}");
        Error::new(ErrorKind::StoreCorrupt, why)
    }

    fn slot(&self, namespace: &str, field: Vec<u8>, record: Vec<u8>) -> Result<(u64, String)> {
        let name = String::from_utf8_lossy(&field);
        // "+7" and "07" would be two fields of one slot.
        let node = name.parse().ok().filter(|node: &u64| *node < NODES_END && node.to_string() == name);
        let node = node.ok_or_else(|| self.foreign(namespace, &format!("its hash of slots has the field {}", shown(&name))))?;
        Ok((node, self.text(namespace, &format!("node number {node}"), record)?))
    }
}

/// The value of a setting in the form that the error shows: bare if it is a word, like all values
/// that Redis knows.
fn plain(value: &str) -> String {
    if value.bytes().all(|byte| byte.is_ascii_graphic()) && value.len() < 30 { value.to_owned() } else { shown(value) }
}

/// A text, in any of the forms that a server may send.
fn text(reply: Reply) -> Option<String> {
    match reply {
        Reply::Text(bytes) => String::from_utf8(bytes).ok(),
        Reply::Status(text) => Some(text),
        _ => None,
    }
}

fn list(reply: Reply) -> Option<Vec<Reply>> {
    if let Reply::List(parts) = reply { Some(parts) } else { None }
}

fn bytes(reply: Reply) -> Option<Vec<u8>> {
    if let Reply::Text(bytes) = reply { Some(bytes) } else { None }
}

fn texts(reply: Reply) -> Option<Vec<Vec<u8>>> {
    list(reply)?.into_iter().map(bytes).collect()
}

/// The reply of SCAN: the position to continue from, and some keys.
fn page(reply: Reply) -> Option<(String, Vec<Vec<u8>>)> {
    let Ok([next, keys]) = <[Reply; 2]>::try_from(list(reply)?) else { return None };
    Some((text(next)?, texts(keys)?))
}

impl Store for Redis {
    fn set_timeout(&mut self, timeout: Duration) {
        self.wire.set_timeout(timeout);
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        self.wire.restart_timeout();
        match which {
            Which::One(node) => self.ask_for(namespace, &[&node.to_string()], ONE_RECORD),
            Which::These(nodes) => {
                let nodes: Vec<_> = nodes.iter().map(u64::to_string).collect();
                self.ask_for(namespace, &nodes.iter().map(String::as_str).collect::<Vec<_>>(), ONE_RECORD)
            }
            Which::Page(first) => self.page(namespace, first),
        }
    }

    fn swap(&mut self, namespace: &str, asked: &Swap) -> Result<Swapped> {
        self.wire.restart_timeout();
        self.look_again()?;
        let reply = self.wire.call(&swap(&[(namespace, asked)]), ONE_RECORD)?;
        self.swapped(reply, 1)?.pop().expect("one outcome")
    }

    /// Sends commands without waiting for replies. The server serves other clients between any two
    /// commands, so few swaps share one.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        self.wire.restart_timeout();
        if let Err(error) = self.look_again() {
            return vec![Err(error); asks.len()];
        }
        let parts: Vec<_> = asks.chunk_by(share_a_script).flat_map(|asks| asks.chunks(AT_ONCE)).collect();
        let command = |part: &&[Ask<'_>]| match **part {
            [Ask::Load(namespace, node)] => load(namespace, &[&node.to_string()]),
            _ => swap(&part.iter().filter_map(as_swap).collect::<Vec<_>>()),
        };
        let (replies, end) = self.wire.call_many(parts.len(), &mut parts.iter().map(command), ONE_RECORD);
        let mut replies = replies.into_iter();
        let answers = |part: &[Ask<'_>]| {
            let made = match (replies.next(), part) {
                (Some(reply), [Ask::Load(namespace, _)]) => self.loaded(namespace, reply).map(|loaded| vec![Ok(Answer::Loaded(loaded))]),
                (Some(reply), swaps) => {
                    self.swapped(reply, swaps.len()).map(|made| made.into_iter().map(|one| one.map(Answer::Swapped)).collect())
                }
                (None, _) => Err(end.clone().expect_err("a reply is missing only after an error")),
            };
            made.unwrap_or_else(|error| vec![Err(error); part.len()])
        };
        parts.into_iter().flat_map(answers).collect()
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        let mut names = HashSet::new();
        let mut cursor = "0".to_owned();
        for _ in 0..MOST_PAGES {
            self.wire.restart_timeout();
            let mut scan = cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg("frazil:{*}:meta").arg("COUNT").arg(1000);
            let (next, keys) = self.ask("SCAN", &scan, ALL_RECORDS, page)?;
            let name = |key: &Vec<u8>| str::from_utf8(key).ok()?.strip_prefix("frazil:{")?.strip_suffix("}:meta").map(str::to_owned);
            // SCAN may return a key twice.
            names.extend(keys.iter().filter_map(name));
            if names.len() > MOST_NAMESPACES {
                break;
            }
            if next == "0" {
                return Ok(names.into_iter().collect());
            }
            cursor = next;
        }
        let (kind, why) = too_large(ALL_RECORDS);
        Err(Error::new(kind, format!("store={}: {why}", self.wire.address())))
    }
}
