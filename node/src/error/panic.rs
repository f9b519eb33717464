//! Converts panics to errors, so that none unwinds into C.

use frazil::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a closure; a panic in it becomes `INTERNAL`.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> frazil::Result<T> {
    // A panic cannot break the core's state, which is atomic words.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Error::from_panic(&*panic))
}

#[cfg(test)]
mod tests {
    use super::catch;
    use frazil::ErrorKind;

    #[test]
    fn a_panic_becomes_internal() {
        let error = catch(|| panic!("number {}", 7)).map_err(|error| (error.kind(), error.to_string()));
        let expected = "a defect of frazil, please report it: number 7".to_owned();
        assert_eq!(error, Err::<(), _>((ErrorKind::Internal, expected)));
        let error = catch(|| std::panic::panic_any(1)).map_err(|error| error.kind());
        assert_eq!(error, Err::<(), _>(ErrorKind::Internal));
        assert_eq!(catch(|| 7), Ok(7));
    }
}
