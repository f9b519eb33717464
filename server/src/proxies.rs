//! Proxies that pass on connections with the address of their client, by the PROXY protocol (HAProxy's `proxy-protocol.txt`, versions 1 and 2).

use crate::settings::spec_error;
use frazil::Result;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proxy_header::{Error, ParseConfig, ProxyHeader};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest header: its addresses, and what proxies of clouds add.
const LONGEST: usize = 4096;
/// The time within which a header must have come.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The share of a port's connections, one in 8, that may wait for one proxy's header, and the number that always may.
const AWAITED: usize = 8;
const ALWAYS_AWAITED: usize = 64;
/// The part of a header of version 2 that ends with the length of the rest.
const FIXED: usize = 16;
/// The index of the command in that part, followed by the family of the addresses, and the command without a client.
const COMMAND: usize = 12;
const LOCAL: u8 = 0x20;

/// The networks of the proxies.
#[derive(Default)]
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    /// Parses addresses and networks, with commas between them.
    ///
    /// # Errors
    /// `SPEC`.
    pub fn new(text: &str) -> Result<Self> {
        let network = |part: &str| {
            let one = part.parse().map(|address: IpAddr| IpNet::from(address));
            one.or_else(|_| part.parse()).map(canonical).map_err(|_| {
                spec_error(format!("proxies={text:?}: {part:?} is neither an address nor a network, such as 10.0.0.7 or 10.0.0.0/8"))
            })
        };
        text.split(',').map(|part| network(part.trim())).collect::<Result<_>>().map(Proxies)
    }

    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a connection of this address begins with a header.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }
}

/// Returns the IPv4 network that an IPv6 network maps, if any, because a socket for both versions shows an IPv4 proxy as an IPv6 address.
fn canonical(network: IpNet) -> IpNet {
    let of_v4 = |network: Ipv6Net| Ipv4Net::new(network.addr().to_ipv4_mapped()?, network.prefix_len().checked_sub(96)?).ok();
    match network {
        IpNet::V6(its) => of_v4(its).map_or(network, IpNet::from),
        IpNet::V4(_) => network,
    }
}

impl fmt::Display for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks: Vec<_> = self.0.iter().map(IpNet::to_string).collect();
        f.write_str(&networks.join(", "))
    }
}

/// Returns how many connections of one proxy may be without their header at once. A proxy sends it first, and a silent host of these
/// networks must not take all connections of the port.
pub fn most_awaited(connections: usize) -> usize {
    (connections / AWAITED).max(ALWAYS_AWAITED)
}

/// Takes the header off a proxy's connection. Returns the address of the client, and the one that it reached; `None` if the proxy
/// connects for itself, as its health checks do.
///
/// # Errors
/// What is wrong with the header.
pub async fn client_of(stream: &mut TcpStream) -> std::result::Result<Option<(SocketAddr, IpAddr)>, &'static str> {
    timeout(TIMEOUT, header(stream)).await.unwrap_or(Err("no PROXY header received in time"))
}

async fn header(stream: &mut TcpStream) -> std::result::Result<Option<(SocketAddr, IpAddr)>, &'static str> {
    const ENDED: &str = "the connection ended before its PROXY header";
    const NONE: &str = "the connection of a proxy in --proxies does not begin with a PROXY header: enable the PROXY protocol in the proxy";
    let (mut header, mut seen) = (vec![], [0; LONGEST]);
    loop {
        let received = stream.peek(&mut seen).await.map_err(|_| ENDED)?;
        if received == 0 {
            return Err(ENDED);
        }
        // Takes only the header, because the bytes after it are the client's. A peek at bytes that were seen would not wait for more.
        let length = part(&header, &seen[..received]);
        stream.read_exact(&mut seen[..length]).await.map_err(|_| ENDED)?;
        header.extend_from_slice(&seen[..length]);
        if header.starts_with(b"\r") && header.get(COMMAND) == Some(&LOCAL) {
            // The proxy connects for itself, and the protocol requires that its addresses are ignored.
            header.get_mut(COMMAND + 1).into_iter().for_each(|family| *family = 0);
        }
        match ProxyHeader::parse(&header, ParseConfig { include_tlvs: false, ..ParseConfig::default() }) {
            Ok((header, _)) => return Ok(header.proxied_address().map(|its| (its.source, its.destination.ip()))),
            Err(Error::BufferTooShort) if part(&header, b" ") > 0 => {}
            Err(_) => return Err(NONE),
        }
    }
}

/// Returns the number of received bytes that continue a header: 0 if it is complete or too long.
fn part(header: &[u8], received: &[u8]) -> usize {
    let length = match header.first().or(received.first()) {
        Some(b'P') if header.ends_with(b"\n") => 0,
        Some(b'P') => received.iter().position(|&byte| byte == b'\n').map_or(received.len(), |end| end + 1),
        _ => {
            let rest = header.get(FIXED - 2..FIXED).map_or(0, |length| usize::from(u16::from_be_bytes([length[0], length[1]])));
            received.len().min((FIXED + rest).saturating_sub(header.len()))
        }
    };
    length.min(LONGEST - header.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_matched_by_network() {
        let proxies = Proxies::new("10.0.0.0/8, 192.168.1.5,2001:db8::/32,::ffff:192.0.2.1,::ffff:198.51.100.0/120").unwrap();
        for (address, is_one) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("11.0.0.1", false),
            ("192.168.1.5", true),
            ("192.168.1.6", false),
            ("2001:db8::1", true),
            ("::1", false),
            ("192.0.2.1", true),
            ("198.51.100.255", true),
            ("198.51.101.0", false),
        ] {
            assert_eq!(proxies.contains(address.parse().unwrap()), is_one, "{address}");
        }
        for wrong in ["", "10.0.0.0/33", "proxy.example", "10.0.0.1:80", "10.0.0.1,"] {
            assert!(Proxies::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
