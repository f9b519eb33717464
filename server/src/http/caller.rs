//! The caller of a request: the host that it asked for, the web page that sent it, and its token.
//!
//! Where no token is needed, any page in a browser that reaches the port could ask. So the host must be one that no stranger's name can stand
//! for, or a name lookup that changes ("DNS rebinding") makes a page one of ours; and the page, if there is one, must be of that host.

use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use crate::tokens::{Fingerprint, fingerprint};
use frazil::{Error, ErrorKind};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Request, Version};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Sent by browsers: the relation of the page to this host (W3C, Fetch Metadata Request Headers).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub struct Caller<'a> {
    /// `None` where no token is needed.
    authorization: Option<&'a HeaderValue>,
}

impl<'a> Caller<'a> {
    /// Reads the headers that tell of the caller.
    ///
    /// # Errors
    /// `SPEC` for a host that is missing, and for one of these headers that is given twice; `FORBIDDEN` for a foreign host or page.
    pub fn of(shared: &Shared, request: &'a Request<Incoming>) -> Result<Self> {
        let (mut host, mut origin, mut site, mut authorization) = (None, None, None, None);
        for (name, value) in request.headers() {
            let place = match name {
                _ if name == HOST => &mut host,
                _ if name == ORIGIN => &mut origin,
                _ if name == SEC_FETCH_SITE => &mut site,
                _ if name == AUTHORIZATION => &mut authorization,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(wrong(format!("the header {name} is given twice")));
            }
        }
        let host = host.map(HeaderValue::as_bytes);
        let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let host = match (host, target) {
            (Some(host), Some(target)) if !host.eq_ignore_ascii_case(target) => {
                return Err(wrong("the request has two hosts, and they differ".to_owned()));
            }
            // A browser always sends one; the health checks of some balancers send HTTP/1.0 without.
            (None, None) if request.version() != Version::HTTP_10 => return Err(wrong("the header Host is missing".to_owned())),
            (host, target) => host.or(target),
        };
        if !shared.gate.is_closed() {
            // A certificate proves the host's name already.
            if let Some(host) = host.filter(|host| shared.tls.is_none() && !is_own(host, &shared.hosts)) {
                let why = "is neither an address, localhost, nor one of --hosts, and a request without a token needs one of them";
                // What stands before an @ may be a password.
                let host = host.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
                return Err(Refusal::forbidden(format!("the host {:?} {why}", short(host))));
            }
            let is_own_page = |origin: &HeaderValue| {
                let page = origin.as_bytes();
                let scheme = [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| page.strip_prefix(scheme));
                scheme.zip(host).is_some_and(|(page, host)| page.eq_ignore_ascii_case(host))
            };
            // "same-site" is another port, or a sibling's name.
            let is_foreign = site.is_some_and(|site| site != "same-origin" && site != "none");
            if is_foreign || origin.is_some_and(|origin| !is_own_page(origin)) {
                let page = origin.map_or_else(|| "another site".to_owned(), |origin| short(origin.as_bytes()));
                let why = "and without tokens only programs, and pages of this host, are served: --tokens";
                return Err(Refusal::forbidden(format!("a web page of {page:?} asks, {why}")));
            }
        }
        Ok(Caller { authorization: authorization.filter(|_| shared.gate.is_closed()) })
    }

    /// Returns the fingerprint of the token, if one was given.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an authorization that is not a bearer token.
    pub fn token(&self) -> Result<Option<Fingerprint>> {
        let Some(given) = self.authorization else { return Ok(None) };
        match given.as_bytes().split_at_checked("bearer ".len()) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(Some(fingerprint(token.trim_ascii()))),
            _ => Err(Refusal::unauthorized("the authorization is not of the form: Bearer TOKEN")),
        }
    }
}

fn wrong(why: String) -> Refusal {
    Error::new(ErrorKind::Spec, why).into()
}

fn short(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(64).collect()
}

/// Tells whether a host, with its port or without, is one that no stranger's name can stand for.
fn is_own(host: &[u8], hosts: &[String]) -> bool {
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let name = host[..host.len() - digits].strip_suffix(b":").unwrap_or(host);
    if name.eq_ignore_ascii_case(b"localhost") {
        return true;
    }
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let is_address = match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => name.parse::<Ipv4Addr>().is_ok(),
    };
    is_address || hosts.iter().any(|own| own == "*" || own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_no_strangers_name_can_stand_for() {
        let hosts = ["ids.shop.svc".to_owned()];
        for own in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "10.1.2.3", "[::1]:8080", "[fe80::1]", "ids.shop.svc:80", "IDS.shop.svc"]
        {
            assert!(is_own(own.as_bytes(), &hosts), "{own}");
        }
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
        ] {
            assert!(!is_own(foreign.as_bytes(), &hosts), "{foreign}");
        }
        assert!(is_own(b"any.example:1", &["*".to_owned()]));
    }
}
