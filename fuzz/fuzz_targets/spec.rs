//! A spec line that is accepted is printed as one that has the same meaning.
#![no_main]

use frazil::Spec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    let Ok(spec) = Spec::parse(line) else { return };
    let shown = spec.to_string();
    let again = Spec::parse(&shown).unwrap_or_else(|error| panic!("{shown:?}, which {line:?} prints, is refused: {error}"));
    assert_eq!(again.to_string(), shown, "{line:?}");
    // This checks the plan of a generator, and opens nothing.
    let checked = frazil::bindings::check_spec(&spec, None).map_err(|error| error.kind());
    if !line.contains("://") {
        assert_eq!(frazil::bindings::check_spec(&again, None).map_err(|error| error.kind()), checked, "{line:?}");
    }
});
