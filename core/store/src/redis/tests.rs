//! Tests without a server: addresses and refusals. With `FRAZIL_TEST_REDIS`: the suite of all
//! stores. With `redis-server` installed: the behaviour of servers, each private to one test. One
//! file, because most cases need such a server.

use super::super::Key;
use super::*;
use crate::suite::all_of;
use ::redis::Commands;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};
use std::{env, fs, thread};

const TIMEOUT: Duration = Duration::from_secs(60);

#[track_caller]
fn refused(result: Result<impl Sized>, kind: ErrorKind, parts: &[&str]) -> String {
    let error = result.err().expect("a refusal");
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
    assert!(!text.contains("secret") && !text.contains("someone"), "{text:?} shows credentials");
    text
}

/// Repeats a call until it is refused, because the cause takes effect a moment later.
fn until_refused<T>(mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        let refusal = ask();
        if refusal.is_err() || began.elapsed() > TIMEOUT {
            return refusal;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn expect_swap(server: &str, meta: Option<&str>, key: Key, old: Option<&str>, new: &str) -> Swap {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Swap {
        meta: owned(meta),
        server: server.to_owned(),
        key,
        old: owned(old),
        new: new.to_owned(),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    }
}

// Without a server.

#[test]
fn addresses() {
    for (url, shown) in [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://:secret@10.0.0.5/3", "redis://10.0.0.5:6379/3"),
        ("redis://someone:secret@cache.example:7000/", "redis://cache.example:7000/0"),
        ("rediss://someone:p%40ss%2F@[::1]:7000/12", "rediss://[::1]:7000/12"),
        ("redis+unix:///run/redis.sock?db=2", "redis+unix:///run/redis.sock?db=2"),
        ("unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
    ] {
        assert_eq!(Target::parse(url).unwrap().shown, shown, "{url}");
    }
    let target = Target::parse("redis://some%20one:p%40ss%2F@host").unwrap();
    assert_eq!((target.account().username(), target.account().password()), (Some("some one"), Some("p@ss/")));
}

#[test]
fn malformed_addresses_name_no_secret() {
    for url in [
        "redis://",
        "redis:///0",
        "redis://:secret@/0",
        "redis://host/first",
        "redis://host/-1",
        "redis://host/1/2",
        "redis://host:99999",
        "redis://someone@host",
        "redis://someone:sec/ret@host",
        "redis://someone:12/secret@host",
        "redis://someone:12?secret@host",
        "redis://someone:12#secret@host",
        "redis://0.0.0.0",
        "redis://host?protocol=3",
        "redis://host/?ssl_cert_reqs=none",
        "rediss://host/#insecure",
        "unix:///run/redis.sock?pass=secret",
        "redis+unix://someone:secret@host/run/redis.sock",
        "unix:///run/redis.sock?db=x",
    ] {
        refused(Target::parse(url).map(|_| url), ErrorKind::Spec, &["store=", "redis[s]://"]);
    }
}

/// A server without AUTH returns the arguments.
#[test]
fn refused_login_shows_no_secret() {
    for details in ["unknown command 'AUTH', with args beginning with: 'someone' 's3cr3t' ", "bad s3cr3t"] {
        let error = refusal::server("redis://host:6379/0", "AUTH", "ERR", details);
        assert!(error.kind() == ErrorKind::StoreAuth && !error.to_string().contains("s3cr"), "{error}");
    }
}

#[test]
fn refusals() {
    use ErrorKind::*;
    for (command, reply, kind, part) in [
        ("INFO", "NOAUTH Authentication required.", StoreAuth, "wants a password"),
        ("AUTH", "WRONGPASS invalid username-password pair or user is disabled.", StoreAuth, "this password"),
        ("AUTH", "ERR AUTH <password> called without any password configured", StoreAuth, "without any password"),
        ("AUTH", "ERR max number of clients reached", StoreUnreachable, "maxclients"),
        ("EVAL", "NOPERM User someone has no permissions to run the 'eval' command", StoreAuth, "EVAL"),
        ("EVAL", "ERR The user executing the script can't run this command or subcommand script: 1", StoreAuth, "+hscan"),
        ("EVAL", "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write", StoreReadonly, "primary"),
        ("EVAL", "READONLY You can't write against a read only replica. script: 1", StoreReadonly, "primary"),
        ("EVAL", "MISCONF Redis is configured to save RDB snapshots", StoreReadonly, "disk"),
        ("EVAL", "NOREPLICAS Not enough good replicas to write.", StoreReadonly, "min-replicas-to-write"),
        ("EVAL", "OOM command not allowed when used memory > 'maxmemory'.", StoreUnsuitable, "maxmemory"),
        ("EVAL", "WRONGTYPE Operation against a key", StoreCorrupt, "namespace"),
        ("EVAL", "LOADING Redis is loading the dataset in memory", StoreUnreachable, "loading"),
        ("EVAL", "MASTERDOWN Link with MASTER is down", StoreUnreachable, "primary"),
        ("EVAL", "BUSY Redis is busy running a script.", StoreUnreachable, "busy"),
        ("EVAL", "MOVED 3999 127.0.0.1:6381", StoreUnsuitable, "Cluster"),
        ("EVAL", "ERR unknown command 'EVAL', with args", StoreUnsuitable, "EVAL"),
        ("SELECT", "ERR DB index is out of range", Spec, "no such database"),
    ] {
        let (code, details) = reply.split_once(' ').unwrap();
        let error = refusal::server("redis://host:6379/0", command, code, details);
        // The server runs, and an opener waits for it.
        assert_eq!(error.retry_after().is_some(), kind == StoreUnreachable, "{error}");
        refused(Err::<(), _>(error), kind, &["store=redis://host:6379/0", part]);
    }
}

/// Answers one connection with a fixed reply to any request.
fn impostor(reply: &'static [u8], pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(stream.read(&mut [0; 1024]));
        for byte in reply {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            thread::sleep(pause);
        }
    });
    url
}

#[test]
fn servers_that_are_not_redis_are_refused() {
    for reply in [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), b"*2\r\n:1\r\n:2\r\n", b"$-1\r\n", b"$3\r\n\xff\xfe\xfd\r\n"] {
        refused(connect(&impostor(reply, Duration::ZERO), TIMEOUT), ErrorKind::StoreUnsuitable, &["another server"]);
    }
    refused(connect(&impostor(b"$9\r\nabc", Duration::ZERO), TIMEOUT), ErrorKind::StoreUnreachable, &["closed", "rediss://"]);
    refused(connect(&impostor(b"$2\r\na\n\r\n", Duration::ZERO), TIMEOUT), ErrorKind::StoreReadonly, &["replica"]);
}

/// If a server that has replied before is shut down, the error does not suggest TLS.
#[test]
fn server_that_shuts_down_does_not_suggest_tls() {
    let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nloading:0\r\n";
    let reply: &'static str = format!("${}\r\n{info}\r\n", info.len()).leak();
    let mut store = connect(&impostor(reply.as_bytes(), Duration::ZERO), TIMEOUT).expect("a primary");
    let text = refused(store.load("default", Which::Page(0)), ErrorKind::StoreUnreachable, &["closed the connection"]);
    assert!(!text.contains("TLS"), "{text}");
}

/// A proxy closes the connection, at first and after a server has answered there.
#[test]
fn only_a_first_connection_suggests_tls() {
    let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nloading:0\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let is_up = std::sync::Arc::new(AtomicBool::new(false));
    let has_server = std::sync::Arc::clone(&is_up);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), [0; 1024]);
            let length = stream.read(&mut asked).unwrap_or(0);
            if has_server.load(Ordering::SeqCst) && asked[..length].starts_with(b"*1\r\n") {
                stream.write_all(format!("${}\r\n{info}\r\n", info.len()).as_bytes()).unwrap();
            }
        }
    });
    let hang_up = |text: &str| refused(connect(&url, TIMEOUT), ErrorKind::StoreUnreachable, &["closed the connection", text]);
    hang_up("if it expects TLS, write rediss://; a proxy also closes it if it does not know INFO");
    is_up.store(true, Ordering::SeqCst);
    connect(&url, TIMEOUT).expect("a primary");
    is_up.store(false, Ordering::SeqCst);
    assert!(!hang_up("").contains("TLS"));
}

#[test]
fn policy_with_control_characters_is_escaped() {
    let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:1\r\nmaxmemory_policy:\x1b[31mno\r\nloading:0\r\n";
    let reply: &'static str = format!("${}\r\n{info}\r\n", info.len()).leak();
    let text = refused(connect(&impostor(reply.as_bytes(), Duration::ZERO), TIMEOUT), ErrorKind::StoreUnsuitable, &["\\u{1b}[31mno"]);
    assert!(!text.contains(char::is_control), "{text:?}");
}

/// A reply in small pieces must end within the whole timeout. The timeout does not begin again with
/// each byte.
#[test]
fn slow_reply_ends_at_the_timeout() {
    let began = Instant::now();
    let url = impostor(&[b'$'; 1000], Duration::from_millis(20));
    refused(connect(&url, Duration::from_millis(300)), ErrorKind::StoreUnreachable, &["127.0.0.1:", "within 300ms"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// An extra reply arrives, at once or a moment later. Then it is unknown which reply belongs to
/// which command.
#[test]
fn extra_replies_are_refused() {
    const LOADED: &str = "*7\r\n$1\r\ns\r\n$1\r\n5\r\n$1\r\n0\r\n$10\r\nnoeviction\r\n$-1\r\n*0\r\n$1\r\n0\r\n";
    for is_late in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (arrived, has_arrived) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nloading:0\r\n";
            let mut buffer = [0; 1 << 16];
            assert!(stream.read(&mut buffer).unwrap() > 0);
            write!(stream, "${}\r\n{info}\r\n", info.len()).unwrap();
            assert!(stream.read(&mut buffer).unwrap() > 0);
            if is_late {
                stream.write_all(LOADED.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(200));
                stream.write_all(LOADED.as_bytes()).unwrap();
            } else {
                stream.write_all(LOADED.repeat(2).as_bytes()).unwrap();
            }
            arrived.send(()).unwrap();
            // Later requests get no answer.
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        let mut store = connect(&url, Duration::from_secs(5)).unwrap();
        if is_late {
            assert_eq!(store.load("n", Which::One(1)).unwrap().time_ms, Some(5));
            has_arrived.recv().unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        refused(store.load("n", Which::One(1)), ErrorKind::StoreUnsuitable, &["another server"]);
    }
}

/// A server whose SCAN never ends.
#[test]
fn endless_lists_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nloading:0\r\n";
        let mut reply = format!("${}\r\n{info}\r\n", info.len());
        while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) && stream.write_all(reply.as_bytes()).is_ok() {
            "*2\r\n$1\r\n7\r\n*0\r\n".clone_into(&mut reply);
        }
    });
    refused(connect(&url, TIMEOUT).unwrap().namespaces(), ErrorKind::StoreUnsuitable, &["another server"]);
}

#[test]
fn absurd_sizes_are_refused() {
    for reply in [b"*9223372036854775807\r\n".as_slice(), b"$9223372036854775807\r\n", b"*-5\r\n", b"$-7\r\n", b"=-1\r\n"] {
        assert!(connect(&impostor(reply, Duration::ZERO), Duration::from_millis(300)).is_err());
    }
}

#[test]
fn closed_port_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = free.to_string();
    refused(connect(&format!("redis://someone:secret@{free}/0"), TIMEOUT), ErrorKind::StoreUnreachable, &[&place, "refused"]);
    let name = "redis://someone:secret@no-such-host.invalid/0";
    refused(connect(name, TIMEOUT), ErrorKind::StoreUnreachable, &["no-such-host.invalid:6379"]);
    refused(connect("unix:///no/such/socket", TIMEOUT), ErrorKind::StoreUnreachable, &["/no/such/socket"]);
}

/// A host drops packets, as a firewall does. Here its queue of connections is full.
#[test]
fn silent_host_times_out() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let place = socket.local_addr().unwrap().as_socket().unwrap();
    let limit = Duration::from_millis(300);
    let _queued: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect_timeout(&place, limit)).collect();
    for host in ["127.0.0.1", "localhost"] {
        let began = Instant::now();
        let url = format!("redis://{host}:{}", place.port());
        refused(connect(&url, limit), ErrorKind::StoreUnreachable, &[&format!("{host}:{}", place.port())]);
        assert!(began.elapsed() < 20 * limit, "{:?}", began.elapsed());
    }
}

// With servers.

#[test]
#[ignore = "needs FRAZIL_TEST_REDIS: tests/servers runs it"]
fn suite() {
    let url = env::var("FRAZIL_TEST_REDIS").expect("FRAZIL_TEST_REDIS, the URL of a Redis server for tests");
    super::super::suite::run(&|| connect(&url, TIMEOUT).unwrap());
}

/// A folder of this test, removed when it goes out of scope.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let unique = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let folder = env::temp_dir().join(format!("frazil-redis-{}-{unique}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A server of this test, killed when it goes out of scope.
struct Server {
    child: Child,
    folder: Folder,
    port: u16,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server. PORT in an argument is replaced by the port.
    fn start(arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = Folder::new();
        let arguments: Vec<String> = arguments.iter().map(|text| text.replace("PORT", &port.to_string())).collect();
        let child = Server::launch(&folder, port, &arguments);
        let server = Server { child, folder, port, arguments };
        server.wait();
        server
    }

    fn launch(folder: &Folder, port: u16, arguments: &[String]) -> Child {
        let mut command = Command::new("redis-server");
        if arguments.iter().any(|argument| argument == "--sentinel") {
            fs::write(folder.0.join("sentinel.conf"), format!("port {port}\n")).unwrap();
            command.arg("sentinel.conf");
        } else {
            command.args(["--port", &port.to_string(), "--save", "", "--unixsocket", "redis.sock"]);
        }
        command.args(arguments).args(["--bind", "127.0.0.1"]).current_dir(&folder.0).stdout(Stdio::null());
        command.spawn().expect("redis-server, which these tests start")
    }

    fn wait(&self) {
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("redis-server does not listen on port {}", self.port);
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    fn connect(&self) -> Box<dyn Store> {
        connect(&self.url(), TIMEOUT).unwrap()
    }

    /// The crate's client, for commands that frazil never sends.
    fn admin(&self) -> ::redis::Connection {
        ::redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    fn send(&self, line: &str) {
        let mut words = line.split(' ');
        let mut command = cmd(words.next().unwrap());
        words.for_each(|word| _ = command.arg(word));
        command.exec(&mut self.admin()).unwrap();
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Server::launch(&self.folder, self.port, &self.arguments);
        self.wait();
        // The server accepts connections before it has loaded its data.
        while connect(&self.url(), TIMEOUT).is_err_and(|error| error.to_string().contains("loading")) {
            thread::sleep(Duration::from_millis(25));
        }
    }

    /// Waits until INFO's replication section has the line.
    fn until(&self, line: &str) {
        for _ in 0..400 {
            let info: String = cmd("INFO").arg("replication").query(&mut self.admin()).unwrap();
            if info.lines().any(|found| found == line) {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("{line} did not come");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const SPACE: &str = "tests";
const ONE: Key = Key::Slot(1);

/// A namespace with a meta record `m` and slot 1 `one`; returns the server's identity.
fn filled(store: &mut dyn Store) -> String {
    let server = store.load(SPACE, Which::Page(0)).unwrap().server;
    assert!(server.len() > 40 && !server.contains(char::is_whitespace), "{server:?}");
    assert_eq!(store.swap(SPACE, &expect_swap(&server, None, Key::Meta, None, "m")).unwrap(), Swapped::Done);
    assert_eq!(store.swap(SPACE, &expect_swap(&server, Some("m"), ONE, None, "one")).unwrap(), Swapped::Done);
    server
}

/// Returns whether an owner of slot 1 may still write under an earlier identity.
fn write(store: &mut dyn Store, server: &str) -> Result<Swapped> {
    store.swap(SPACE, &expect_swap(server, Some("m"), ONE, Some("one"), "one"))
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn suite_on_other_databases_and_sockets() {
    let server = Server::start(&[]);
    for url in [
        server.url().replace("/0", "/7"),
        server.url().replace("127.0.0.1", "localhost"),
        format!("redis+unix://{}?db=3", server.folder.path("redis.sock")),
    ] {
        super::super::suite::run(&|| connect(&url, TIMEOUT).unwrap());
    }
    refused(connect(&server.url().replace("/0", "/99"), TIMEOUT), ErrorKind::Spec, &["/99", "no such database"]);
    // No record ever expires.
    let mut admin = server.admin();
    cmd("SELECT").arg(7).exec(&mut admin).unwrap();
    let keys: Vec<String> = admin.keys("*").unwrap();
    assert!(keys.len() > 20);
    for key in keys {
        assert!(key.starts_with("frazil:{t.") && (key.ends_with("}:meta") || key.ends_with("}:slots")), "{key}");
        assert_eq!(admin.ttl::<_, i64>(&key).unwrap(), -1, "{key}");
    }
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn passwords_and_accounts() {
    let server = Server::start(&[]);
    let with = |account: &str| server.url().replace("//", &format!("//{account}@"));
    refused(connect(&with(":secret"), TIMEOUT), ErrorKind::StoreAuth, &["without any password"]);
    let full = "~frazil:* +eval +info +time +get +set +hget +hset +hscan";
    server.send(&format!("ACL SETUSER someone on >secret {full} +scan"));
    super::super::suite::run(&|| connect(&with("someone:secret"), TIMEOUT).unwrap());
    refused(connect(&with("someone:secret").replace("/0", "/1"), TIMEOUT), ErrorKind::StoreAuth, &["SELECT", "+select"]);

    for missing in ["eval", "info", "time", "get", "set", "hget", "hset", "hscan"] {
        let rest: Vec<_> = full.split(' ').filter(|right| right.strip_prefix('+') != Some(missing)).collect();
        server.send(&format!("ACL SETUSER someone reset on >secret {}", rest.join(" ")));
        let used = connect(&with("someone:secret"), TIMEOUT).and_then(|mut store| {
            let server = store.load("acl", Which::Page(0))?.server;
            store.swap("acl", &expect_swap(&server, None, Key::Meta, None, "m"))
        });
        refused(used, ErrorKind::StoreAuth, &["this account", &format!("+{missing}"), &server.port.to_string()]);
        server.send("FLUSHALL");
    }
    server.send("ACL SETUSER someone reset on >secret ~other:* +@all");
    let mut store = connect(&with("someone:secret"), TIMEOUT).unwrap();
    refused(store.load(SPACE, Which::Page(0)), ErrorKind::StoreAuth, &["~frazil:*"]);

    refused(connect(&with("someone:secret2"), TIMEOUT), ErrorKind::StoreAuth, &["password"]);
    refused(connect(&with("nobody:secret"), TIMEOUT), ErrorKind::StoreAuth, &["password"]);
    server.send("CONFIG SET requirepass secret");
    refused(connect(&server.url(), TIMEOUT), ErrorKind::StoreAuth, &["wants a password"]);
    connect(&with(":secret"), TIMEOUT).unwrap();
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn hundred_thousand_slots() {
    let server = Server::start(&[]);
    let mut store = server.connect();
    filled(&mut *store);
    let fill = "for n = 10, 100009 do redis.call('HSET', KEYS[1], n, string.rep('x', 100) .. n) end";
    cmd("EVAL").arg(fill).arg(1).arg("frazil:{tests}:slots").exec(&mut server.admin()).unwrap();
    let slots = all_of(&mut *store, SPACE).slots;
    assert_eq!(slots.len(), 100_001);
    assert!(slots[1..].iter().zip(10..).all(|((node, text), n)| *node == n && *text == format!("{}{n}", "x".repeat(100))));
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn memory() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let mut store = server.connect();
    let identity = filled(&mut *store);
    server.send("CONFIG SET maxmemory 100mb");
    let fix = "CONFIG SET maxmemory-policy noeviction";
    refused(connect(&server.url(), TIMEOUT), ErrorKind::StoreUnsuitable, &["allkeys-lru", fix]);
    refused(store.load(SPACE, Which::One(1)), ErrorKind::StoreUnsuitable, &["allkeys-lru", fix]);
    // A client that only writes notices the new setting, too, after a while.
    thread::sleep(2 * LOOK_AGAIN);
    refused(write(&mut *store, &identity), ErrorKind::StoreUnsuitable, &["allkeys-lru", fix]);
    server.send(fix);
    assert_eq!(store.load(SPACE, Which::Page(0)).unwrap().slots.len(), 1);
    server.send("CONFIG SET maxmemory 1mb");
    refused(write(&mut *store, &identity), ErrorKind::StoreUnsuitable, &["memory is full"]);
    assert_eq!(store.load(SPACE, Which::Page(0)).unwrap().slots, [(1, "one".to_owned())]);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn sentinels_and_clusters_are_refused() {
    let sentinel = Server::start(&["--sentinel"]);
    refused(connect(&sentinel.url(), TIMEOUT), ErrorKind::StoreUnsuitable, &["sentinel", "SENTINEL GET-MASTER-ADDR-BY-NAME"]);
    refused(connect(&sentinel.url().replace("/0", "/1"), TIMEOUT), ErrorKind::StoreUnsuitable, &["sentinel"]);
    let cluster = Server::start(&["--cluster-enabled", "yes"]);
    refused(connect(&cluster.url(), TIMEOUT), ErrorKind::StoreUnsuitable, &["Redis Cluster", "cluster-enabled no"]);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn replica_and_its_promotion() {
    let first = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let second = Server::start(&["--replicaof", "127.0.0.1", &first.port.to_string()]);
    second.until("master_link_status:up");
    let mut store = first.connect();
    let before = filled(&mut *store);
    refused(connect(&second.url(), TIMEOUT), ErrorKind::StoreReadonly, &["replica", &second.port.to_string()]);
    second.send("CONFIG SET replica-read-only no");
    refused(connect(&second.url(), TIMEOUT), ErrorKind::StoreReadonly, &["replica"]);

    // After the promotion the records are the same, and the server's identity has changed.
    for _ in 0..400 {
        if second.admin().hexists("frazil:{tests}:slots", 1).unwrap() {
            break;
        }
        thread::sleep(Duration::from_millis(25));
    }
    second.send("REPLICAOF NO ONE");
    let mut promoted = second.connect();
    let loaded = promoted.load(SPACE, Which::Page(0)).unwrap();
    assert_eq!((loaded.meta.as_deref(), loaded.slots), (Some("m"), vec![(1, "one".to_owned())]));
    assert_ne!(loaded.server, before);
    assert_eq!(write(&mut *promoted, &before).unwrap(), Swapped::Differs);

    // The first server continues for a moment. Its last write is lost when it follows the second.
    assert_eq!(store.swap(SPACE, &expect_swap(&before, Some("m"), Key::Slot(2), None, "lost")).unwrap(), Swapped::Done);
    first.send(&format!("REPLICAOF 127.0.0.1 {}", second.port));
    first.until("master_link_status:up");
    refused(write(&mut *store, &before), ErrorKind::StoreReadonly, &["replica"]);
    refused(connect(&first.url(), TIMEOUT), ErrorKind::StoreReadonly, &["replica"]);

    // After it is promoted again, its run_id is as before, but its identity has changed.
    first.send("REPLICAOF NO ONE");
    let mut store = first.connect();
    let loaded = store.load(SPACE, Which::Page(0)).unwrap();
    assert_eq!(loaded.slots, [(1, "one".to_owned())]);
    assert_eq!(loaded.server.split('-').next(), before.split('-').next());
    assert_ne!(loaded.server, before);
    assert_eq!(write(&mut *store, &before).unwrap(), Swapped::Differs);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn restart_is_another_server() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut store = server.connect();
    let before = filled(&mut *store);
    server.restart();
    refused(store.load(SPACE, Which::Page(0)), ErrorKind::StoreUnreachable, &["closed the connection"]);
    refused(store.load(SPACE, Which::Page(0)), ErrorKind::StoreUnreachable, &["another must be made"]);
    let mut store = server.connect();
    let loaded = store.load(SPACE, Which::Page(0)).unwrap();
    assert_eq!((loaded.meta.as_deref(), loaded.slots), (Some("m"), vec![(1, "one".to_owned())]));
    let (new, old) = (loaded.server.split_once('-').unwrap(), before.split_once('-').unwrap());
    assert!(new.0 != old.0 && new.1 != old.1, "{new:?} {old:?}");
    assert_eq!(write(&mut *store, &before).unwrap(), Swapped::Differs);
    assert_eq!(write(&mut *store, &loaded.server).unwrap(), Swapped::Done);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn namespace_with_lost_keys_is_begun_anew() {
    let server = Server::start(&[]);
    for lose in ["FLUSHALL", "DEL frazil:{tests}:meta", "DEL frazil:{tests}:slots", "HDEL frazil:{tests}:slots meta"] {
        let mut store = server.connect();
        let identity = filled(&mut *store);
        server.send(lose);
        assert_eq!(store.load(SPACE, Which::One(1)).unwrap().meta, None, "{lose}");
        assert_eq!(write(&mut *store, &identity).unwrap(), Swapped::Differs, "{lose}");
        // A new owner begins the namespace again.
        assert_eq!(store.swap(SPACE, &expect_swap(&identity, None, Key::Meta, None, "again")).unwrap(), Swapped::Done, "{lose}");
        assert_eq!(store.load(SPACE, Which::Page(0)).unwrap().meta.as_deref(), Some("again"), "{lose}");
        server.send("FLUSHALL");
    }
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn foreign_data_is_refused() {
    let server = Server::start(&[]);
    let mut store = server.connect();
    for plant in [
        "LPUSH frazil:{tests}:meta x",
        "SET frazil:{tests}:slots x",
        "HSET frazil:{tests}:slots 07 x",
        "HSET frazil:{tests}:slots +7 x",
        "HSET frazil:{tests}:slots name x",
        "HSET frazil:{tests}:slots 4611686018427387904 x",
        "HSET frazil:{tests}:slots -1 x",
    ] {
        server.send(plant);
        refused(store.load(SPACE, Which::Page(0)), ErrorKind::StoreCorrupt, &["namespace", &server.port.to_string()]);
        server.send("FLUSHALL");
    }
    // In a script of several swaps, the error affects only its own namespace.
    let identity = store.load(SPACE, Which::One(1)).unwrap().server;
    for namespace in ["one", "two", "three"] {
        assert_eq!(store.swap(namespace, &expect_swap(&identity, None, Key::Meta, None, "m")).unwrap(), Swapped::Done);
    }
    server.send("DEL frazil:{two}:slots");
    server.send("SET frazil:{two}:slots x");
    let swap = expect_swap(&identity, Some("m"), ONE, None, "new");
    let made = store.ask_many(&["one", "two", "three"].map(|namespace| Ask::Swap(namespace, &swap)));
    let [one, two, three] = <[_; 3]>::try_from(made).unwrap();
    assert_eq!((one.unwrap(), three.unwrap()), (Answer::Swapped(Swapped::Done), Answer::Swapped(Swapped::Done)));
    refused(two, ErrorKind::StoreCorrupt, &["another type"]);
    let mut admin = server.admin();
    let () = admin.hset("frazil:{tests}:slots", 7, b"\xff\xfe").unwrap();
    refused(store.load(SPACE, Which::One(7)), ErrorKind::StoreCorrupt, &["node number 7", "not text"]);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn server_that_stops_answering() {
    let server = Server::start(&[]);
    let limit = Duration::from_millis(400);
    let place = server.port.to_string();
    let mut reading = connect(&server.url(), limit).unwrap();
    let mut writing = connect(&server.url(), limit).unwrap();
    let identity = filled(&mut *writing);
    server.signal("-STOP");
    let began = Instant::now();
    refused(reading.load(SPACE, Which::Page(0)), ErrorKind::StoreUnreachable, &[&place, "within 400ms"]);
    refused(write(&mut *writing, &identity), ErrorKind::StoreUnreachable, &[&place, "within 400ms"]);
    refused(connect(&server.url(), limit), ErrorKind::StoreUnreachable, &[&place, "within 400ms"]);
    let took = began.elapsed();
    // A call ends shortly before its time is over. Without a limit it would wait forever.
    assert!(2 * took >= 5 * limit && took < 20 * limit, "{took:?}");
    server.signal("-CONT");
    thread::sleep(Duration::from_millis(200));
    // The late reply to the load must not be taken for the reply to the swap.
    refused(write(&mut *reading, &identity), ErrorKind::StoreUnreachable, &["another must be made"]);
    assert_eq!(server.connect().load(SPACE, Which::Page(0)).unwrap().slots.len(), 1);

    let script = "local now = redis.call('TIME')[1] while true do redis.call('PING') end";
    server.send("CONFIG SET lua-time-limit 50");
    let url = server.url();
    let busy = thread::spawn(move || {
        let mut admin = ::redis::Client::open(url).unwrap().get_connection().unwrap();
        drop(cmd("EVAL").arg(script).arg(0).exec(&mut admin));
    });
    let refusal = until_refused(|| connect(&server.url(), TIMEOUT));
    refused(refusal, ErrorKind::StoreUnreachable, &["script"]);
    server.send("SCRIPT KILL");
    busy.join().unwrap();
    server.connect();

    server.send("CONFIG SET maxclients 1");
    let _only = server.connect();
    refused(connect(&server.url(), TIMEOUT), ErrorKind::StoreUnreachable, &["maxclients"]);
}

#[test]
#[ignore = "needs redis-server: tests/servers runs it"]
fn writes_that_the_server_refuses_are_store_readonly() {
    let server = Server::start(&[]);
    let mut store = server.connect();
    let identity = filled(&mut *store);
    server.send("CONFIG SET min-replicas-to-write 1");
    refused(write(&mut *store, &identity), ErrorKind::StoreReadonly, &["min-replicas-to-write"]);
    server.send("CONFIG SET min-replicas-to-write 0");

    cmd("CONFIG").arg("SET").arg("save").arg("3600 1").exec(&mut server.admin()).unwrap();
    // A folder replaces the dump's file.
    fs::create_dir(server.folder.path("dump.rdb")).unwrap();
    server.send("BGSAVE");
    let refusal = until_refused(|| write(&mut *store, &identity));
    refused(refusal, ErrorKind::StoreReadonly, &["disk"]);
    assert_eq!(server.connect().load(SPACE, Which::One(1)).unwrap().slots, [(1, "one".to_owned())]);
}

/// An authority, and certificates that it signed for the hosts: `ca.pem`, `key.pem`, `NAME.pem`.
fn certificates(names: &[&str]) -> Folder {
    let folder = Folder::new();
    let openssl = |line: String| {
        let done = Command::new("openssl").args(line.split(' ')).current_dir(&folder.0).output().expect("openssl, which this test runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    openssl(format!("{new} -keyout ca.key -out ca.pem -subj /CN=authority"));
    for name in names {
        let leaf = format!("-addext subjectAltName={name} -addext basicConstraints=critical,CA:FALSE -CA ca.pem -CAkey ca.key");
        let file = name.replace([':', ','], "-");
        openssl(format!("{new} -keyout {file}.key -out {file}.pem -subj /CN=server {leaf}"));
    }
    folder
}

/// Runs the suite in a separate process that trusts only this authority.
fn suite_trusting(authority: &str, url: &str) -> std::result::Result<(), String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["redis::tests::suite", "--exact", "--include-ignored"]);
    let done = command.env_remove("SSL_CERT_DIR").env("SSL_CERT_FILE", authority).env("FRAZIL_TEST_REDIS", url).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    if done.status.success() && text.contains("1 passed") { Ok(()) } else { Err(text) }
}

#[test]
#[ignore = "needs redis-server and openssl: tests/servers runs it"]
fn tls() {
    let files = certificates(&["DNS:localhost,IP:127.0.0.1", "DNS:elsewhere.example"]);
    let start = |name: &str, clients: &str| {
        let (certificate, key, authority) = (files.path(&format!("{name}.pem")), files.path(&format!("{name}.key")), files.path("ca.pem"));
        let place = ["--port", "0", "--tls-port", "PORT", "--tls-auth-clients", clients];
        Server::start(&[&place[..], &["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &authority]].concat())
    };
    let (right, wrong, strict) =
        (start("DNS-localhost-IP-127.0.0.1", "no"), start("DNS-elsewhere.example", "no"), start("DNS-localhost-IP-127.0.0.1", "yes"));
    let url = |server: &Server, host: &str| format!("rediss://{host}:{}/0", server.port);
    suite_trusting(&files.path("ca.pem"), &url(&right, "localhost")).unwrap();
    suite_trusting(&files.path("ca.pem"), &url(&right, "127.0.0.1")).unwrap();
    let lacks = |result: std::result::Result<(), String>, parts: &[&str]| {
        let text = result.unwrap_err();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    lacks(suite_trusting(&files.path("ca.pem"), &url(&wrong, "localhost")), &["STORE_UNREACHABLE", "elsewhere.example"]);
    lacks(suite_trusting(&files.path("ca.pem"), &url(&strict, "localhost")), &["STORE_AUTH", "tls-auth-clients no"]);
    lacks(suite_trusting(&files.path("none.pem"), &url(&right, "localhost")), &["STORE_UNREACHABLE", "none.pem", "SSL_CERT_FILE"]);
    refused(connect(&url(&right, "localhost"), TIMEOUT), ErrorKind::StoreUnreachable, &["localhost:", "SSL_CERT_FILE"]);
    refused(connect(&right.url(), TIMEOUT), ErrorKind::StoreUnreachable, &["closed", "rediss://"]);

    let plain = Server::start(&[]);
    refused(connect(&url(&plain, "localhost"), TIMEOUT), ErrorKind::StoreUnreachable, &["does not speak TLS", "redis://"]);
    let http = impostor(b"HTTP/1.1 400 Bad Request\r\n\r\n", Duration::ZERO).replace("redis:", "rediss:");
    refused(connect(&http, TIMEOUT), ErrorKind::StoreUnreachable, &["does not speak TLS"]);
    refused(connect(&impostor(b"", Duration::ZERO).replace("redis:", "rediss:"), TIMEOUT), ErrorKind::StoreUnreachable, &["speak TLS"]);
    plain.signal("-STOP");
    let began = Instant::now();
    refused(connect(&url(&plain, "localhost"), Duration::from_millis(400)), ErrorKind::StoreUnreachable, &["within 400ms"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
