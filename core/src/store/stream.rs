//! A connection whose waits end at its deadline: a [`Timed`] socket, or TLS on one.

use super::socket::Timed;
use std::io::{Read, Write};

pub(super) trait Stream: Read + Write + Send {
    fn timed(&mut self) -> &mut Timed;

    /// Whether TLS is not yet agreed on.
    fn handshaking(&self) -> bool {
        false
    }
}

impl Stream for Timed {
    fn timed(&mut self) -> &mut Timed {
        self
    }
}

#[cfg(feature = "tls")]
pub(super) use tls::session;

#[cfg(feature = "tls")]
mod tls {
    use super::{Stream, Timed};
    use crate::error::ErrorKind;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use std::sync::Arc;

    impl Stream for StreamOwned<ClientConnection, Timed> {
        fn timed(&mut self) -> &mut Timed {
            &mut self.sock
        }

        fn handshaking(&self) -> bool {
            self.conn.is_handshaking()
        }
    }

    /// TLS that trusts the system's roots. The provider is named here: the process-wide default may be
    /// missing or belong to the program.
    ///
    /// # Errors
    /// A kind, and a text that is to follow the store's address.
    pub(in crate::store) fn session(host: &str) -> Result<ClientConnection, (ErrorKind, String)> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| (ErrorKind::Spec, "no certificate can be made out to such a host name".to_owned()))?;
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            let mend = "install ca-certificates, or set SSL_CERT_FILE to a PEM file";
            let text = format!("this machine has no root certificates to check the server's with{why}: {mend}");
            return Err((ErrorKind::StoreUnreachable, text));
        }
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_root_certificates(roots).with_no_client_auth())
            .and_then(|config| ClientConnection::new(Arc::new(config), name))
            .map_err(|error| (ErrorKind::StoreUnreachable, format!("TLS cannot begin: {error}")))
    }
}
