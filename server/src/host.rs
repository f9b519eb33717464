//! The host of a request, and whether a web page of a stranger could ask for it.
//!
//! A browser asks for any host that a page names. So a name may be a stranger's that was made to stand for this machine ("DNS rebinding"). The
//! addresses of the loopback interface are safe, because browsers mark what a page asks of them. They do not mark what it asks of the
//! unspecified address or of an IPv4 address in IPv6, by which it reaches the same port.

use crate::names::has_plain_letters;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name in the DNS.
const LONGEST: usize = 253;

/// A host as a request names it.
pub struct Host<'a> {
    name: &'a [u8],
    /// With its colon; may be empty.
    port: &'a [u8],
    address: Option<IpAddr>,
}

impl<'a> Host<'a> {
    pub fn new(host: &'a [u8]) -> Self {
        let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let name = host[..host.len() - digits].strip_suffix(b":").unwrap_or(host);
        let address = std::str::from_utf8(name).ok().and_then(|name| match name.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?.parse().map(Ipv6Addr::into).ok(),
            None => name.parse().map(Ipv4Addr::into).ok(),
        });
        Host { name, port: &host[name.len()..], address }
    }

    /// Tells whether it is an address, and no other spelling of one.
    pub fn is_address(&self) -> bool {
        self.address.is_some_and(is_plain)
    }

    /// Tells whether a request without a token may ask for it: `localhost`, the address that the client has reached, one of the loopback
    /// interface if that is one, or one of `--hosts`.
    pub fn is_own(&self, reached: IpAddr, hosts: &[String]) -> bool {
        let is_reached = |its: IpAddr| its == reached || (its.is_loopback() && reached.is_loopback());
        let is_named = |own: &String| match self.address {
            _ if own == "*" => true,
            Some(its) => own.parse() == Ok(its),
            None => own.as_bytes().eq_ignore_ascii_case(self.name),
        };
        self.name.eq_ignore_ascii_case(b"localhost") || self.address.is_some_and(is_reached) || hosts.iter().any(is_named)
    }

    /// Returns what to do after it was refused.
    pub fn remedy(&self, reached: IpAddr, hosts: &[String]) -> String {
        let name = self.address.map_or_else(|| String::from_utf8_lossy(self.name).into_owned(), |its| its.to_string());
        if self.address.is_some_and(|its| !is_plain(its)) {
            let port = String::from_utf8_lossy(self.port);
            let reached = if reached.is_ipv6() { format!("[{reached}]") } else { reached.to_string() };
            return format!("web pages reach any server by it: ask for {reached}{port}");
        }
        if !may_be_named(&name) {
            return "it is neither a host name nor an address".to_owned();
        }
        format!("if clients reach the server by it, set --hosts={}, or give --tokens", [hosts, &[name]].concat().join(","))
    }
}

/// Tells whether `--hosts` may have it: a name, or an address without brackets.
pub fn may_be_named(name: &str) -> bool {
    name.parse().map_or_else(|_| (1..=LONGEST).contains(&name.len()) && has_plain_letters(name), is_plain)
}

/// Tells whether it is the address of one interface, in its own family.
fn is_plain(address: IpAddr) -> bool {
    !address.is_unspecified() && address == address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(host: &str, reached: &str) -> bool {
        Host::new(host.as_bytes())
            .is_own(reached.parse().unwrap(), &["ids.shop.svc".to_owned(), "10.0.0.5".to_owned(), "fd00::5".to_owned()])
    }

    #[test]
    fn hosts_that_no_strangers_name_can_stand_for() {
        let named = ["localhost", "LOCALHOST:8080", "ids.shop.svc:80", "IDS.shop.svc", "10.0.0.5", "10.0.0.5:80", "[FD00:0::5]:80"];
        for own in named {
            assert!(is_own(own, "127.0.0.1") && is_own(own, "::1") && is_own(own, "10.1.2.3"), "{own}");
        }
        for loopback in ["127.0.0.1:8080", "127.8.9.10", "[::1]:8080", "[0:0::1]"] {
            assert!(is_own(loopback, "127.0.0.1") && is_own(loopback, "::1") && !is_own(loopback, "10.1.2.3"), "{loopback}");
        }
        assert!(is_own("10.1.2.3:80", "10.1.2.3") && is_own("[fe80::1]", "fe80::1"));
        for foreign in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "::1",
            "[::1",
            "[127.0.0.1]",
            "[::1]x",
            "localhost:8080:80",
            "localhost:x",
            "user@localhost",
            "svc",
            "a.ids.shop.svc",
            "localhost/",
            "\u{fc}",
            // Other spellings of this machine: a browser changes some of them before it asks.
            "0.0.0.0",
            "0.0.0.0:8080",
            "[::]",
            "[::]:8080",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]:8080",
            "[::ffff:0.0.0.0]",
            "[::ffff:10.0.0.5]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "0",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "a.localhost",
            "localhost.",
            "[::1%lo]",
            "[fe80::1%25eth0]",
            "10.0.0.6",
            "[fd00::6]",
        ] {
            assert!(!is_own(foreign, "127.0.0.1") && !is_own(foreign, "::1") && !is_own(foreign, "10.0.0.5"), "{foreign}");
        }
        assert!(Host::new(b"any.example:1").is_own(Ipv4Addr::LOCALHOST.into(), &["*".to_owned()]));
    }

    #[test]
    fn each_remedy_works() {
        let hosts = ["ids.shop.svc".to_owned()];
        for host in ["0.0.0.0:8080", "[::]", "[::ffff:127.0.0.1]:80", "[::ffff:10.0.0.5]"] {
            for reached in ["127.0.0.1", "::1", "10.0.0.5"].map(|text| text.parse().unwrap()) {
                let remedy = Host::new(host.as_bytes()).remedy(reached, &hosts);
                let (_, other) = remedy.split_once("ask for ").unwrap();
                assert!(Host::new(other.as_bytes()).is_own(reached, &hosts), "{remedy}");
            }
        }
        for host in ["10.0.0.5:8080", "[fd00::5]:8080", "backend", "a_b:80", "a.localhost", "localhost."] {
            let host = Host::new(host.as_bytes());
            let remedy = host.remedy(Ipv4Addr::LOCALHOST.into(), &hosts);
            let value = remedy.split_once("--hosts=").unwrap().1.split_once(", ").unwrap().0;
            let named: Vec<_> = value.split(',').map(str::to_owned).collect();
            assert!(named.iter().all(|name| may_be_named(name)) && named[0] == hosts[0], "{remedy}");
            assert!(host.is_own(Ipv4Addr::LOCALHOST.into(), &named), "{remedy}");
        }
        for host in ["", "user@localhost", "[::1%lo]", "a/b", "\u{fc}"] {
            assert!(Host::new(host.as_bytes()).remedy(Ipv4Addr::LOCALHOST.into(), &hosts).starts_with("it is neither"), "{host}");
        }
    }
}
