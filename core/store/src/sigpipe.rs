//! Tests of a process with SIGPIPE at the system's default, as in C programs, and connections that
//! end with FIN and then RST.
//!
//! Programs in Rust ignore the signal. So each test runs in a separate process, which resets it.

use super::{Address, Which};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const CHILD: &str = "FRAZIL_TEST_SIGPIPE";

/// Runs the scenario in a separate process, which is this binary again.
fn in_a_process_with_sigpipe(test: &str, scenario: impl FnOnce()) {
    in_a_process_trusting(None, test, scenario);
}

/// Runs the scenario in a separate process that trusts a certificate.
fn in_a_process_trusting(certificate: Option<&Path>, test: &str, scenario: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the default disposition is a valid one, and no other thread of this process depends on it.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        return scenario();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--include-ignored", "--nocapture", &format!("sigpipe::{test}")]).env(CHILD, "1");
    command.envs(certificate.map(|file| ("SSL_CERT_FILE", file)));
    let done = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && stdout.contains("1 passed"), "{}\n{stdout}\n{stderr}", done.status);
}

/// A TCP or Unix socket.
trait Pipe: Read + Write + Send + Sized + 'static {
    fn copy(&self) -> Self;
    fn end(&self, how: Shutdown);
    /// Makes the last close answer all later bytes with RST, if the protocol has that.
    fn reset_on_close(&self);
}

macro_rules! pipe {
    ($name:ty, $reset:expr) => {
        impl Pipe for $name {
            fn copy(&self) -> Self {
                self.try_clone().unwrap()
            }
            fn end(&self, how: Shutdown) {
                // The connection may have ended already.
                drop(self.shutdown(how));
            }
            fn reset_on_close(&self) {
                let reset: fn(&Self) = $reset;
                reset(self);
            }
        }
    };
}
pipe!(TcpStream, |stream| socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap());
pipe!(UnixStream, |_| ());

/// The proxy's state of one connection.
type Held<P> = (P, TcpStream, [JoinHandle<()>; 2]);

/// A proxy that passes bytes on until it is cut.
struct Proxy<P>(Arc<Mutex<Vec<Held<P>>>>);

impl<P: Pipe> Proxy<P> {
    fn start(server: String, mut accept: impl FnMut() -> P + Send + 'static) -> Self {
        let held = Arc::new(Mutex::new(Vec::new()));
        let proxy = Proxy(Arc::clone(&held));
        thread::spawn(move || {
            loop {
                let client = accept();
                let server = TcpStream::connect(&server).unwrap();
                let pumps = [pump(client.copy(), server.copy()), pump(server.copy(), client.copy())];
                held.lock().unwrap().push((client, server, pumps));
            }
        });
        proxy
    }

    /// Ends the connections by FIN and then RST. Both have arrived when this function returns.
    fn cut(&self) {
        let held = std::mem::take(&mut *self.0.lock().unwrap());
        assert!(!held.is_empty(), "nothing came through the proxy");
        for (client, server, pumps) in held {
            client.end(Shutdown::Write);
            client.end(Shutdown::Read);
            server.end(Shutdown::Both);
            pumps.into_iter().for_each(|pump| pump.join().unwrap());
            client.reset_on_close();
        }
    }
}

fn pump(mut from: impl Pipe, mut to: impl Pipe) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    })
}

fn tcp_proxy(server: &str) -> (Proxy<TcpStream>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    (Proxy::start(server.to_owned(), move || listener.accept().unwrap().0), place)
}

/// Makes a call, cuts the connection, and checks that later calls get an ordinary error.
fn survives<P: Pipe>(url: &str, proxy: &Proxy<P>) {
    let namespace = format!("sigpipe{}", std::process::id());
    let mut store = Address::parse(url).unwrap().connect(TIMEOUT).unwrap();
    store.load(&namespace, Which::Page(0)).unwrap();
    proxy.cut();
    let after = [store.load(&namespace, Which::One(1)), store.load(&namespace, Which::One(1))];
    // An HTTP client may see the end of a connection before its next use, and make another one.
    // frazil's client also makes another one for a request that changes nothing.
    let noticed = after.iter().any(Result::is_err) || url.starts_with("etcd") || url.starts_with("frazil");
    assert!(noticed, "{url}: the cut was not noticed: {after:?}");
    drop(store);
}

/// A server that serves each connection by `serve`.
fn serving(serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    place
}

/// Answers the part of Redis' protocol that a connection needs.
fn answer(mut stream: impl Read + Write) {
    let mut question = [0; 65536];
    while let Ok(count @ 1..) = stream.read(&mut question) {
        let info = "role:master\r\nredis_mode:standalone\r\nmaxmemory:0\r\n";
        let answer = match question[..count].windows(4).any(|word| word == b"INFO") && count < 100 {
            true => format!("${}\r\n{info}\r\n", info.len()),
            false => "*7\r\n$1\r\ns\r\n$1\r\n1\r\n$1\r\n0\r\n$10\r\nnoeviction\r\n$-1\r\n*0\r\n$1\r\n0\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).unwrap();
        stream.flush().unwrap();
    }
}

#[test]
fn redis_over_tcp() {
    in_a_process_with_sigpipe("redis_over_tcp", || {
        let (proxy, place) = tcp_proxy(&serving(answer));
        survives(&format!("redis://{place}"), &proxy);
    });
}

/// Answers the part of frazil-server's protocol that a load needs.
fn lend(mut stream: impl Read + Write) {
    while let Ok(1..) = stream.read(&mut [0; 65536]) {
        stream.write_all(b"*6\r\n$0\r\n\r\n$1\r\n*\r\n$0\r\n\r\n$1\r\n*\r\n$5\r\nkeeps\r\n$1\r\n-\r\n").unwrap();
        stream.flush().unwrap();
    }
}

#[test]
fn lent_store_over_tcp() {
    in_a_process_with_sigpipe("lent_store_over_tcp", || {
        let (proxy, place) = tcp_proxy(&serving(lend));
        survives(&format!("frazil://{place}"), &proxy);
    });
}

#[test]
fn redis_over_a_unix_socket() {
    in_a_process_with_sigpipe("redis_over_a_unix_socket", || {
        let path = std::env::temp_dir().join(format!("frazil-sigpipe-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let proxy = Proxy::start(serving(answer), move || listener.accept().unwrap().0);
        survives(&format!("redis+unix://{}", path.display()), &proxy);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
#[ignore = "needs openssl: tests/servers runs it"]
fn redis_over_tls() {
    over_tls("redis_over_tls", "rediss", answer);
}

#[test]
#[ignore = "needs openssl: tests/servers runs it"]
fn lent_store_over_tls() {
    over_tls("lent_store_over_tls", "frazils", lend);
}

type Served = rustls::StreamOwned<rustls::ServerConnection, TcpStream>;

fn over_tls(test: &str, scheme: &str, serve: fn(Served)) {
    let folder = std::env::temp_dir().join(format!("frazil-sigpipe-{scheme}"));
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    if std::env::var_os(CHILD).is_none() {
        std::fs::create_dir_all(&folder).unwrap();
        let subject = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE";
        let mut openssl = Command::new("openssl");
        openssl.arg("req").args(subject.split(' ')).arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        assert!(openssl.output().unwrap().status.success());
    }
    in_a_process_trusting(Some(&certificate), test, || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from_pem_file(&certificate).unwrap()], PrivateKeyDer::from_pem_file(&key).unwrap());
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (proxy, place) = tcp_proxy(&listener.local_addr().unwrap().to_string());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let config = Arc::clone(&config);
                thread::spawn(move || serve(Served::new(rustls::ServerConnection::new(config).unwrap(), stream.unwrap())));
            }
        });
        survives(&format!("{scheme}://{place}"), &proxy);
    });
}

/// The address of a server that tests/servers runs, and a function that puts another address into its URL.
fn server(kind: &str) -> (String, impl Fn(&str) -> String) {
    let url = std::env::var(format!("FRAZIL_TEST_{kind}")).expect("a server's URL: tests/servers sets it");
    let (scheme, rest) = url.split_once("://").unwrap();
    let rest = rest.split([',', '?']).next().unwrap().to_owned();
    let authority = rest.split('/').next().unwrap().to_owned();
    let place = authority.rsplit('@').next().unwrap().to_owned();
    let scheme = scheme.to_owned();
    (place.clone(), move |other: &str| format!("{scheme}://{}", rest.replacen(&place, other, 1)))
}

#[test]
#[ignore = "needs all servers: tests/servers runs it"]
fn every_store_over_tcp() {
    in_a_process_with_sigpipe("every_store_over_tcp", || {
        for kind in ["REDIS", "POSTGRESQL", "MARIADB", "ETCD", "ZOOKEEPER"] {
            let (place, url) = server(kind);
            let (proxy, through) = tcp_proxy(&place);
            survives(&url(&through), &proxy);
        }
    });
}

#[test]
#[ignore = "needs PostgreSQL and MariaDB: tests/servers runs it"]
fn databases_over_unix_sockets() {
    in_a_process_with_sigpipe("databases_over_unix_sockets", || {
        let folder = std::env::temp_dir().join(format!("frazil-sigpipe-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for (kind, file) in [("POSTGRESQL", ".s.PGSQL.5432"), ("MARIADB", "maria")] {
            let (place, url) = server(kind);
            let listener = UnixListener::bind(folder.join(file)).unwrap();
            let proxy = Proxy::start(place, move || listener.accept().unwrap().0);
            let option =
                if kind == "MARIADB" { format!("socket={}/maria", folder.display()) } else { format!("host={}", folder.display()) };
            survives(&format!("{}?{option}", url("localhost")), &proxy);
        }
        std::fs::remove_dir_all(folder).unwrap();
    });
}
