//! The caller of a request: the host that it asked for, the web page that sent it, and its token.
//!
//! Without tokens, any page in a browser that reaches the port could send requests. So the [host](crate::host) must be one that no foreign
//! name can resolve to, and the page, if there is one, must be of that host.

use crate::host::Host;
use crate::peer::Peer;
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use crate::tokens::{Fingerprint, fingerprint};
use frazil::{Error, ErrorKind};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN, REFERER};
use hyper::{Request, Version};

/// The relation of the page to this host, as browsers send it (W3C, Fetch Metadata Request Headers).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub struct Caller<'a> {
    /// `None` where no token is needed.
    authorization: Option<&'a HeaderValue>,
}

impl<'a> Caller<'a> {
    /// Reads the headers about the caller. `mints` is false for a request that only reads.
    ///
    /// # Errors
    /// `SPEC` for a host that is missing, and for one of these headers that is given twice; `FORBIDDEN` for a foreign host or page.
    pub fn of(shared: &Shared, peer: Peer, mints: bool, request: &'a Request<Incoming>) -> Result<Self> {
        let (mut host, mut origin, mut referer, mut site, mut authorization) = (None, None, None, None, None);
        for (name, value) in request.headers() {
            let header = match name {
                _ if name == HOST => &mut host,
                _ if name == ORIGIN => &mut origin,
                _ if name == REFERER => &mut referer,
                _ if name == SEC_FETCH_SITE => &mut site,
                _ if name == AUTHORIZATION => &mut authorization,
                _ => continue,
            };
            if header.replace(value).is_some() {
                return Err(wrong(format!("the header {name} is given twice")));
            }
        }
        let host = host.map(HeaderValue::as_bytes);
        let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let host = match (host, target) {
            (Some(host), Some(target)) if !host.eq_ignore_ascii_case(target) => {
                return Err(wrong("the request has two different hosts".to_owned()));
            }
            // A browser always sends one; the health checks of some balancers send HTTP/1.0 without.
            (None, None) if request.version() != Version::HTTP_10 => return Err(wrong("the header Host is missing".to_owned())),
            (host, target) => host.or(target),
        };
        if !shared.gate.is_closed() {
            // A certificate proves the host's name already.
            if let Some(given) = host.filter(|_| shared.tls.is_none()) {
                let (host, reached) = (Host::new(given), peer.reached());
                // Probes may reach the operator's port by another address, and DNS rebinding needs a name.
                let may_read = !mints && host.is_address();
                if !may_read && !host.is_own(reached, &shared.hosts) {
                    let why = "is not allowed for requests without a token";
                    let remedy = host.remedy(reached, &shared.hosts);
                    return Err(Refusal::forbidden(format!("the host {:?} {why}: {remedy}", short(given))));
                }
            }
            let is_own = |page: &&[u8]| host.is_some_and(|host| page.eq_ignore_ascii_case(host));
            // Pages may link to paths that only read.
            let foreign = [origin, referer.filter(|_| mints)].into_iter().flatten().map(page_of).find(|page| !is_own(page));
            // "same-site" is another port, or a sibling's name.
            if foreign.is_some() || site.is_some_and(|site| site != "same-origin" && site != "none") {
                let page = foreign.map_or_else(|| "another site".to_owned(), short);
                let why = "without tokens, only programs and pages of this host are served: give --tokens";
                return Err(Refusal::forbidden(format!("the request comes from a web page of {page:?}; {why}")));
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

/// Returns the host and port of a page, without its path, which may hold a secret.
fn page_of(header: &HeaderValue) -> &[u8] {
    let page = header.as_bytes();
    let of_scheme = [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| page.strip_prefix(scheme));
    of_scheme.map_or(b"an unknown address", |rest| rest.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default())
}

/// Shows a host without the part before an @, which may be a password.
fn short(host: &[u8]) -> String {
    let host = host.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    String::from_utf8_lossy(host).chars().take(64).collect()
}
