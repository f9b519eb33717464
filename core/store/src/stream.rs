//! A connection whose waits end at its deadline: a [`Timed`] socket, or TLS on one.

use super::socket::Timed;
use std::io::{Read, Write};

pub(super) trait Stream: Read + Write + Send {
    fn timed(&mut self) -> &mut Timed;

    /// Returns whether the other side has sent bytes that were not read.
    fn has_unread(&mut self) -> bool;

    /// Returns whether the TLS handshake is still in progress.
    fn handshaking(&self) -> bool {
        false
    }
}

impl Stream for Timed {
    fn timed(&mut self) -> &mut Timed {
        self
    }

    fn has_unread(&mut self) -> bool {
        Timed::has_unread(self)
    }
}

#[cfg(feature = "tls")]
pub(super) use tls::{Files, config, session};

#[cfg(feature = "tls")]
mod tls {
    use super::{Stream, Timed};
    use frazil_base::error::ErrorKind;
    use frazil_base::secret;
    use rustls::pki_types::pem::{Error as PemError, PemObject};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use std::io::{self, BufRead, Read};
    use std::sync::Arc;

    impl Stream for StreamOwned<ClientConnection, Timed> {
        fn timed(&mut self) -> &mut Timed {
            &mut self.sock
        }

        /// Processes messages of TLS itself, such as session tickets, because they are not replies.
        fn has_unread(&mut self) -> bool {
            while self.sock.has_unread()
                && self.conn.read_tls(&mut AtOnce(&self.sock)).is_ok_and(|count| count > 0)
                && self.conn.process_new_packets().is_ok()
            {}
            self.conn.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
        }

        fn handshaking(&self) -> bool {
            self.conn.is_handshaking()
        }
    }

    /// A socket that is read without waiting.
    struct AtOnce<'a>(&'a Timed);

    impl Read for AtOnce<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read_at_once(buffer)
        }
    }

    /// The kind of the failure, and the text after the store's address.
    type DialFailure = (ErrorKind, String);

    /// The files of a URL's options, in PEM.
    #[derive(Default)]
    pub(crate) struct Files<'a> {
        /// The authority to trust instead of the system's.
        pub(crate) ca: Option<&'a str>,
        /// The client's certificate, and its key.
        pub(crate) cert: Option<&'a str>,
        pub(crate) key: Option<&'a str>,
    }

    /// The configuration of a client. It names the provider, because the process-wide default may
    /// be missing or belong to the program.
    ///
    /// # Errors
    /// `SPEC` for a file with a wrong content; `STORE_UNREACHABLE` if no trusted authority is
    /// known.
    pub(crate) fn config(files: &Files<'_>) -> Result<Arc<ClientConfig>, DialFailure> {
        let identity = match (files.cert, files.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => {
                let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("key", key, &error))?;
                Some((certificates("cert", cert)?, own))
            }
            _ => {
                return Err((ErrorKind::Spec, "cert and key are given together: the client's certificate, and its private key".to_owned()));
            }
        };
        let roots = match files.ca {
            Some(file) => roots_of(file)?,
            None => roots_of_system()?,
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| (ErrorKind::StoreUnreachable, format!("TLS cannot begin: {error}")))?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                (ErrorKind::Spec, format!("cert and key do not go together, or are of a kind that is not known: {error}"))
            })?,
        };
        Ok(Arc::new(config))
    }

    /// A session with a host, whose certificate must be issued for that name.
    ///
    /// # Errors
    /// As [`config`].
    pub(crate) fn session(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection, DialFailure> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| (ErrorKind::Spec, "no certificate can be issued for such a host name".to_owned()))?;
        ClientConnection::new(Arc::clone(config), name).map_err(|error| (ErrorKind::StoreUnreachable, format!("TLS cannot begin: {error}")))
    }

    fn roots_of_system() -> Result<RootCertStore, DialFailure> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            let fix = "install ca-certificates, or set SSL_CERT_FILE to a PEM file";
            let text = format!("this machine has no root certificates to check the server's with{why}: {fix}");
            return Err((ErrorKind::StoreUnreachable, text));
        }
        Ok(roots)
    }

    fn roots_of(file: &str) -> Result<RootCertStore, DialFailure> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", file)? {
            roots.add(certificate).map_err(|error| (ErrorKind::Spec, format!("ca={}: {error}", secret::file(file))))?;
        }
        Ok(roots)
    }

    fn certificates(option: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, DialFailure> {
        let found = CertificateDer::pem_file_iter(file).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        let found = found.and_then(|all| if all.is_empty() { Err(PemError::NoItemsFound) } else { Ok(all) });
        found.map_err(|error| wrong(option, file, &error))
    }

    /// The error's own text is not shown, because it could contain the file's content.
    fn wrong(option: &str, file: &str, error: &PemError) -> DialFailure {
        let what = if option == "key" { "private key" } else { "certificate" };
        let file = secret::file(file);
        let why = match error {
            PemError::Io(error) => format!("{option}={file}: {error}"),
            _ => format!("{option}={file}: no {what} in PEM form in it"),
        };
        (ErrorKind::Spec, why)
    }
}
