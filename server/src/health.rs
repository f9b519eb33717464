//! The question of a probe, for images without a shell: whether the server that has these settings is ready.

use crate::config::Config;
use crate::protocol::Protocol;
use crate::settings::spec_error;
use frazil::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The time for each step, which is a probe's own usual limit.
const PATIENCE: Duration = Duration::from_secs(1);
/// More than any answer has.
const LONGEST: u64 = 1 << 16;

/// Asks `/readyz` of the admin port: whether it is ready, and the reply, or why there is none.
///
/// # Errors
/// `SPEC` where the settings give no admin port, or leave its number to the system.
pub fn ask(config: &Config) -> Result<(bool, String)> {
    let place = config.places.iter().find(|(protocol, _)| *protocol == Protocol::Admin);
    let Some(address) = place.and_then(|(_, place)| place.address()).map(here).filter(|address| address.port() != 0) else {
        return Err(spec_error("health asks the port of --admin: give the server's own settings, with its number".to_owned()));
    };
    Ok(match reply(address, config.tls.is_some()) {
        Ok(reply) => {
            let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
            (head.split(' ').nth(1) == Some("200"), body.to_owned())
        }
        Err(error) => (false, format!("{address} gives no answer: {error}")),
    })
}

/// An address at which this machine reaches a port that listens on another one, or on all.
fn here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) });
    }
    address
}

fn reply(address: SocketAddr, has_tls: bool) -> io::Result<String> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if has_tls {
        exchange(StreamOwned::new(client(address).map_err(io::Error::other)?, stream), address)
    } else {
        exchange(stream, address)
    }
}

fn exchange(mut stream: impl Read + Write, address: SocketAddr) -> io::Result<String> {
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut reply = vec![];
    stream.take(LONGEST).read_to_end(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn client(address: SocketAddr) -> std::result::Result<ClientConnection, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(schemes)))
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::from(address.ip()))
}

/// Takes any certificate. The question holds no secret, and whoever could answer in the server's place could as well keep it from answering. The
/// files may be newer than what the server has read, so they would tell nothing.
#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>);

impl ServerCertVerifier for Anybody {
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
