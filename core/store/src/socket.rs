//! Sockets, connections and name look-ups that end at one deadline.
//!
//! A socket's own timeout limits each system call. So a slow name server, or an answer in small
//! pieces, could take many times as long. Also, a timeout of less than a microsecond is rounded to
//! zero, which means an endless wait.

use std::io;
use std::time::{Duration, Instant};

/// The shortest time limit, because no timer of the system is finer.
const LEAST: Duration = Duration::from_millis(1);

/// The instant at which a call must stop waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// The deadline of a call that may take `timeout`. Linux wakes a socket's waiter late, by up to an eighth of the wait.
    pub(super) fn of_call(timeout: Duration) -> Self {
        Deadline(Instant::now() + (timeout - timeout / 8))
    }

    /// The time left. It is never so short that it would be rounded to zero.
    ///
    /// # Errors
    /// `TimedOut` if no time is left.
    pub(super) fn left(self) -> io::Result<Duration> {
        self.left_at(Instant::now())
    }

    fn left_at(self, now: Instant) -> io::Result<Duration> {
        match self.0.saturating_duration_since(now) {
            left if left < LEAST => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }

    /// The end of the first of `parts` equal parts of the time left, so that a silent host leaves
    /// time for others.
    pub(super) fn share(self, parts: usize) -> Self {
        let now = Instant::now();
        Deadline(now + self.0.saturating_duration_since(now) / u32::try_from(parts).unwrap_or(u32::MAX).max(1))
    }
}

#[cfg(any(feature = "redis", feature = "sql", feature = "zookeeper", feature = "frazil-server"))]
pub(super) use timed::Timed;

#[cfg(any(feature = "redis", feature = "sql", feature = "zookeeper", feature = "frazil-server"))]
mod timed {
    use super::Deadline;
    #[cfg(unix)]
    use frazil_base::os::fork;
    use socket2::{Domain, SockAddr, Socket, Type};
    use std::io::{self, Read, Write};
    use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
    #[cfg(unix)]
    use std::os::fd::AsFd;
    use std::sync::{Arc, Condvar, Mutex, PoisonError};
    use std::time::Duration;

    /// A flag without which a write to an ended connection kills a program that does not ignore
    /// SIGPIPE. On Apple's systems, a socket option does the same. Other systems have no such
    /// signal.
    #[cfg(all(unix, not(target_vendor = "apple")))]
    const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    const NO_SIGNAL: i32 = 0;

    /// A connection whose reads and writes, taken together, end at its deadline.
    pub(crate) struct Timed {
        socket: Own,
        pub(crate) deadline: Deadline,
    }

    /// A socket. If the program has closed its descriptor and reused the number, the socket is
    /// neither used nor closed.
    struct Own {
        /// `None` during the drop.
        socket: Option<Socket>,
        #[cfg(unix)]
        identity: Option<(u64, u64)>,
    }

    impl Own {
        fn new(socket: Socket) -> io::Result<Self> {
            #[cfg(unix)]
            return {
                let socket = fork::off_the_standard_streams(socket)?;
                Ok(Own { identity: fork::identity(socket.as_fd()), socket: Some(socket) })
            };
            #[cfg(not(unix))]
            Ok(Own { socket: Some(socket) })
        }

        /// # Errors
        /// `NotConnected` if the program uses the descriptor now.
        fn get(&self) -> io::Result<&Socket> {
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "the program has closed the connection's descriptor");
            self.socket.as_ref().filter(|socket| self.is_intact(socket)).ok_or_else(closed)
        }

        #[cfg_attr(not(unix), allow(clippy::unused_self, reason = "nobody closes it there"))]
        fn is_intact(&self, _socket: &Socket) -> bool {
            #[cfg(unix)]
            return fork::identity(_socket.as_fd()) == self.identity;
            #[cfg(not(unix))]
            true
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            let Some(socket) = self.socket.take() else { return };
            if !self.is_intact(&socket) {
                std::mem::forget(socket);
            }
        }
    }

    impl Timed {
        /// Tries the host's addresses in turn, each for its share of half the time. A host that
        /// accepts no connection in that time would not answer a request.
        ///
        /// # Errors
        /// `TimedOut`, and the errors of the system.
        pub(crate) fn dial(host: &str, port: u16, deadline: Deadline) -> io::Result<Self> {
            let places = resolve(host, port, deadline)?;
            let mut failed = io::Error::other("the name has no address");
            let until = deadline.share(2);
            for (tried, place) in places.iter().enumerate() {
                match dial_one(Domain::for_address(*place), &(*place).into(), until.share(places.len() - tried)) {
                    Ok(socket) => {
                        // A request is one small packet, and no other one follows.
                        socket.get()?.set_tcp_nodelay(true)?;
                        return Ok(Timed { socket, deadline });
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        }

        #[cfg(unix)]
        #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis has such addresses"))]
        pub(crate) fn dial_unix(path: &std::path::Path, deadline: Deadline) -> io::Result<Self> {
            let socket = dial_one(Domain::UNIX, &SockAddr::unix(path)?, deadline)?;
            Ok(Timed { socket, deadline })
        }

        /// Repeats a system call after an error that does not concern the connection, while there
        /// is time.
        fn until_done(
            &self,
            set: fn(&Socket, Option<Duration>) -> io::Result<()>,
            mut work: impl FnMut(&Socket) -> io::Result<usize>,
        ) -> io::Result<usize> {
            loop {
                let socket = self.socket.get()?;
                set(socket, Some(self.deadline.left()?))?;
                match work(socket) {
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                    result => return result,
                }
            }
        }
    }

    #[cfg(any(feature = "redis", feature = "frazil-server"))]
    impl Timed {
        /// Reads the bytes that have arrived, without waiting.
        ///
        /// # Errors
        /// `WouldBlock` if none have arrived, and the errors of the system.
        #[cfg(feature = "tls")]
        pub(crate) fn read_at_once(&self, buffer: &mut [u8]) -> io::Result<usize> {
            self.at_once(|mut socket| socket.read(buffer))
        }

        /// Returns whether unread bytes have arrived.
        pub(crate) fn has_unread(&self) -> bool {
            let byte = &mut [std::mem::MaybeUninit::uninit()];
            // This takes one system call instead of five.
            #[cfg(unix)]
            let peeked = self.socket.get().and_then(|socket| socket.recv_with_flags(byte, libc::MSG_PEEK | libc::MSG_DONTWAIT));
            #[cfg(not(unix))]
            let peeked = self.at_once(|socket| socket.peek(byte));
            peeked.is_ok_and(|count| count > 0)
        }

        #[cfg(any(feature = "tls", not(unix)))]
        fn at_once(&self, work: impl FnOnce(&Socket) -> io::Result<usize>) -> io::Result<usize> {
            let socket = self.socket.get()?;
            socket.set_nonblocking(true)?;
            let done = work(socket);
            socket.set_nonblocking(false)?;
            done
        }
    }

    impl Read for Timed {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.until_done(Socket::set_read_timeout, |mut socket| socket.read(buffer))
        }
    }

    impl Write for Timed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.until_done(Socket::set_write_timeout, |socket| socket.send_with_flags(bytes, NO_SIGNAL))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn dial_one(domain: Domain, place: &SockAddr, deadline: Deadline) -> io::Result<Own> {
        let own = Own::new(Socket::new(domain, Type::STREAM, None)?)?;
        own.get()?.connect_timeout(place, deadline.left()?)?;
        Ok(own)
    }

    /// Looks a name up on a thread, because the system's resolver takes no timeout. After the
    /// deadline the thread is abandoned.
    fn resolve(host: &str, port: u16, deadline: Deadline) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![(ip, port).into()]);
        }
        // A channel would add much code to a lean library.
        let answer = Arc::new((Mutex::new(None), Condvar::new()));
        let (host, answers) = (host.to_owned(), Arc::clone(&answer));
        let resolve = move || {
            let found: io::Result<Vec<_>> = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // If the look-up took too long, no caller waits for it.
            *answers.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            answers.1.notify_one();
        };
        frazil_base::os::thread::spawn("frazil-resolve", Box::new(resolve))?;
        let found = answer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = answer.1.wait_timeout_while(found, deadline.left()?, |found| found.is_none());
        let found = waited.unwrap_or_else(PoisonError::into_inner).0.take();
        found.unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::TimedOut, "the host's name was not found in time")))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::net::TcpListener;
        use std::time::Instant;

        /// A time of less than a microsecond would be rounded to zero, which means "no timeout" to
        /// a socket.
        #[test]
        fn short_time_left_is_not_an_endless_wait() {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let now = Instant::now();
            for nanos in [0, 1, 499, 500, 999, 1000, 1001, 999_999, 1_000_000, 1_000_001, 1_500_000_000] {
                let Ok(left) = Deadline(now + Duration::from_nanos(nanos)).left_at(now) else { continue };
                socket.set_read_timeout(Some(left)).unwrap();
                socket.set_write_timeout(Some(left)).unwrap();
                assert!(socket.read_timeout().unwrap().is_some() && socket.write_timeout().unwrap().is_some(), "{nanos} ns");
            }
            assert!(Deadline(now).left_at(now).is_err());
            assert!(Deadline(now + Duration::from_secs(1)).left_at(now).is_ok());
        }

        #[test]
        fn silent_peer_is_given_up_at_the_deadline() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let deadline = Deadline::of_call(Duration::from_millis(200));
            let mut timed = Timed::dial("127.0.0.1", listener.local_addr().unwrap().port(), deadline).unwrap();
            let _silent = listener.accept().unwrap();
            assert_eq!(timed.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut);
            // The peer reads nothing, so the write waits once the buffers are full.
            timed.deadline = Deadline::of_call(Duration::from_millis(200));
            assert_eq!(timed.write_all(&vec![0; 64 << 20]).unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert_eq!(timed.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut, "nothing is left");
        }
    }
}
