//! The checked settings: addresses, limits, and the names to serve.

use crate::host::may_be_named;
use crate::names::Plan;
use crate::protocol::Protocol;
use crate::proxies::Proxies;
use crate::settings::{Settings, spec_error};
use crate::shared::Limits;
use crate::tls::Tls;
use crate::tokens::Gate;
use crate::unix_socket::PREFIX;
use frazil::{Error, ErrorKind, Result};
use std::fmt;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const USUAL_HTTP: &str = "127.0.0.1:8080";

/// The address or the path at which the server accepts connections of a protocol.
pub enum Endpoint {
    Address(SocketAddr),
    /// A socket that the service manager has opened.
    Socket(TcpListener, SocketAddr),
    /// The file of a Unix socket.
    Path(PathBuf),
}

impl Endpoint {
    /// Returns the address of a port; `None` for a Unix socket, which only programs of this machine reach.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Endpoint::Address(address) | Endpoint::Socket(_, address) => Some(*address),
            Endpoint::Path(_) => None,
        }
    }

    /// Returns whether no two sockets can listen on both.
    fn meets(&self, other: &Endpoint) -> bool {
        let covers = |a: SocketAddr, b: SocketAddr| a.ip().is_unspecified() && (a.is_ipv6() || b.is_ipv4());
        match (self.address(), other.address()) {
            (Some(a), Some(b)) => a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || covers(a, b) || covers(b, a)),
            (None, None) => self.to_string() == other.to_string(),
            _ => false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) | Endpoint::Socket(_, address) => address.fmt(f),
            Endpoint::Path(path) => write!(f, "{PREFIX}{}", path.display()),
        }
    }
}

pub struct Config {
    pub endpoints: Vec<(Protocol, Endpoint)>,
    pub plans: Vec<Plan>,
    pub gate: Gate,
    pub tls: Option<Tls>,
    pub hosts: Vec<String>,
    pub proxies: Proxies,
    pub limits: Limits,
    pub drain_delay: Duration,
    pub access_log: bool,
    pub threads: usize,
}

impl Config {
    /// Checks the settings. `sockets` come from the service manager.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and other codes for a wrong setting, spec, token or certificate.
    pub fn new(settings: Settings, sockets: Vec<(Protocol, TcpListener)>) -> Result<Self> {
        let config = Config::of_ports(settings, sockets)?;
        if config.plans.is_empty() {
            return Err(spec_error("nothing to serve: give NAME=SPEC, for example 'orders=standard store=local'".to_owned()));
        }
        Ok(config)
    }

    /// Checks the settings, which may name nothing to serve.
    ///
    /// # Errors
    /// Those of [`new`](Config::new).
    pub fn of_ports(settings: Settings, sockets: Vec<(Protocol, TcpListener)>) -> Result<Self> {
        let is_placed = !sockets.is_empty() || settings.resp.is_some();
        let usual = (!is_placed).then(|| USUAL_HTTP.to_owned());
        let given = [(Protocol::Http, settings.http.or(usual)), (Protocol::Resp, settings.resp), (Protocol::Admin, settings.admin)];
        let endpoints = endpoints(given, sockets)?;
        let plans = settings.named.into_iter().map(|(name, spec)| Plan::new(name, &spec)).collect::<Result<Vec<_>>>()?;
        if let Some(plan) = plans.iter().find(|plan| plan.is_lent() && endpoints.iter().all(|(protocol, _)| *protocol != Protocol::Resp)) {
            return Err(spec_error(format!("{} is lent over Redis' protocol: give --resp", plan.name)));
        }
        let gate = Gate::new(settings.tokens, plans.iter().map(|plan| plan.name.clone()).collect())?;
        let tls = Tls::new(settings.tls_cert, settings.tls_key, settings.tls_client_ca, settings.tls_client_crl)?;
        let far = endpoints.iter().filter_map(|(_, endpoint)| endpoint.address()).find(|address| !address.ip().is_loopback());
        let knows_clients = gate.is_closed() || tls.as_ref().is_some_and(Tls::knows_clients);
        if let Some(far) = far.filter(|_| !knows_clients && !settings.insecure.unwrap_or(false)) {
            return Err(spec_error(format!(
                "{far} can be reached from other machines: give --tokens, or --tls-client-ca, or --insecure to serve anyone who reaches it"
            )));
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let limits = Limits {
            count: limit("max-count", settings.max_count, 10_000, 1..=1_000_000)?,
            wait: Duration::from_millis(limit("max-wait-ms", settings.max_wait_ms, 1_000, 0..=600_000)?),
            connections: limit("max-connections", settings.max_connections, 10_000, 1..=1_000_000)?,
            connections_per_address: Some(limit("max-connections-per-address", settings.max_connections_per_address, 0, 0..=1_000_000)?)
                .filter(|most| *most > 0),
            ids_per_address: NonZero::new(limit("max-ids-per-address", settings.max_ids_per_address, 0, 0..=u32::MAX)?),
            resp_idle: Some(limit("resp-idle-ms", settings.resp_idle_ms, 0, 0..=86_400_000)?)
                .filter(|ms| *ms > 0)
                .map(Duration::from_millis),
        };
        let drain_delay = Duration::from_millis(limit("drain-delay-ms", settings.drain_delay_ms, 0, 0..=600_000)?);
        let threads = limit("threads", settings.threads, processors, 1..=1024)?;
        let hosts = settings.hosts.as_deref().map(hosts).transpose()?.unwrap_or_default();
        let proxies = settings.proxies.as_deref().map(Proxies::new).transpose()?.unwrap_or_default();
        let access_log = settings.access_log.unwrap_or(false);
        Ok(Config { endpoints, plans, gate, tls, hosts, proxies, limits, drain_delay, access_log, threads })
    }
}

/// Returns the endpoints in the order of the protocols.
fn endpoints(given: [(Protocol, Option<String>); 3], mut sockets: Vec<(Protocol, TcpListener)>) -> Result<Vec<(Protocol, Endpoint)>> {
    let mut endpoints: Vec<(Protocol, Endpoint)> = vec![];
    for (protocol, text) in given {
        let key = protocol.name();
        let socket = sockets.iter().position(|(its, _)| *its == protocol).map(|at| sockets.swap_remove(at).1);
        let endpoint = match (text, socket) {
            (None, None) => continue,
            (Some(text), None) => endpoint(protocol, &text)?,
            (None, Some(socket)) => {
                let at = socket.local_addr().map_err(|error| spec_error(format!("the socket {key} of the service manager: {error}")))?;
                Endpoint::Socket(socket, at)
            }
            (Some(text), Some(_)) => {
                let why = "and the service manager hands over a socket of that name: use one of them";
                return Err(spec_error(format!("{key}={text} is given, {why}")));
            }
        };
        if let Some((other, its)) = endpoints.iter().find(|(_, its)| its.meets(&endpoint)) {
            let (other, why) = (other.name(), "are one address: give each protocol its own");
            return Err(spec_error(format!("{other}={its} and {key}={endpoint} {why}")));
        }
        endpoints.push((protocol, endpoint));
    }
    Ok(endpoints)
}

/// Splits the list of host names.
fn hosts(text: &str) -> Result<Vec<String>> {
    let names: Vec<_> = text.split(',').map(|name| name.trim().trim_matches(['[', ']']).to_owned()).collect();
    match names.iter().find(|name| *name != "*" && !may_be_named(name)) {
        None => Ok(names),
        Some(name) => Err(spec_error(format!(
            "hosts={text:?}: {name:?} is not a host name or the address of one machine: give them without ports, with commas between"
        ))),
    }
}

fn limit<T: PartialOrd + fmt::Display + Copy>(key: &str, value: Option<T>, usual: T, allowed: RangeInclusive<T>) -> Result<T> {
    let value = value.unwrap_or(usual);
    if allowed.contains(&value) {
        return Ok(value);
    }
    let (low, high) = allowed.into_inner();
    Err(Error::new(ErrorKind::OutOfRange, format!("{key}={value} is out of range: {low} to {high}")))
}

/// Parses an address, or `unix:` and a path.
fn endpoint(protocol: Protocol, text: &str) -> Result<Endpoint> {
    let key = protocol.name();
    match text.strip_prefix(PREFIX).map(Path::new) {
        None => address(key, text).map(Endpoint::Address),
        Some(path) if path.is_absolute() => match UnixAddr::from_pathname(path) {
            Ok(_) => Ok(Endpoint::Path(path.to_owned())),
            Err(_) => Err(spec_error(format!("{key}={text:?} is too long for a Unix socket: use a path of at most 100 bytes"))),
        },
        Some(_) => Err(spec_error(format!("{key}={text:?} is not an absolute path: use {PREFIX}/run/frazil/{key}.sock"))),
    }
}

/// Parses an address; without a host it is the loopback interface.
fn address(key: &str, text: &str) -> Result<SocketAddr> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let found = whole.to_socket_addrs().map_err(|error| spec_error(format!("{key}={text:?} is not an address, HOST:PORT: {error}")))?;
    found.into_iter().next().ok_or_else(|| spec_error(format!("{key}={text:?}: the host has no address")))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (protocol, endpoint) in &self.endpoints {
            writeln!(f, "{:<6} {endpoint}", protocol.name())?;
        }
        let (tokens, tls) = (self.gate.is_closed(), self.tls.as_ref());
        let certificates = tls.is_some_and(Tls::knows_clients);
        let none = if certificates { "none" } else { "none: anyone who reaches the port is served" };
        writeln!(f, "tokens {}", if tokens { "required" } else { none })?;
        if !self.hosts.is_empty() {
            writeln!(f, "hosts  {}", self.hosts.join(", "))?;
        }
        if !self.proxies.are_none() {
            writeln!(f, "proxies {}", self.proxies)?;
        }
        if tls.is_some() {
            writeln!(f, "tls    {}", if certificates { "clients' certificates required" } else { "any client" })?;
        }
        self.plans.iter().try_for_each(|plan| writeln!(f, "name   {plan}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut Settings)) -> Result<Config> {
        let named = [("a".to_owned(), "standard node=1".to_owned())].into();
        let mut settings = Settings { named, ..Settings::default() };
        change(&mut settings);
        Config::new(settings, vec![])
    }

    #[test]
    fn the_default_is_loopback_and_other_addresses_need_insecure() {
        let endpoints = |config: Config| config.endpoints.iter().map(|(its, endpoint)| (*its, endpoint.to_string())).collect::<Vec<_>>();
        let at = |protocol, address: &str| vec![(protocol, address.to_owned())];
        assert_eq!(endpoints(config(|_| {}).unwrap()), at(Protocol::Http, USUAL_HTTP));
        assert_eq!(endpoints(config(|s| s.http = Some(":80".into())).unwrap()), at(Protocol::Http, "127.0.0.1:80"));
        assert_eq!(endpoints(config(|s| s.resp = Some(":81".into())).unwrap()), at(Protocol::Resp, "127.0.0.1:81"));
        let keys: [fn(&mut Settings) -> &mut Option<String>; 3] = [|s| &mut s.http, |s| &mut s.resp, |s| &mut s.admin];
        for key in keys {
            let far = |s: &mut Settings| *key(s) = Some("0.0.0.0:80".into());
            assert!(config(far).err().unwrap().to_string().contains("--insecure"));
            config(|s| {
                far(s);
                s.insecure = Some(true);
            })
            .unwrap();
        }
    }

    #[test]
    fn an_invalid_setting_is_named_with_its_value() {
        for (change, expected) in [
            (&(|s: &mut Settings| s.max_count = Some(0)) as &dyn Fn(&mut Settings), "max-count=0 is out of range: 1 to 1000000"),
            (&|s| s.drain_delay_ms = Some(600_001), "drain-delay-ms=600001 is out of range: 0 to 600000"),
            (&|s| s.resp_idle_ms = Some(86_400_001), "resp-idle-ms=86400001 is out of range: 0 to 86400000"),
            (&|s| s.named.clear(), "nothing to serve"),
            (&|s| s.hosts = Some("ids:80".into()), "\"ids:80\" is not a host name"),
            (&|s| s.http = Some("unix:ids.sock".into()), "is not an absolute path: use unix:/run/frazil/http.sock"),
            (&|s| s.resp = Some(format!("unix:/{}", "x".repeat(108))), "at most 100 bytes"),
            (&|s| s.http = Some("localhost".into()), "http=\"localhost\" is not an address"),
            (&|s| drop(s.named.insert("a b".into(), "standard node=1".into())), "is not a name"),
            (&|s| drop(s.named.insert("..".into(), "standard node=1".into())), "\"..\" is not a name"),
            (&|s| drop(s.named.insert("b".into(), "segment store=".into())), "b: "),
            (&|s| drop(s.named.insert("b".into(), "twitter datacentre=1".into())), "datacentre"),
        ] {
            let error = config(|settings| change(settings)).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_check_shows_the_hosts_and_the_proxies() {
        let shown =
            config(|s| (s.hosts, s.proxies) = (Some("ids.example, *".into()), Some("10.0.0.7,10.1.0.0/16".into()))).unwrap().to_string();
        assert!(shown.contains("hosts  ids.example, *\nproxies 10.0.0.7/32, 10.1.0.0/16\n"), "{shown}");
    }
}
