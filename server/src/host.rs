//! The host of a request, and the check that no foreign web page can use it.
//!
//! A browser connects to any host that a page names, so the owner of a name can point it at this machine ("DNS rebinding"). Loopback
//! addresses are safe, because browsers mark a page's requests to them. They do not mark requests to the unspecified address or to an IPv4
//! address in IPv6, which reach the same port.

use crate::names::has_plain_letters;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name in the DNS.
const LONGEST: usize = 253;

/// A host as a request names it.
pub struct Host<'a> {
    name: &'a [u8],
    /// The port with its colon; may be empty.
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

    /// Returns whether the host is an address in its plain spelling.
    pub fn is_address(&self) -> bool {
        self.address.is_some_and(is_plain)
    }

    /// Returns whether a request without a token may name this host: `localhost`, the address that the client reached, any loopback address
    /// if that is one, or one of `--hosts`.
    pub fn is_own(&self, reached: IpAddr, hosts: &[String]) -> bool {
        let is_reached = |its: IpAddr| its == reached || (its.is_loopback() && reached.is_loopback());
        let is_named = |own: &String| match self.address {
            _ if own == "*" => true,
            Some(its) => own.parse() == Ok(its),
            None => own.as_bytes().eq_ignore_ascii_case(self.name),
        };
        self.name.eq_ignore_ascii_case(b"localhost") || self.address.is_some_and(is_reached) || hosts.iter().any(is_named)
    }

    /// Returns the remedy for a refused host.
    pub fn remedy(&self, reached: IpAddr, hosts: &[String]) -> String {
        let name = self.address.map_or_else(|| String::from_utf8_lossy(self.name).into_owned(), |its| its.to_string());
        if self.address.is_some_and(|its| !is_plain(its)) {
            let port = String::from_utf8_lossy(self.port);
            let reached = if reached.is_ipv6() { format!("[{reached}]") } else { reached.to_string() };
            return format!("a foreign web page could use it for any server: request {reached}{port} instead");
        }
        if !may_be_named(&name) {
            return "it is neither a host name nor an address".to_owned();
        }
        format!("if clients reach the server by it, set --hosts={}, or give --tokens", [hosts, &[name]].concat().join(","))
    }
}

/// Returns whether `--hosts` accepts a text: a name, or an address without brackets.
pub fn may_be_named(name: &str) -> bool {
    name.parse().map_or_else(|_| (1..=LONGEST).contains(&name.len()) && has_plain_letters(name), is_plain)
}

/// Returns whether an address names one interface: neither a wildcard nor an IPv4 address in IPv6 form.
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
    fn foreign_names_are_not_own_hosts() {
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
            // Other spellings of this machine. A browser normalizes some of them before it sends them.
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
                let (_, other) = remedy.split_once("request ").unwrap();
                let other = other.strip_suffix(" instead").unwrap();
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
