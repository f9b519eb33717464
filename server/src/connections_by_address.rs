//! The connections of each address, so that one client cannot take all connections of a port.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections of a port, by address. Only those that are open take memory.
pub struct ConnectionsByAddress {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// The slot of a connection, released when it is dropped.
pub struct Slot {
    peers: Arc<ConnectionsByAddress>,
    address: IpAddr,
}

impl ConnectionsByAddress {
    /// `most` is the limit of each address.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(ConnectionsByAddress { most, open: Mutex::default() })
    }

    /// Takes a slot; `None` if the address has no more.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let address = subscriber(address);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count == self.most {
            return None;
        }
        *count += 1;
        Some(Slot { peers: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the address that identifies a client. A client may choose among the addresses of an IPv6 network of 64 bits, and a socket for both
/// versions shows an IPv4 client as an IPv6 address.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.peers.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_limit_and_its_entry_is_removed() {
        let peers = ConnectionsByAddress::new(2);
        for addresses in [["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"], ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]] {
            let [one, same, other]: [IpAddr; 3] = addresses.map(|text| text.parse().unwrap());
            let slots = [one, same].map(|address| peers.take(address).unwrap());
            assert!(peers.take(one).is_none() && peers.take(other).is_some());
            let [first, second] = slots;
            drop(first);
            assert!(peers.take(same).is_some());
            drop(second);
            assert!(peers.lock().is_empty());
        }
    }
}
