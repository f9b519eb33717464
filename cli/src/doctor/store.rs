//! The checks of a spec's store.

use super::super::listing::Listing;
use super::super::nodes::Namespace;
use super::super::screen::plain;
use super::Checks;
use frazil::ErrorKind;
use frazil::admin::lease::{Contract, Overlap};
use frazil::admin::store::Address;
use frazil::admin::system_ms;
use frazil::bindings::show_instant;
use std::time::{Duration, Instant};

/// The tolerated difference between this machine's clock and the store's.
const SKEW_MS: i64 = 200;
/// The number of requests, of which the median counts.
const ASKED: usize = 5;
const SLOW: Duration = Duration::from_millis(100);

pub(super) fn check(given: &str, name: &str, contract: &Contract, findings: &mut Checks) {
    let since = Instant::now();
    let mut namespace = match Namespace::connect(given, name, false) {
        Ok(namespace) => namespace,
        // The folder does not exist yet.
        Err(error) if error.kind() == ErrorKind::StoreUnsuitable && error.to_string().contains("does not exist") => {
            return findings.warn("store", error.to_string(), "the first process that starts creates it; check that it has the right");
        }
        Err(error) => return findings.error("store", &error),
    };
    let connected = since.elapsed();
    if namespace.is_missing() {
        let fix = "the first process that starts creates it, if it has the right; the statement to run it yourself is in docs/stores.md";
        return findings.warn(
            "store",
            format!("{}: it answers, but frazil's table or folder does not exist yet", namespace.address()),
            fix,
        );
    }
    let mut taken = Vec::new();
    let mut offsets = Vec::new();
    let mut listing = None;
    for _ in 0..ASKED {
        let (begun, before) = (Instant::now(), system_ms());
        match namespace.list() {
            Ok(loaded) => {
                taken.push(begun.elapsed());
                let middle = before + begun.elapsed().as_millis() as i64 / 2;
                offsets.extend(loaded.store_ms().map(|ms| ms - middle));
                listing = Some(loaded);
            }
            Err(error) => return findings.error("store", &error),
        }
    }
    taken.sort_unstable();
    offsets.sort_unstable();
    let middle = taken[taken.len() / 2];
    let text = format!("{}: it answers in {:.1} ms, connected in {:.0} ms", namespace.address(), ms(middle), ms(connected));
    if middle > SLOW || middle > contract.call_timeout() / 4 {
        findings.warn("store", text, "use a nearer store, or a longer window= and renew=");
    } else {
        findings.good("store", text);
    }
    let limit = contract.call_timeout();
    if connected > limit / 2 {
        let text = format!("connecting, with the login, takes {:.0} ms of the {:.0} ms that a call may take", ms(connected), ms(limit));
        findings.warn(
            "store",
            text,
            "use a longer renew= (a call may take 80 % of it, up to 5 s), or a cheaper login (etcd: --bcrypt-cost)",
        );
    }
    if let Err(error) = namespace.check_writes() {
        findings.error("store", &error);
    }
    durable(namespace.address(), findings);
    match offsets.get(offsets.len() / 2) {
        None => findings.good("skew", "the store has no clock: leases use this machine's"),
        Some(offset) if offset.abs() > SKEW_MS => {
            findings.warn(
                "skew",
                format!("this machine's clock is {} ms from the store's", -offset),
                "let NTP set both clocks; with a larger difference, leases fail with CLOCK_SKEW",
            );
        }
        Some(offset) => findings.good("skew", format!("this machine's clock is {} ms from the store's", -offset)),
    }
    if let Some(listing) = listing {
        match namespace.first_wait(contract) {
            _ if listing.is_begun() => health(&listing, name, contract, findings),
            Ok(first_wait) => empty(first_wait, name, contract, findings),
            Err(error) => findings.error("store", &error),
        }
    }
    match namespace.overlaps() {
        Ok(overlaps) => overlaps.iter().for_each(|overlap| twice(overlap, name, findings)),
        Err(error) => findings.error("store", &error),
    }
}

/// Reports a note of a process that found another process with its number.
fn twice(overlap: &Overlap, name: &str, findings: &mut Checks) {
    let Overlap { node, from_ms, to_ms, holder, by, .. } = overlap;
    let (from, to) = (show_instant(*from_ms), show_instant(*to_ms));
    let other = if by.is_empty() { "an unknown process".to_owned() } else { plain(by) };
    let text = format!(
        "{name}: IDs of {from} to {to} may have been issued twice: {} and {other} had node number {node} at once, because its record was \
         removed or changed from outside, or the store was restored from a backup",
        plain(holder)
    );
    findings.warn(
        "twice",
        text,
        "compare the rows of both from that time: docs/merge-audit.md; and find the cause of the change in the store",
    );
}

fn durable(address: &Address, findings: &mut Checks) {
    let evidence = if address.is_near() { "the folder's file system, owner and rights" } else { "the server's settings" };
    match address.passing() {
        Some(place) => findings.warn(
            "durable",
            format!("the records are on {place}: after their loss, IDs are unique only if no clock went back"),
            "stop all processes that use it, and use a folder on a durable disk or volume, store=file:/var/lib/frazil, or a store on the network",
        ),
        None => findings.good("durable", format!("the store keeps what it acknowledges, by {evidence}")),
    }
}

/// A namespace that no process has leased from.
fn empty(first_wait: Option<Duration>, name: &str, contract: &Contract, findings: &mut Checks) {
    match first_wait {
        None => findings.good("namespace", format!("{name}: empty, no process has leased from it")),
        Some(wait) => findings.warn(
            "namespace",
            format!("{name}: empty; the first start waits {} s, because the store may have lost writes", wait.as_secs_f64().round()),
            format!("if no ID of the namespace was ever issued, run {} before the first start to skip the wait", contract.beginning()),
        ),
    }
}

fn health(listing: &Listing, name: &str, contract: &Contract, findings: &mut Checks) {
    let (area, summary) = ("namespace", listing.summary());
    match listing.meta() {
        Some(meta) => {
            if let Some((what, fix)) = contract.mismatch(meta, listing.now_ms) {
                return findings.bad(area, format!("{name}: LAYOUT_MISMATCH: {what}"), fix);
            }
            if let Some(eras) = meta.planned() {
                let text = format!("{name}: its layout changes at {} to {}", show_instant(eras.at_ms), plain(eras.next));
                findings.warn(area, text, "start programs with that layout then; those with the present one issue no ID from then on");
            }
        }
        None => findings.bad(area, format!("{name}: its record cannot be read"), "docs/errors.md, STORE_CORRUPT"),
    }
    if listing.is_of_another_server() {
        findings.bad(
            area,
            format!("{name}: its record is from another server, or this server has restarted or was restored"),
            contract.acceptance(),
        );
    }
    if summary.unreadable > 0 {
        findings.warn(
            area,
            format!("{name}: {} records cannot be read, and their numbers are out of use", summary.unreadable),
            format!("`{}` lists them", contract.nodes_command()),
        );
    }
    let (used, nodes) = (summary.used(), summary.nodes);
    let text = format!("{name}: {used} of {nodes} node numbers are held");
    if nodes > 0 && used.saturating_mul(5) >= nodes.saturating_mul(4) {
        findings.warn(area, text, "docs/production.md, More processes than numbers");
    } else {
        findings.good(area, text);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
