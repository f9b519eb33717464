//! A spec line that is accepted is printed as one that has the same meaning.
#![no_main]

use frazil::Spec;
use libfuzzer_sys::fuzz_target;

/// The words of a line. An address that is hidden after another one becomes part of it where the line is read again.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<_> = line.replace('"', "").split_whitespace().map(str::to_owned).collect();
    words.dedup_by(|word, before| word == "***" && before.ends_with("***"));
    words
}

fuzz_target!(|line: &str| {
    let Ok(spec) = Spec::parse(line) else { return };
    let shown = spec.to_string();
    let again = Spec::parse(&shown).unwrap_or_else(|error| panic!("{shown:?}, which {line:?} prints, is refused: {error}"));
    let are_hidden = shown.matches("***").count() > 1;
    assert!(again.to_string() == shown || are_hidden && words(&again.to_string()) == words(&shown), "{line:?}: {shown:?}, then {again:?}");
    // This checks the plan of a generator, and opens nothing.
    let checked = frazil::bindings::check_spec(&spec, None).map_err(|error| error.kind());
    if !line.contains("://") {
        assert_eq!(frazil::bindings::check_spec(&again, None).map_err(|error| error.kind()), checked, "{line:?}");
    }
});
