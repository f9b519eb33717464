//! `frazils://`: TLS to a frazil-server, by the options `ca`, `cert` and `key`, which name files in PEM.

use super::super::hosts::{Failure, Hosts, lost, said};
use super::super::socket::{Deadline, Timed};
use super::super::stream::Stream;
use frazil_base::error::Result;
use std::io;

/// The TLS configuration of an address. `None` if its connections are plain.
pub(super) struct Tls(#[cfg(feature = "tls")] Option<std::sync::Arc<rustls::ClientConfig>>);

#[cfg(feature = "tls")]
impl Tls {
    /// Reads the files. Changed files take effect with the next connection.
    ///
    /// # Errors
    /// `SPEC` for an unknown option, and for a file with a wrong content; `STORE_UNREACHABLE` if
    /// no authority to trust is known.
    pub(super) fn read(hosts: &Hosts) -> Result<Self> {
        use super::super::stream::{Files, config};
        let mut files = Files::default();
        for (name, file) in &hosts.options {
            let file = Some(file.as_str());
            match name.as_str() {
                "ca" => files.ca = file,
                "cert" => files.cert = file,
                "key" => files.key = file,
                _ => return Err(not_an_option(hosts, name)),
            }
        }
        if hosts.scheme == "frazils" {
            return config(&files).map(|config| Tls(Some(config))).map_err(|failure| hosts.error(failure));
        }
        if !hosts.options.is_empty() {
            return Err(hosts.wrong("ca, cert and key are for frazils://"));
        }
        Ok(Tls(None))
    }

    pub(super) fn dial(&self, host: &str, port: u16, deadline: Deadline) -> Result<Box<dyn Stream>, Failure> {
        use super::super::stream::session;
        let session = self.0.as_ref().map(|config| session(config, host)).transpose()?;
        let timed = Timed::dial(host, port, deadline).map_err(|error| lost(&error))?;
        Ok(match session {
            Some(session) => Box::new(rustls::StreamOwned::new(session, timed)),
            None => Box::new(timed),
        })
    }
}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// # Errors
    /// `SPEC` for any option, because without TLS none is known.
    pub(super) fn read(hosts: &Hosts) -> Result<Self> {
        hosts.options.first().map_or(Ok(Tls()), |(name, _)| Err(not_an_option(hosts, name)))
    }

    pub(super) fn dial(&self, host: &str, port: u16, deadline: Deadline) -> Result<Box<dyn Stream>, Failure> {
        Ok(Box::new(Timed::dial(host, port, deadline).map_err(|error| lost(&error))?))
    }
}

fn not_an_option(hosts: &Hosts, name: &str) -> frazil_base::error::Error {
    hosts.wrong(&format!("the options are ca, cert and key of frazils:// (each a PEM file), not {}", said(name)))
}

/// Returns the remedy of an error about TLS.
#[cfg(feature = "tls")]
pub(super) fn hint(error: &io::Error, is_handshake: bool) -> &'static str {
    use rustls::{AlertDescription, CertificateError, Error};
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; name the PEM file of the authority that signed its certificate with ?ca=FILE, or set SSL_CERT_FILE to it"
        }
        // With TLS 1.3 the server sends this alert after the handshake.
        Some(Error::AlertReceived(AlertDescription::CertificateRequired)) => "; it wants a certificate: add ?cert=FILE&key=FILE",
        Some(Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::BadCertificate | AlertDescription::DecryptError)) => {
            "; an authority of its --tls-client-ca must have signed the certificate of cert=FILE"
        }
        None | Some(Error::InvalidMessage(_)) if is_handshake => "; if it does not speak TLS, write frazil://",
        _ => "",
    }
}

#[cfg(not(feature = "tls"))]
pub(super) fn hint(_error: &io::Error, _is_handshake: bool) -> &'static str {
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a URL with one letter too few would send the token unencrypted.
    #[test]
    fn certificate_of_a_url_without_tls_is_refused() {
        let read = |url: &str| Tls::read(&Hosts::parse(url, 7380).unwrap()).map(drop).map_err(|error| error.to_string());
        assert!(read("frazil://h?ca=/a.pem").unwrap_err().contains("ca, cert and key"));
        assert_eq!(read("frazil://h"), Ok(()));
    }
}
