//! Tests of the command with servers.

use frazil::{ErrorKind, Snowflake, Spec};
use std::env;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs FRAZIL_TEST_REDIS: tests/servers runs it"]
fn a_first_start_reports_its_wait_and_begin_skips_it() {
    static EVENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    frazil::on_event(|event| EVENTS.lock().unwrap().push(format!("{} {}", event.name, event.text)));
    let store = env::var("FRAZIL_TEST_REDIS").expect("the URL of a Redis server for tests");
    let [new, begun] = ["new", "begun"].map(|name| format!("{name}-{}", std::process::id()));
    let spec = |namespace: &str| Spec::parse(&format!("standard store={store} namespace={namespace} window=20s")).unwrap();
    let open = |namespace: &str, wait_ms: u64| Snowflake::open_spec(spec(namespace), Duration::from_millis(wait_ms));
    let run = |line: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = crate::main(line.iter().map(Into::into), &mut out, &mut err);
        (status, String::from_utf8_lossy(&[out, err].concat()).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let command = |namespace: &str| format!("`frazil nodes {store} --namespace {namespace} --begin 'standard window=20s'`");
    let (status, output) = run(&["doctor", &spec(&new).to_string()]);
    assert!(status == 0 && output.contains(&format!("warn namespace {new}: empty; the first start waits 26 s")), "{output}");
    assert!(output.contains(&format!("run {} before the first start", command(&new))), "{output}");
    let error = open(&new, 2_500).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    let error = error.to_string();
    assert!(error.contains("no lease begins before 2") && error.contains(&command(&new)), "{error}");
    let output: Vec<_> = EVENTS
        .lock()
        .unwrap()
        .iter()
        .filter(|text| text.starts_with("lease.waiting") && text.contains(&format!("namespace={new}")))
        .cloned()
        .collect();
    assert_eq!(output.len(), 1, "{output:?}");
    assert!(output[0].contains(error.split_once(": no lease").unwrap().1), "{output:?} {error}");
    let (status, output) = run(&["nodes", &store, "--namespace", &begun, "--begin", "standard window=20s"]);
    assert_eq!(status, 0, "{output}");
    assert!(!run(&["doctor", &spec(&begun).to_string()]).1.contains("the first start waits"));
    let since = Instant::now();
    open(&begun, 60_000).unwrap().next_id().unwrap();
    assert!(since.elapsed() < Duration::from_secs(15), "far less than the floor");
    assert!(!EVENTS.lock().unwrap().iter().any(|text| text.starts_with("lease.waiting") && text.contains(&format!("namespace={begun}"))));
}
