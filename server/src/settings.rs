//! Settings, from three places: flags, then the environment, then a file.

use clap::{Args, FromArgMatches};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

const PREFIX: &str = "FRAZIL_SERVER_";
/// Lines of NAME=SPEC.
const NAMES: &str = "FRAZIL_SERVER_NAMES";

/// The settings, equal in all three places.
#[derive(Args, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The served names: a name, and what `Snowflake::open` takes; or `segment`, `tickets`, `buffered`, `lend`, and what those take
    #[arg(value_name = "NAME=SPEC")]
    #[serde(skip)]
    pub names: Vec<String>,
    #[arg(skip)]
    #[serde(rename = "names")]
    pub named: BTreeMap<String, String>,
    /// A TOML file with any of these settings, and the names in its table [names]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serve HTTP/1.1 and HTTP/2 here; `:8080` is this machine alone, `unix:/PATH` a Unix socket [127.0.0.1:8080, unless --resp is given]
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<String>,
    /// Serve Redis' protocol here, in the same form as --http
    #[arg(long, value_name = "ADDRESS")]
    pub resp: Option<String>,
    /// Serve /healthz, /readyz and /metrics here, in the same form as --http
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// A TOML file of tokens, read again on SIGHUP; with it, each client needs a token
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// TLS on all ports: a PEM file with the server's certificate, and the certificates that sign it; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The PEM file of its private key
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Serve only clients that have a certificate which one in this PEM file has signed
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// A PEM file with the revocation lists of these authorities: one of each that has signed a client's certificate; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub tls_client_crl: Option<PathBuf>,
    /// Listen beyond this machine, and serve every client, without --tokens and --tls-client-ca
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub insecure: Option<bool>,
    /// Without --tokens: the names and addresses in the requests of clients, with commas between, or * for any; localhost and the address
    /// that a client reaches are always allowed
    #[arg(long, value_name = "NAMES")]
    pub hosts: Option<String>,
    /// The addresses and networks of proxies that begin each connection to --http and --resp with a PROXY header, with commas between
    #[arg(long, value_name = "ADDRESSES")]
    pub proxies: Option<String>,
    /// The most IDs of one request [10000]
    #[arg(long, value_name = "N")]
    pub max_count: Option<usize>,
    /// The longest that a request waits for IDs [1000]
    #[arg(long, value_name = "MS")]
    pub max_wait_ms: Option<u64>,
    /// The most connections of each port [10000]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<usize>,
    /// The most connections of one client's address to each port except --admin; 0: no limit [0]
    #[arg(long, value_name = "N")]
    pub max_connections_per_address: Option<usize>,
    /// The most IDs that one client's address takes in a second, except from --admin; a request without IDs counts as one; 0: no limit [0]
    #[arg(long, value_name = "N")]
    pub max_ids_per_address: Option<u32>,
    /// Close a connection of Redis' protocol after this time without a command; 0: never [0]
    #[arg(long, value_name = "MS")]
    pub resp_idle_ms: Option<u64>,
    /// After SIGTERM, serve for this long while /readyz is 503 [0]
    #[arg(long, value_name = "MS")]
    pub drain_delay_ms: Option<u64>,
    /// Log each request, and each pipeline of Redis' protocol
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub access_log: Option<bool>,
    /// Threads that serve [one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl Settings {
    /// Completes the flags by the environment, and then by the file.
    ///
    /// # Errors
    /// `SPEC` for a file or a variable that cannot be understood.
    pub fn with_defaults(self) -> Result<Self> {
        let flags = self.with_names("the command line")?;
        let mut settings = flags.over(Settings::from_environment()?);
        if let Some(path) = settings.config.take() {
            settings = settings.over(Settings::from_file(&path)?);
        }
        Ok(settings)
    }

    /// The variables as flags, so that both are read alike.
    fn from_environment() -> Result<Self> {
        let command = Settings::augment_args(clap::Command::new("environment").no_binary_name(true));
        let suffix = |long: &str| long.to_uppercase().replace('-', "_");
        let known: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).chain(["names"]).map(suffix).collect();
        check_variables(&known)?;
        let mut settings = Settings::default();
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else { continue };
            let name = PREFIX.to_owned() + &suffix(long);
            let Some(value) = std::env::var_os(&name).filter(|value| !value.is_empty()) else { continue };
            let mut flag = OsString::from(format!("--{long}="));
            flag.push(value);
            let parsed = command.clone().try_get_matches_from([flag]).and_then(|matches| Settings::from_arg_matches(&matches));
            settings = settings.over(parsed.map_err(|error| spec_error(format!("{name}: {}", first_part(&error.to_string()))))?);
        }
        let names = std::env::var_os(NAMES).map(|names| names.into_string().map_err(|_| spec_error(format!("{NAMES} is not UTF-8"))));
        let names = names.transpose()?.unwrap_or_default();
        settings.names = names.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        settings.with_names(NAMES)
    }

    fn from_file(path: &std::path::Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| spec_error(format!("{}: {error}", path.display())))?;
        // The parser's error shows the line, which may hold a password: only the line number is shown.
        toml::from_str(&text)
            .map_err(|error| spec_error(format!("{}{}: {}", path.display(), line_of(&text, &error), without_value(error.message()))))
    }

    /// Splits each NAME=SPEC.
    fn with_names(mut self, source: &str) -> Result<Self> {
        for line in std::mem::take(&mut self.names) {
            let Some((name, spec)) = line.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace)) else {
                let near = did_you_mean(&line, ["check", "health", "begin"]);
                // Only a misspelt command is shown: a spec may hold a password.
                let given = if near.is_empty() { String::new() } else { format!("{line:?} is not a command{near}; ") };
                return Err(spec_error(format!(
                    "{source}: {given}give each served name as NAME=SPEC, for example 'orders=standard store=local'"
                )));
            };
            if self.named.insert(name.to_owned(), spec.to_owned()).is_some() {
                return Err(spec_error(format!("{source}: the name {name} is given twice")));
            }
        }
        Ok(self)
    }

    /// These settings, completed by those `below`. Each name is a separate setting.
    fn over(self, below: Settings) -> Self {
        let mut named = below.named;
        named.extend(self.named);
        macro_rules! first_of {
            ($($field:ident),*) => { Settings { names: vec![], named, $($field: self.$field.or(below.$field)),* } };
        }
        first_of! {
            config, http, resp, admin, tokens, tls_cert, tls_key, tls_client_ca, tls_client_crl, insecure,
            hosts, proxies, access_log, max_count, max_wait_ms, max_connections, max_connections_per_address,
            max_ids_per_address, resp_idle_ms, drain_delay_ms, threads
        }
    }
}

/// Refuses variables with a misspelt name. Others are ignored: Kubernetes sets `FRAZIL_SERVER_PORT` for a service of this name.
///
/// # Errors
/// `UNKNOWN_KEY`.
fn check_variables(known: &[String]) -> Result<()> {
    for (name, _) in std::env::vars_os() {
        let Some(its) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let near = did_you_mean(its, known.iter().map(String::as_str));
        if !near.is_empty() && !known.iter().any(|known| known == its) {
            return Err(Error::new(ErrorKind::UnknownKey, format!("{PREFIX}{its} is not a setting{near}")));
        }
    }
    Ok(())
}

pub fn spec_error(why: String) -> Error {
    Error::new(ErrorKind::Spec, why)
}

/// The line of a file that an error is about.
pub fn line_of(text: &str, error: &toml::de::Error) -> String {
    let line = |at: usize| text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
    error.span().map_or_else(String::new, |span| format!(":{}", line(span.start)))
}

/// The parser's `invalid type: string "...", expected ...` without the value.
fn without_value(text: &str) -> String {
    match (text.strip_prefix("invalid "), text.split_once(": "), text.rfind(", expected ")) {
        (Some(_), Some((what, _)), Some(at)) => format!("{what}{}", &text[at..]),
        _ => text.to_owned(),
    }
}

/// Returns the first paragraph of an error of clap, in one line.
fn first_part(text: &str) -> String {
    let lines: Vec<_> = text.trim_start_matches("error: ").lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        super::super::Arguments::command().debug_assert();
    }

    #[test]
    fn flag_overrides_the_file_for_each_name() {
        let read = |text: &str| toml::from_str::<Settings>(text).unwrap();
        let flags = Settings { http: Some(":1".into()), names: vec!["a=standard node=1".into()], ..Settings::default() };
        let file = read("http = ':2'\nresp = ':3'\nmax-count = 5\n[names]\na = 'twitter'\nb = 'leaf worker=1'");
        let settings = flags.with_names("flags").unwrap().over(file);
        assert_eq!([settings.http, settings.resp].map(Option::unwrap), [":1", ":3"]);
        assert_eq!(settings.max_count, Some(5));
        assert_eq!([&settings.named["a"], &settings.named["b"]], ["standard node=1", "leaf worker=1"]);
        assert!(toml::from_str::<Settings>("htpp = ':2'").is_err());
    }
}
