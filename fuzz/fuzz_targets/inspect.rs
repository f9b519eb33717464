//! `frazil inspect` and `frazil decode` with any text: an answer or an error with a code, in UTF-8, and JSON that is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;

fn run(arguments: &[&str]) -> (i32, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = frazil_cli::main(arguments.iter().map(Into::into), &mut out, &mut err);
    let said = String::from_utf8(err).expect("UTF-8");
    assert!(status == 0 || !said.is_empty() || !out.is_empty(), "{arguments:?} fails without a word");
    assert!(!said.contains("INTERNAL"), "{arguments:?}: {said}");
    (status, String::from_utf8(out).expect("UTF-8"))
}

fuzz_target!(|text: &str| {
    let (status, _) = run(&["inspect", "--", text]);
    let (as_json, shown) = run(&["inspect", "--json", "--", text]);
    assert_eq!(status, as_json, "{text:?}");
    // A text that is not understood has JSON too.
    for line in shown.lines() {
        let read: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{text:?} gives {line}: {error}"));
        assert_eq!(read["text"], text);
    }
    run(&["decode", "standard", "--", text]);
});
