//! TLS: the server's certificate and key, the authorities of clients' certificates, and their revocation lists, from files that a reload reads
//! again.

use crate::protocol::Protocol;
use crate::settings::spec_error;
use arc_swap::ArcSwap;
use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode, SliceReader, Tag, Tagged};
use frazil::Result;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{Error as TlsError, RootCertStore, ServerConfig};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The time limit of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The encrypted bytes that a connection keeps while its socket accepts none. The budget of unread answers does not see them.
const UNSENT: usize = 16 * 1024;

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_crl: Option<PathBuf>,
}

/// The configurations of the ports. With HTTP, HTTP/2 is negotiated in the handshake. On the admin port a client may come without a
/// certificate, because probes have none.
struct Configs {
    http: Arc<ServerConfig>,
    resp: Arc<ServerConfig>,
    admin: Arc<ServerConfig>,
    /// The Unix time at which the first certificate of the chain expires; 0 where one cannot be read.
    expires: i64,
}

pub struct Tls {
    files: Files,
    configs: ArcSwap<Configs>,
}

impl Tls {
    /// Reads the files; `None` where no file is given.
    ///
    /// # Errors
    /// `SPEC` for a file without the others that it needs, and for an invalid one.
    pub fn new(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_ca: Option<PathBuf>,
        client_crl: Option<PathBuf>,
    ) -> Result<Option<Self>> {
        if client_crl.is_some() && client_ca.is_none() {
            return Err(spec_error("tls-client-crl is given without tls-client-ca: the file with the authorities of the lists".to_owned()));
        }
        let (certificate, key) = match (certificate, key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) if client_ca.is_none() => return Ok(None),
            (Some(_), None) => return Err(spec_error("tls-cert is given without tls-key: the file with its private key".to_owned())),
            (None, _) => {
                let given = if client_ca.is_some() { "tls-client-ca" } else { "tls-key" };
                return Err(spec_error(format!("{given} is given without tls-cert: the file with the server's certificate")));
            }
        };
        let files = Files { certificate, key, client_ca, client_crl };
        let configs = ArcSwap::from_pointee(files.read()?);
        Ok(Some(Tls { files, configs }))
    }

    /// Reads the files again. An invalid file changes nothing, and open connections continue.
    ///
    /// # Errors
    /// Those of [`new`](Tls::new).
    pub fn reload(&self) -> Result<()> {
        self.configs.store(Arc::new(self.files.read()?));
        Ok(())
    }

    /// Returns the Unix time, in seconds, at which the first certificate of the chain expires; 0 where one cannot be read.
    pub fn expires(&self) -> i64 {
        self.configs.load().expires
    }

    /// Returns whether clients need a certificate.
    pub fn knows_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Performs the handshake. Returns the stream, and whether the client has the certificate that it needs, if any.
    ///
    /// # Errors
    /// What is wrong with the client's certificate; `None` for any other failure.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        protocol: Protocol,
    ) -> std::result::Result<(TlsStream<S>, bool), Option<String>> {
        let configs = self.configs.load();
        let config = Arc::clone(match protocol {
            Protocol::Http => &configs.http,
            Protocol::Resp => &configs.resp,
            Protocol::Admin => &configs.admin,
        });
        drop(configs);
        let accepted = TlsAcceptor::from(config).accept_with(stream, |session| session.set_buffer_limit(Some(UNSENT)));
        let stream = tokio::time::timeout(HANDSHAKE, accepted).await.map_err(|_| None)?;
        let stream = stream.map_err(|error| match error.get_ref()?.downcast_ref() {
            Some(wrong @ (TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented)) => Some(wrong.to_string()),
            _ => None,
        })?;
        let is_known = !self.knows_clients() || stream.get_ref().1.peer_certificates().is_some();
        Ok((stream, is_known))
    }
}

impl Files {
    fn read(&self) -> Result<Configs> {
        let chain = certificates("tls-cert", &self.certificate)?;
        let expires = chain.iter().map(|certificate| expiry(certificate).unwrap_or(0)).min().unwrap_or(0);
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            let what = "a private key in PEM (PKCS #8, PKCS #1 or SEC 1), without a password: `openssl pkey -in FILE` removes one";
            wrong("tls-key", &self.key, &error, what)
        })?;
        // The provider that the core's stores use, because a second one would double the program's cryptography.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (required, optional) = match &self.client_ca {
            None => (WebPkiClientVerifier::no_client_auth(), WebPkiClientVerifier::no_client_auth()),
            Some(path) => {
                let invalid = |error: &dyn std::fmt::Display| spec_error(format!("tls-client-ca={}: {error}", path.display()));
                let mut roots = RootCertStore::empty();
                for certificate in certificates("tls-client-ca", path)? {
                    roots.add(certificate).map_err(|error| invalid(&error))?;
                }
                let revoked = self.client_crl.as_deref().map(revocations).transpose()?.unwrap_or_default();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).with_crls(revoked);
                let refused = |error: VerifierBuilderError| match (&error, &self.client_crl) {
                    (VerifierBuilderError::InvalidCrl(_), Some(path)) => {
                        let wanted = "lists of version 2 with a number, as in RFC 5280 (openssl ca: crlnumber, crl_extensions)";
                        spec_error(format!("tls-client-crl={} is broken: it must have {wanted}", path.display()))
                    }
                    _ => invalid(&error),
                };
                let optional = verifier.clone().allow_unauthenticated().build().map_err(refused)?;
                (verifier.build().map_err(refused)?, optional)
            }
        };
        let config = |verifier| {
            let versions = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
            let builder = versions.map_err(|error| spec_error(format!("TLS: {error}")))?.with_client_cert_verifier(verifier);
            let mut config = builder.with_single_cert(chain.clone(), key.clone_key()).map_err(|error| self.refused(error))?;
            if self.client_ca.is_some() {
                // A resumed session is not verified again, so it would outlive its client's certificate.
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
            Ok(config)
        };
        let with_http = |mut config: ServerConfig| {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Arc::new(config)
        };
        let resp = config(required)?;
        Ok(Configs { http: with_http(resp.clone()), resp: Arc::new(resp), admin: with_http(config(optional)?), expires })
    }

    fn refused(&self, error: TlsError) -> frazil::Error {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        spec_error(match error {
            TlsError::InconsistentKeys(_) => {
                format!(
                    "tls-key={key} is not the key of the first certificate in tls-cert={certificate}: put the certificate of the server before those that sign it"
                )
            }
            other => format!("tls-cert={certificate} and tls-key={key}: {other}"),
        })
    }
}

/// Returns the `notAfter` of a certificate (RFC 5280, 4.1), in Unix seconds. Skips everything else.
fn expiry(certificate: &[u8]) -> der::Result<i64> {
    let mut all = SliceReader::new(AnyRef::from_der(certificate)?.value())?;
    let mut signed = SliceReader::new(AnyRef::decode(&mut all)?.value())?;
    // A version, which an old certificate lacks, and the serial number.
    if AnyRef::decode(&mut signed)?.tag().is_context_specific() {
        AnyRef::decode(&mut signed)?;
    }
    let (_algorithm, _issuer) = (AnyRef::decode(&mut signed)?, AnyRef::decode(&mut signed)?);
    let mut validity = SliceReader::new(AnyRef::decode(&mut signed)?.value())?;
    let (_not_before, not_after) = (AnyRef::decode(&mut validity)?, AnyRef::decode(&mut validity)?);
    let since_1970 = match not_after.tag() {
        Tag::UtcTime => UtcTime::try_from(not_after)?.to_unix_duration(),
        _ => GeneralizedTime::try_from(not_after)?.to_unix_duration(),
    };
    Ok(since_1970.as_secs().cast_signed())
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    all(key, path, "one or more certificates in PEM")
}

/// Reads revocation lists, one of each authority, because of several lists only the first would count, however old it is.
fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let lists: Vec<CertificateRevocationListDer<'static>> = all("tls-client-crl", path, "one or more certificate revocation lists in PEM")?;
    let mut issuers = BTreeSet::new();
    if lists.iter().filter_map(|list| issuer(list).ok()).all(|issuer| issuers.insert(issuer)) {
        return Ok(lists);
    }
    Err(spec_error(format!("tls-client-crl={} has two lists of authorities of one name: keep the newest one", path.display())))
}

/// Returns the name of the authority of a revocation list (RFC 5280, 5.1), as it is encoded.
fn issuer(list: &[u8]) -> der::Result<&[u8]> {
    let mut all = SliceReader::new(AnyRef::from_der(list)?.value())?;
    let mut signed = SliceReader::new(AnyRef::decode(&mut all)?.value())?;
    let (_version, _algorithm) = (AnyRef::decode(&mut signed)?, AnyRef::decode(&mut signed)?);
    Ok(AnyRef::decode(&mut signed)?.value())
}

/// Reads all items of a kind, at least one.
fn all<T: PemObject>(key: &str, path: &Path, wanted: &str) -> Result<Vec<T>> {
    let found = T::pem_file_iter(path).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let found = found.and_then(|all| if all.is_empty() { Err(PemError::NoItemsFound) } else { Ok(all) });
    found.map_err(|error| wrong(key, path, &error, wanted))
}

/// Makes the error for an invalid file, without the parser's own text, which could show its content.
fn wrong(key: &str, path: &Path, error: &PemError, wanted: &str) -> frazil::Error {
    let shown = path.display();
    spec_error(match error {
        PemError::Io(error) => format!("{key}={shown} cannot be read: {error}"),
        PemError::NoItemsFound => format!("{key}={shown} is empty: it must have {wanted}"),
        _ => format!("{key}={shown} is broken: it must have {wanted}"),
    })
}
