//! The connections of each address, so that one client cannot take every place of a port.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections of a port, by address. Only those that are open take memory.
pub struct Peers {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// The place of a connection, released when it is dropped.
pub struct Place {
    peers: Arc<Peers>,
    address: IpAddr,
}

impl Peers {
    /// `most` is the limit of each address.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Peers { most, open: Mutex::default() })
    }

    /// Takes a place; `None` where the address has all of its own.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = subscriber(address);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count == self.most {
            return None;
        }
        *count += 1;
        Some(Place { peers: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the address that stands for a client: it may choose among those of an IPv6 network of 64 bits. A socket for both versions shows an
/// IPv4 client as an IPv6 address.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

impl Drop for Place {
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
    fn an_address_has_so_many_places_and_leaves_nothing_behind() {
        let peers = Peers::new(2);
        for addresses in [["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"], ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]] {
            let [one, same, other]: [IpAddr; 3] = addresses.map(|text| text.parse().unwrap());
            let places = [one, same].map(|address| peers.take(address).unwrap());
            assert!(peers.take(one).is_none() && peers.take(other).is_some());
            let [first, second] = places;
            drop(first);
            assert!(peers.take(same).is_some());
            drop(second);
            assert!(peers.lock().is_empty());
        }
    }
}
