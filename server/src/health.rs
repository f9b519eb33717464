//! The health check for images without a shell: asks whether the server with these settings is ready.

use crate::config::{Config, Endpoint};
use crate::protocol::Protocol;
use crate::settings::spec_error;
use frazil::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use socket2::{SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The time for each step, which is a probe's own usual limit.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The limit of a reply in bytes; no reply is as long.
const LONGEST: u64 = 1 << 16;

/// Asks `/readyz` of the admin port. Returns whether the server is ready, and its reply or the reason why there is none.
///
/// # Errors
/// `SPEC` where the settings give no admin port, or leave its number to the system.
pub fn ask(config: &Config) -> Result<(bool, String)> {
    let endpoint = config.endpoints.iter().find(|(protocol, _)| *protocol == Protocol::Admin).map(|(_, endpoint)| endpoint);
    let Some(endpoint) = endpoint.filter(|endpoint| endpoint.address().is_none_or(|address| address.port() != 0)) else {
        return Err(spec_error(
            "health asks the port of --admin: give the settings of the server, with the number of this port".to_owned(),
        ));
    };
    Ok(match reply(endpoint, config.tls.is_some()) {
        Ok(reply) => {
            let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
            (head.split(' ').nth(1) == Some("200"), body.to_owned())
        }
        Err(error) => (false, format!("{endpoint} does not answer: {error}")),
    })
}

/// The address at which this machine reaches an endpoint, also one that listens on all addresses.
fn here(endpoint: &Endpoint) -> io::Result<SockAddr> {
    Ok(match endpoint {
        Endpoint::Address(address) | Endpoint::Socket(_, address) if address.ip().is_unspecified() => {
            let ip = if address.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };
            SocketAddr::new(ip, address.port()).into()
        }
        Endpoint::Address(address) | Endpoint::Socket(_, address) => (*address).into(),
        Endpoint::Path(path) => SockAddr::unix(path)?,
    })
}

fn reply(endpoint: &Endpoint, has_tls: bool) -> io::Result<String> {
    let address = here(endpoint)?;
    let stream = Socket::new(address.domain(), Type::STREAM, None)?;
    stream.connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    if has_tls { exchange(StreamOwned::new(client().map_err(io::Error::other)?, stream)) } else { exchange(stream) }
}

fn exchange(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut reply = vec![];
    stream.take(LONGEST).read_to_end(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn client() -> std::result::Result<ClientConnection, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(schemes)))
        .with_no_client_auth();
    // The name is neither sent nor checked.
    ClientConnection::new(Arc::new(config), ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// A verifier that accepts any certificate. The request has no secret, and an attacker who could forge the answer could also suppress it. The
/// files of the settings may be newer than those that the server has read, so they cannot be checked against.
#[derive(Debug)]
struct AnyCertificate(Vec<SignatureScheme>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
