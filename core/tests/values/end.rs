//! The end of a layout whose stamps have 63 bits.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Error, ErrorKind, Layout, Snowflake};

#[test]
fn last_ticks_of_a_layout_without_node_fields_are_issued_once() {
    const LAYOUT: &str = "time:43@1ms sequence:20 epoch:1970-01-01";
    let last = Layout::parse(LAYOUT).unwrap().expires_at_ms().unwrap() - 1;
    for store in ["", "store=memory namespace=end"] {
        let mut before = -1;
        // The second generator finds all IDs used up, in the process or in the store.
        for first in [7, 0] {
            let line = format!("layout='{LAYOUT}' clock=manual start=zero rollback=error exhausted=error {store}");
            let ids = match Snowflake::open(&line) {
                Err(error) if first == 0 && error.kind() == ErrorKind::NodeInUse => continue,
                ids => ids.unwrap(),
            };
            for back in (0..=first).rev() {
                ids.set_time(last - back).unwrap();
                let mut buffer = vec![-1i64; 1 << 20];
                let result = ids.fill(&mut buffer);
                let written = result.as_ref().map_or_else(Error::written, |()| buffer.len());
                assert!(buffer[..written].iter().all(|id| std::mem::replace(&mut before, *id) < *id), "{store}");
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{store}: {error}");
                }
            }
            ids.close();
        }
        assert_eq!(before, i64::MAX - (1 << 22), "{store}: no process has as many threads as are left above it");
    }
}
