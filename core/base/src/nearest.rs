//! "Did you mean": the allowed name that is nearest to a wrong one.

/// Returns the hint after an unknown name: ` (did you mean worker?)`, or an empty text if no name
/// is near.
///
/// A name is near if it differs by typing errors: one letter in four is wrong, missing, extra, or
/// swapped with its neighbour. Case, `_` and `-` do not matter. A name followed by `id` is near,
/// too.
pub fn did_you_mean<'a>(given: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, allowed).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// The longest name that is compared. All allowed names are shorter, and a comparison with a long
/// text would take long.
const LONGEST: usize = 64;

pub fn nearest<'a>(given: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(given, &mut allowed.into_iter())
}

/// One function for all iterators, because each type of iterator would get a copy of it.
fn nearest_of<'a>(given: &str, allowed: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    let given = plain(given);
    let mut best: Option<(usize, &str)> = None;
    for name in allowed {
        let typing_errors = typing_errors(&given, &plain(name));
        if typing_errors.is_some_and(|typing_errors| best.is_none_or(|(least, _)| typing_errors < least)) {
            best = typing_errors.map(|typing_errors| (typing_errors, name));
        }
    }
    best.map(|(_, name)| name)
}

/// A name without the differences of spelling: `workerId` and `worker-id` are `workerid`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// The number of typing errors between two names, if they are few.
fn typing_errors(given: &str, name: &str) -> Option<usize> {
    if given.strip_suffix("id") == Some(name) {
        return Some(0);
    }
    let (a, b) = (given.chars().count(), name.chars().count());
    let most = (a.max(b) / 4).max(usize::from(a.max(b) > 2));
    (a.abs_diff(b) <= most).then(|| strsim::osa_distance(given, name)).filter(|&distance| distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors() {
        let names = ["datacenter", "worker", "store", "start", "lag", "epoch", "namespace", "base62"];
        for (given, meant) in [
            ("datacentre", "datacenter"),
            ("wroker", "worker"),
            ("wokrer", "worker"),
            ("workers", "worker"),
            ("Worker", "worker"),
            ("data_center", "datacenter"),
            ("dataCenter", "datacenter"),
            ("stroe", "store"),
            ("name_space", "namespace"),
            ("lags", "lag"),
            ("BASE-62", "base62"),
            ("epohc", "epoch"),
            ("workerId", "worker"),
            ("lag_id", "lag"),
        ] {
            assert_eq!(nearest(given, names), Some(meant), "{given}");
        }
    }

    #[test]
    fn distant_name_gives_no_hint() {
        let long = "x".repeat(100_000);
        for given in ["", "x", "l", "é", "node", "password", "shard", "machine_number", "id", "===", &long] {
            assert_eq!(nearest(given, ["datacenter", "worker", "store", "start", "lag"]), None, "{given:.20}");
        }
        assert_eq!(nearest("worker", []), None);
        assert_eq!(
            (did_you_mean("wrker", ["worker"]), did_you_mean("x", ["worker"])),
            (" (did you mean worker?)".to_owned(), String::new())
        );
    }
}
