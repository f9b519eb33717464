//! The commands that mint, and those that clients of Redis send at the beginning and the end of a connection.

use super::reply::Reply;
use super::session::Session;
use super::store;
use crate::mint;
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use crate::tokens::{Right, fingerprint};
use crate::unread_answers;
use crate::yielding::in_pieces;
use frazil::{Error, ErrorKind};
use std::ops::Range;

/// The longest name of a command, for a lookup in capitals without allocation.
const LONGEST_NAME: usize = 16;

/// The largest batch that is sent together with the answers around it. A larger batch is sent by itself.
const SENT_TOGETHER: usize = 500;
/// The largest such batch while the unread answers of all connections exceed their budget.
const FEW_TOGETHER: usize = 50;

/// The bytes of the longest number as a string of an array: `$20`, the digits and the sign, and two ends of lines.
const LONGEST_ITEM: usize = 27;

/// The words of a request, at least one.
struct Words<'a> {
    bytes: &'a [u8],
    places: &'a [Range<usize>],
}

impl<'a> Words<'a> {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn get(&self, n: usize) -> Option<&'a [u8]> {
        self.places.get(n).map(|place| &self.bytes[place.clone()])
    }

    fn is(&self, n: usize, word: &str) -> bool {
        self.get(n).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Returns a word as text; U+FFFD, which no name or number has, where the word is missing or is not UTF-8.
    fn text(&self, n: usize) -> &'a str {
        self.get(n).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("\u{fffd}")
    }
}

/// Answers a request, and returns whether it succeeded.
pub async fn answer(shared: &Shared, session: &mut Session, bytes: &[u8], places: &[Range<usize>], reply: &mut Reply) -> bool {
    let words = Words { bytes, places };
    let mut name = [0; LONGEST_NAME];
    let given = words.get(0).unwrap_or_default();
    let name = match name.get_mut(..given.len()) {
        Some(name) => {
            name.copy_from_slice(given);
            name.make_ascii_uppercase();
            &*name
        }
        None => given,
    };
    let port = &shared.metrics.resp;
    // These do not count for the rate. QUIT and requests of a web page end the connection, so that later commands of the page are not run. A lent
    // store has its own limit, and other clients of this address must not keep a lease from being extended, or its program from logging in.
    let is_free = matches!(name, b"QUIT" | b"POST" | b"HOST:" | b"AUTH" | b"HELLO" | b"FRAZIL.STORE");
    let begun = if is_free { Ok(()) } else { shared.begin(session.peer.address()) };
    let done = match name {
        _ if begun.is_err() => begun,
        b"FRAZIL.NEXT" => next(shared, session, &words, reply).await,
        b"INCR" => increment(shared, session, &words, reply).await,
        b"INCRBY" => increment_by(shared, session, &words, reply).await,
        b"FRAZIL.STORE" => {
            let words: Vec<_> = (1..words.len()).map(|n| words.text(n)).collect();
            store::answer(shared, session, &words, reply).await
        }
        _ => {
            let before = reply.bytes.len();
            other(shared, session, name, &words, reply);
            // The reply already has the command's own error, which begins with its code.
            if let Some((b'-', error)) = reply.bytes[before..].split_first() {
                let error = String::from_utf8_lossy(error);
                let (code, text) = error.trim_end().split_once(' ').unwrap_or((&error, ""));
                port.refused(code);
                if matches!(code, "NOAUTH" | "WRONGPASS") {
                    shared.refusal_log.log("resp", session.peer, code, text);
                }
                return false;
            }
            Ok(())
        }
    };
    match &done {
        Ok(()) => port.answered(),
        Err(refusal) => {
            port.refused(refusal.code);
            shared.refusal_log.log_access("resp", session.peer, refusal);
            reply.error(&refusal.to_resp());
        }
    }
    done.is_ok()
}

/// `FRAZIL.NEXT name [COUNT n]`: IDs as strings; with COUNT exactly n in an array.
async fn next(shared: &Shared, session: &mut Session, words: &Words<'_>, reply: &mut Reply) -> Result<()> {
    if words.len() != 2 && !(words.len() == 4 && words.is(2, "COUNT")) {
        return Err(syntax("FRAZIL.NEXT name [COUNT n]"));
    }
    let name = shared.name(&session.client(), Right::Mint, words.text(1))?;
    if words.len() == 2 {
        reply.number(mint::one(name, shared.limits.wait).await?);
        return Ok(());
    }
    let mut charge = shared.count(&session.client(), "COUNT", words.text(3))?;
    if charge.count > if unread_answers::are_over_budget() { FEW_TOGETHER } else { SENT_TOGETHER } {
        session.room = Some(unread_answers::reserve(name, charge.count, shared.limits.wait).await?);
    }
    let ids = mint::many(name, charge.count, shared.limits.wait).await?;
    charge.made(ids.len());
    reply.array(ids.len());
    // Reserved at once, because a growing buffer leaves holes in memory.
    reply.bytes.reserve(LONGEST_ITEM * ids.len());
    in_pieces(&ids, |ids| ids.iter().for_each(|id| reply.number(*id))).await;
    Ok(())
}

/// `INCR name`: an ID as an integer, as a counter of Redis returns it.
async fn increment(shared: &Shared, session: &Session, words: &Words<'_>, reply: &mut Reply) -> Result<()> {
    if words.len() != 2 {
        return Err(syntax("INCR name"));
    }
    single(shared, session, words, reply).await
}

async fn single(shared: &Shared, session: &Session, words: &Words<'_>, reply: &mut Reply) -> Result<()> {
    let name = shared.name(&session.client(), Right::Mint, words.text(1))?;
    reply.integer(mint::one(name, shared.limits.wait).await?);
    Ok(())
}

/// `INCRBY name n`: the last of n consecutive numbers of a segment, all of which are the client's; `INCRBY name 1` is an INCR.
async fn increment_by(shared: &Shared, session: &Session, words: &Words<'_>, reply: &mut Reply) -> Result<()> {
    if words.len() != 3 {
        return Err(syntax("INCRBY name n"));
    }
    // Many libraries send this for an INCR.
    if words.get(2) == Some(b"1") {
        return single(shared, session, words, reply).await;
    }
    let name = shared.name(&session.client(), Right::Lease, words.text(1))?;
    if !name.is_segment() {
        return Err(Refusal::unknown(format!(
            "{} is not a segment, so it has no ranges of numbers: use FRAZIL.NEXT {} COUNT n",
            name.name, name.name
        )));
    }
    let mut charge = shared.count(&session.client(), "n", words.text(2))?;
    // Charged even if no row is found, because the tries drop numbers.
    charge.made(charge.count);
    let row = mint::in_a_row(name, charge.count, shared.limits.wait).await?;
    if row.step != 1 {
        let why = format!(
            "the numbers of {} are {} apart, and INCRBY needs consecutive ones: use FRAZIL.NEXT {} COUNT n",
            name.name, row.step, name.name
        );
        return Err(Error::new(ErrorKind::OutOfRange, why).into());
    }
    reply.integer(mint::last(&row));
    Ok(())
}

fn syntax(form: &str) -> Refusal {
    Error::new(ErrorKind::Spec, format!("the command is: {form}")).into()
}

fn other(shared: &Shared, session: &mut Session, name: &[u8], words: &Words<'_>, reply: &mut Reply) {
    match name {
        b"HELLO" => hello(shared, session, words, reply),
        b"AUTH" => {
            let secret = match words.len() {
                2 => words.get(1),
                3 => words.get(2),
                _ => return wrong_arguments(name, reply),
            };
            if log_in(shared, session, secret.unwrap_or_default(), reply) {
                reply.simple("OK");
            }
        }
        b"QUIT" => {
            session.is_over = true;
            reply.simple("OK");
        }
        // A web page can make a browser send HTTP here, with commands in its body.
        b"POST" | b"HOST:" => {
            session.is_over = true;
            shared.refusal_log.log(
                "resp",
                session.peer,
                "FORBIDDEN",
                "a web page, or another client of HTTP, uses the port of Redis' protocol",
            );
            reply.error("ERR this port does not speak HTTP: use that of --http");
        }
        b"RESET" => {
            *session = Session::new(session.id, session.peer);
            reply.is_3 = false;
            reply.simple("RESET");
        }
        // As in Redis, all other commands need a login.
        _ if shared.gate.is_closed() && !session.token.is_some_and(|token| shared.gate.knows(&token)) => {
            reply.error("NOAUTH Authentication required.");
        }
        b"PING" => match (words.len(), words.get(1)) {
            (1, _) => reply.simple("PONG"),
            (2, Some(text)) => reply.bulk(text),
            _ => wrong_arguments(name, reply),
        },
        b"ECHO" => match (words.len(), words.get(1)) {
            (2, Some(text)) => reply.bulk(text),
            _ => wrong_arguments(name, reply),
        },
        b"SELECT" => match (words.len(), words.get(1)) {
            (2, Some(b"0")) => reply.simple("OK"),
            (2, _) => reply.error("ERR DB index is out of range: there is one, 0"),
            _ => wrong_arguments(name, reply),
        },
        b"CLIENT" => client(session, words, reply),
        b"COMMAND" => {
            if words.is(1, "COUNT") {
                reply.integer(COMMANDS.split(", ").count() as i64)
            } else if words.is(1, "DOCS") {
                reply.map(0)
            } else {
                reply.array(0)
            }
        }
        b"INFO" => reply.bulk(info().as_bytes()),
        b"CONFIG" if words.is(1, "GET") && words.len() > 2 => config(words, reply),
        b"GET" | b"MGET" | b"GETEX" | b"GETSET" => reply.error("ERR reading mints no ID: use INCR name, or FRAZIL.NEXT name [COUNT n]"),
        _ => {
            let short: String = String::from_utf8_lossy(name).chars().take(64).collect();
            reply.error(&format!("ERR unknown command '{short}': {COMMANDS}"));
        }
    }
}

const COMMANDS: &str =
    "FRAZIL.NEXT, FRAZIL.STORE, INCR, INCRBY, AUTH, CLIENT, COMMAND, CONFIG GET, ECHO, HELLO, INFO, PING, QUIT, RESET, SELECT";

fn wrong_arguments(name: &[u8], reply: &mut Reply) {
    let name = String::from_utf8_lossy(name).to_lowercase();
    reply.error(&format!("ERR wrong number of arguments for '{name}' command"));
}

fn log_in(shared: &Shared, session: &mut Session, secret: &[u8], reply: &mut Reply) -> bool {
    if !shared.gate.is_closed() {
        reply.error("ERR Client sent AUTH, but no tokens are set");
        return false;
    }
    let token = fingerprint(secret);
    if !shared.gate.knows(&token) {
        reply.error("WRONGPASS the token is not known");
        return false;
    }
    session.token = Some(token);
    true
}

/// `HELLO [2|3 [AUTH user token] [SETNAME name]]`
fn hello(shared: &Shared, session: &mut Session, words: &Words<'_>, reply: &mut Reply) {
    let is_3 = match words.get(1) {
        None => reply.is_3,
        Some(b"2") => false,
        Some(b"3") => true,
        Some(_) => return reply.error("NOPROTO unsupported protocol version"),
    };
    let mut at = 2;
    let mut label = None;
    while at < words.len() {
        if words.is(at, "AUTH") && at + 2 < words.len() {
            if !log_in(shared, session, words.get(at + 2).unwrap_or_default(), reply) {
                return;
            }
            at += 3;
        } else if words.is(at, "SETNAME") && at + 1 < words.len() {
            label = words.get(at + 1);
            at += 2;
        } else {
            return reply.error("ERR Syntax error in HELLO option");
        }
    }
    if shared.gate.is_closed() && !session.token.is_some_and(|token| shared.gate.knows(&token)) {
        return reply
            .error("NOAUTH HELLO must be called with the client already authenticated, otherwise: HELLO <proto> AUTH <user> <token>");
    }
    if !label.is_none_or(|label| session.set_label(label)) {
        return reply.error(LONG_LABEL);
    }
    reply.is_3 = is_3;
    reply.map(7);
    for (key, value) in [("server", "frazil"), ("version", env!("CARGO_PKG_VERSION"))] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    for (key, value) in [("proto", if is_3 { 3 } else { 2 }), ("id", session.id as i64)] {
        reply.bulk(key.as_bytes());
        reply.integer(value);
    }
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}

/// Answers for the settings that programs read at the start.
fn config(words: &Words<'_>, reply: &mut Reply) {
    let asked: Vec<_> = SETTINGS.iter().filter(|(key, _)| (2..words.len()).any(|n| words.is(n, key))).collect();
    reply.map(asked.len());
    for (key, value) in asked {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

const SETTINGS: [(&str, &str); 3] = [("appendonly", "no"), ("databases", "1"), ("save", "")];

const LONG_LABEL: &str = "ERR the connection's name is longer than 64 bytes";

/// Handles the commands in which libraries describe themselves and their connection.
fn client(session: &mut Session, words: &Words<'_>, reply: &mut Reply) {
    if words.is(1, "ID") {
        reply.integer(session.id as i64);
    } else if words.is(1, "SETNAME") && words.len() == 3 {
        if session.set_label(words.get(2).unwrap_or_default()) { reply.simple("OK") } else { reply.error(LONG_LABEL) }
    } else if words.is(1, "GETNAME") {
        if session.label().is_empty() { reply.null() } else { reply.bulk(session.label()) }
    } else if words.is(1, "SETINFO") && words.len() == 4 {
        reply.simple("OK");
    } else {
        reply.error("ERR unknown subcommand of CLIENT: ID, SETNAME, GETNAME, SETINFO");
    }
}

fn info() -> String {
    // Libraries read this name and the server's version.
    format!(
        "# Server\r\nserver_name:frazil\r\nredis_version:{0}\r\nfrazil_version:{0}\r\nredis_mode:standalone\r\nrole:master\r\n",
        env!("CARGO_PKG_VERSION")
    )
}
