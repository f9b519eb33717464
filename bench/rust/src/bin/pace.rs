//! Requests at a steady pace, each of them timed; or connections without requests.
//!
//! usage: pace PORT CONNECTIONS SECONDS RATE REQUEST [EACH]: a JSON object of what came, times in microseconds.
//! RATE is requests a second of all connections together, and REQUEST the bytes to send, with \r and \n as in C. After EACH requests a
//! connection is closed, and the next one opened.
//! A RATE of 0 sends one request on each connection, then holds them, idle, and prints a line when they are all there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

struct Client {
    stream: TcpStream,
    came: Vec<u8>,
}

impl Client {
    fn new(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, came: vec![] })
    }

    /// Sends a request, and reads its answer to the end.
    fn ask(&mut self, request: &[u8]) -> Outcome<()> {
        self.stream.write_all(request)?;
        self.came.clear();
        let mut buffer = [0; 64 * 1024];
        loop {
            let count = self.stream.read(&mut buffer)?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            self.came.extend_from_slice(&buffer[..count]);
            if is_whole(&self.came)? {
                return Ok(());
            }
        }
    }
}

/// Returns whether an answer is complete: of HTTP with a length, or of RESP.
fn is_whole(came: &[u8]) -> Outcome<bool> {
    match came[0] {
        b'-' => return Err(String::from_utf8_lossy(came).into()),
        b'H' => {}
        _ => return Ok(end_of_reply(came, 0)?.is_some()),
    }
    let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(false) };
    let head = std::str::from_utf8(&came[..end])?.to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(head.into());
    }
    let length: usize = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).ok_or("no length")?.parse()?;
    Ok(came.len() >= end + 4 + length)
}

/// Returns the end of a RESP reply that begins at a place, if it is complete.
fn end_of_reply(came: &[u8], at: usize) -> Outcome<Option<usize>> {
    let Some(length) = came[at..].windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let mut end = at + length + 2;
    let count = || Ok::<_, Box<dyn std::error::Error + Send + Sync>>(std::str::from_utf8(&came[at + 1..at + length])?.parse::<i64>()?);
    match came[at] {
        b'$' => end += usize::try_from(count()?).map_or(0, |length| length + 2),
        b'*' => {
            for _ in 0..count()? {
                match end_of_reply(came, end)? {
                    Some(next) => end = next,
                    None => return Ok(None),
                }
            }
        }
        _ => {}
    }
    Ok((end <= came.len()).then_some(end))
}

/// One connection's share of the load: how long each request took, in microseconds.
fn load(port: u16, request: &[u8], each: usize, start: Instant, seconds: f64, every: Duration, first: Duration) -> Outcome<Vec<f64>> {
    let mut client = Client::new(port)?;
    let mut times = vec![];
    let mut due = start + first;
    let end = start + Duration::from_secs_f64(seconds);
    while due < end {
        let now = Instant::now();
        // A request that a late answer has delayed counts from when it was due. A sleep that was too long is not the server's fault.
        let since = if now < due {
            thread::sleep(due - now);
            Instant::now()
        } else {
            due
        };
        client.ask(request)?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
        due += every;
        if times.len().is_multiple_of(each) {
            client = Client::new(port)?;
        }
    }
    Ok(times)
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, connections, seconds, rate, request, rest @ ..] = words.as_slice() else {
        return Err("usage: pace PORT CONNECTIONS SECONDS RATE REQUEST [EACH]".into());
    };
    let each = rest.first().map_or(Ok(usize::MAX), |each| each.parse())?;
    let (port, connections, seconds, rate): (u16, u32, f64, f64) = (port.parse()?, connections.parse()?, seconds.parse()?, rate.parse()?);
    let request = request.replace("\\r", "\r").replace("\\n", "\n").into_bytes();
    if rate == 0.0 {
        let mut idle = vec![];
        for _ in 0..connections {
            let mut client = Client::new(port)?;
            client.ask(&request)?;
            idle.push(client.stream);
        }
        println!("{}", idle.len());
        thread::sleep(Duration::from_secs_f64(seconds));
        return Ok(());
    }
    let every = Duration::from_secs_f64(f64::from(connections) / rate);
    let start = Instant::now();
    let outcomes = thread::scope(|scope| {
        let started: Vec<_> = (0..connections)
            .map(|n| {
                let request = &request;
                scope.spawn(move || load(port, request, each, start, seconds, every, every * n / connections))
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("no thread panics")).collect::<Outcome<Vec<_>>>()
    })?;
    let took = start.elapsed().as_secs_f64();
    let mut times = outcomes.concat();
    times.sort_by(f64::total_cmp);
    let at = |quantile: f64| times[((times.len() - 1) as f64 * quantile) as usize];
    println!(
        r#"{{"requests": {}, "seconds": {took:.3}, "p50": {:.1}, "p99": {:.1}, "p999": {:.1}, "max": {:.1}}}"#,
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    Ok(())
}
