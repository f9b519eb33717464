//! The life of the process: open, serve, drain, release.

use crate::config::Config;
use crate::dispatch::{self, Entrance};
use crate::lend::AT_ONCE;
use crate::listen::{self, Bound};
use crate::names::Name;
use crate::outages::{self, CancelOpening};
use crate::protocol::Protocol;
use crate::proxies::Proxies;
use crate::shared::Shared;
use crate::stop::{self, Stop};
use crate::tls::Tls;
use crate::{heap, log, systemd};
use frazil::{Error, ErrorKind, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

/// The time that requests in progress get when the server stops.
const DRAIN: Duration = Duration::from_secs(20);
/// The time that the stores then get to release node numbers.
const RELEASE: Duration = Duration::from_secs(5);
/// The time for anything else still running at the end, such as an interrupted start.
const REST: Duration = Duration::from_millis(100);

/// The turns of connections after which newly ready ones are polled; a connection whose pipeline has more commands is ready at once.
const TURNS: u32 = 8;

/// Serves until a signal ends it.
///
/// # Errors
/// The reason why it cannot serve: an address, a store, a node number.
pub fn run(config: Config) -> Result<()> {
    log::listen();
    let runtime = runtime(config.threads)?;
    let outcome = runtime.block_on(serve(config));
    runtime.shutdown_timeout(REST);
    // All requests are over; from here on a wait for a store blocks nobody.
    if let Err(error) = frazil::close_all(RELEASE) {
        log::warning("release.failed", [("code", error.kind().name().into()), ("text", error.to_string().into())]);
    }
    outcome
}

fn runtime(threads: usize) -> Result<Runtime> {
    // A single thread has no other to hand work over to.
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.event_interval(TURNS);
    builder.worker_threads(threads).enable_all().build().map_err(internal)
}

fn internal(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("the operating system refuses a resource of the server: {error}"))
}

async fn serve(config: Config) -> Result<()> {
    let mut signals = Signals::new()?;
    let (ends, stop) = stop::channel();
    // The operator's port answers until the end.
    let (_never, no_stop) = stop::channel();
    let mut limits = config.limits;
    let lent = config.plans.iter().filter(|plan| plan.is_lent()).count();
    limits.connections = connections_within(limits.connections, config.endpoints.len(), lent * AT_ONCE);
    let shared = Arc::new(Shared::new(limits, config.gate, config.tls, config.hosts, config.access_log));
    let proxies = Arc::new(config.proxies);
    let panics = shared.metrics.panics.clone();
    log::on_panic(move || _ = panics.inc());
    let lost = shared.metrics.log_lines_lost.clone();
    log::write_aside(move |lines| _ = lost.inc_by(lines)).map_err(internal)?;
    tokio::spawn(systemd::watch());
    tokio::spawn(heap::shrink());
    // Addresses first: errors in them show at once.
    let bound = config.endpoints.into_iter().map(|(protocol, place)| Ok((protocol, listen::bind(place)?))).collect::<Result<Vec<_>>>()?;
    let (admin, public): (Vec<_>, Vec<_>) = bound.into_iter().partition(|(protocol, _)| *protocol == Protocol::Admin);
    let mut ports = JoinSet::new();
    for (protocol, bound) in admin {
        ports.spawn(start(bound, &shared, &proxies, no_stop.clone(), protocol)?);
    }
    let (names, cancelled): (Vec<_>, _) =
        (config.plans.into_iter().map(|plan| Arc::new(Name::new(plan))).collect(), CancelOpening::default());
    let Some(opened) = signals.unless_ended(&shared, outages::open(&names, &cancelled)).await else { return Ok(()) };
    opened?;
    // Open the ports before `/readyz` says so.
    let serving = public.into_iter().map(|(protocol, bound)| start(bound, &shared, &proxies, stop.clone(), protocol));
    let serving = serving.collect::<Result<Vec<_>>>()?;
    shared.serve(names);
    for port in serving {
        ports.spawn(port);
    }
    drop(stop);
    log::info("ready", [("names", shared.names().len().into())]);
    let outages = tokio::spawn(outages::watch(Arc::clone(&shared), cancelled));
    systemd::ready();
    // A port never ends by itself.
    let broken = signals.unless_ended(&shared, ports.join_next()).await;
    shared.end();
    outages.abort();
    systemd::stopping();
    log::info("draining", []);
    // Balancers still send connections, until they have asked for `/readyz` or the operator has removed the server.
    signals.unless_ended(&shared, tokio::time::sleep(config.drain_delay)).await;
    ends.stop();
    let drained = signals.unless_ended(&shared, tokio::time::timeout(DRAIN, ends.all_gone())).await;
    if !matches!(drained, Some(Ok(()))) {
        log::warning("cut.off", [("text", "requests in progress took too long, or a second signal arrived".into())]);
    }
    log::info("ended", []);
    match broken {
        None => Ok(()),
        Some(_) => Err(Error::new(ErrorKind::Internal, "a port failed: the log has the reason")),
    }
}

/// Opens a port; the returned future serves it.
fn start(
    bound: Bound,
    shared: &Arc<Shared>,
    proxies: &Arc<Proxies>,
    stop: Stop,
    protocol: Protocol,
) -> Result<impl Future<Output = ()> + use<>> {
    let listener = bound.listen()?;
    log::info("listening", [("protocol", protocol.name().into()), ("address", listener.address().into())]);
    let entrance = Arc::new(Entrance::new(protocol, shared, proxies));
    let (most, full, port) = (shared.limits.connections, entrance.full, Arc::clone(protocol.port(&shared.metrics)));
    let shared = Arc::clone(shared);
    let connection = move |stream, stop, open| dispatch::serve(Arc::clone(&entrance), stream, stop, Arc::clone(&shared), open);
    Ok(listen::serve(listener, most, full, stop, port, connection))
}

/// The operator's signals.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let of = |kind| signal(kind).map_err(internal);
        Ok(Signals { terminate: of(SignalKind::terminate())?, interrupt: of(SignalKind::interrupt())?, hang_up: of(SignalKind::hangup())? })
    }

    /// Returns the result of some work, or `None` if SIGTERM or SIGINT comes first. SIGHUP reloads tokens and certificates.
    async fn unless_ended<T>(&mut self, shared: &Arc<Shared>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            if self.terminate.poll_recv(context).is_ready() || self.interrupt.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(None);
            }
            while self.hang_up.poll_recv(context).is_ready() {
                // On a blocking thread, because a network folder may not respond.
                let shared = Arc::clone(shared);
                tokio::task::spawn_blocking(move || reload(&shared));
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }
}

/// Reloads tokens and certificates; an invalid file changes nothing.
fn reload(shared: &Shared) {
    static IN_TURN: Mutex<()> = Mutex::new(());
    let _in_turn = IN_TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // systemd would take the end of a reload for the end of the start. After the stop it must get no notification.
    let serves = shared.serves();
    if serves {
        systemd::reloading();
    }
    let (tokens, certificates) = (shared.gate.reload(), shared.tls.as_ref().map(Tls::reload));
    shared.metrics.last_reload.set((tokens.is_ok() && !matches!(certificates, Some(Err(_)))).into());
    if let Some(tls) = &shared.tls {
        shared.metrics.certificate_expires.set(tls.expires());
    }
    match tokens {
        Ok(count) => log::info("tokens.read", [("tokens", count.into())]),
        Err(error) => log::error("tokens.kept", error.kind().name(), &error.to_string()),
    }
    match certificates {
        None => {}
        Some(Ok(())) => log::info("certificates.read", []),
        Some(Err(error)) => log::error("certificates.kept", error.kind().name(), &error.to_string()),
    }
    if serves && shared.serves() {
        systemd::ready();
    }
}

/// The files kept for stores, ports, the log and the runtime.
const RESERVED: u64 = 64;

/// Raises the limit to what the system allows, and returns how many connections each port may have. Each lent store has its own share of
/// files.
fn connections_within(connections: usize, ports: usize, lent: usize) -> usize {
    let reserved = RESERVED + lent as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let Some(allowed) = (if raised { maximum } else { current }) else { return connections };
    let room = (allowed.saturating_sub(reserved) / ports.max(1) as u64).max(1);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if room < connections {
        let wanted = reserved + (connections * ports) as u64;
        let why =
            format!("only {allowed} files may be open (ulimit -n, LimitNOFILE=): {connections} connections of each port take {wanted}");
        log::warning("connections.fewer", [("connections", room.into()), ("text", why.into())]);
    }
    connections.min(room)
}
