//! What the settings mean: addresses, limits, and what is served.

use crate::lend;
use crate::names::Plan;
use crate::settings::{Settings, spec_error};
use crate::tokens::Gate;
use frazil::{Error, ErrorKind, Result, did_you_mean};
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::time::Duration;

const USUAL_HTTP: &str = "127.0.0.1:8080";

/// What bounds a request, and who may send one.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The most IDs.
    pub count: usize,
    /// The longest wait for them.
    pub wait: Duration,
    /// The most connections of a port.
    pub connections: usize,
}

pub struct Config {
    pub http: Option<SocketAddr>,
    pub resp: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub plans: Vec<Plan>,
    pub gate: Gate,
    pub limits: Limits,
    pub threads: usize,
}

impl Config {
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and what else is wrong with a setting, a spec or a token.
    pub fn new(settings: Settings) -> Result<Self> {
        let usual = settings.resp.is_none().then(|| USUAL_HTTP.to_owned());
        let http = address("http", settings.http.or(usual))?;
        let (resp, admin) = (address("resp", settings.resp)?, address("admin", settings.admin)?);
        let plans = settings.named.into_iter().map(|(name, spec)| Plan::new(name, &spec)).collect::<Result<Vec<_>>>()?;
        if plans.is_empty() {
            return Err(spec_error("nothing to serve: give NAME=SPEC, for example 'orders=standard store=local'".to_owned()));
        }
        let gate = Gate::new(settings.tokens)?;
        if let Some(plan) = plans.iter().find(|plan| plan.is_lent() && resp.is_none()) {
            return Err(spec_error(format!("{} is lent, which takes Redis' protocol: give --resp", plan.name)));
        }
        let served = |name: &String| plans.iter().any(|plan| plan.name == *name || plan.name == lend::ALL);
        if let Some(name) = gate.names().into_iter().find(|name| !served(name)) {
            let near = did_you_mean(&name, plans.iter().map(|plan| plan.name.as_str()));
            return Err(Error::new(ErrorKind::UnknownKey, format!("a token has a right on {name:?}, which is not served here{near}")));
        }
        let far = [http, resp, admin].into_iter().flatten().find(|address| !address.ip().is_loopback());
        if let Some(far) = far.filter(|_| !gate.is_closed() && !settings.insecure.unwrap_or(false)) {
            return Err(spec_error(format!(
                "{far} can be reached from other machines: give --tokens, or --insecure to serve anyone who reaches it"
            )));
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let limits = Limits {
            count: limit("max-count", settings.max_count, 10_000, 1..=1_000_000)?,
            wait: Duration::from_millis(limit("max-wait-ms", settings.max_wait_ms, 1_000, 0..=600_000)?),
            connections: limit("max-connections", settings.max_connections, 10_000, 1..=1_000_000)?,
        };
        Ok(Config { http, resp, admin, plans, gate, limits, threads: limit("threads", settings.threads, processors, 1..=1024)? })
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

/// Without a host it is this machine's own.
fn address(key: &str, text: Option<String>) -> Result<Option<SocketAddr>> {
    let Some(text) = text else { return Ok(None) };
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.clone() };
    let found = whole.to_socket_addrs().map_err(|error| spec_error(format!("{key}={text:?} is not an address, HOST:PORT: {error}")))?;
    found.into_iter().next().map(Some).ok_or_else(|| spec_error(format!("{key}={text:?}: the host has no address")))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (protocol, address) in [("http", self.http), ("resp", self.resp), ("admin", self.admin)] {
            if let Some(address) = address {
                writeln!(f, "{protocol:<6} {address}")?;
            }
        }
        writeln!(f, "tokens {}", if self.gate.is_closed() { "required" } else { "none: anyone who reaches the port is served" })?;
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
        Config::new(settings)
    }

    #[test]
    fn this_machine_alone_unless_told() {
        assert_eq!(config(|_| {}).unwrap().http.unwrap().to_string(), USUAL_HTTP);
        assert_eq!(config(|s| s.http = Some(":80".into())).unwrap().http.unwrap().to_string(), "127.0.0.1:80");
        assert!(config(|s| s.resp = Some(":81".into())).unwrap().http.is_none());
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
    fn what_is_wrong_is_named() {
        for (change, told) in [
            (&(|s: &mut Settings| s.max_count = Some(0)) as &dyn Fn(&mut Settings), "max-count=0 is out of range: 1 to 1000000"),
            (&|s| s.named.clear(), "nothing to serve"),
            (&|s| s.http = Some("localhost".into()), "http=\"localhost\" is not an address"),
            (&|s| drop(s.named.insert("a b".into(), "standard node=1".into())), "is not a name"),
            (&|s| drop(s.named.insert("b".into(), "segment store=".into())), "b: "),
            (&|s| drop(s.named.insert("b".into(), "twitter datacentre=1".into())), "datacentre"),
        ] {
            let error = config(|settings| change(settings)).err().unwrap().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
