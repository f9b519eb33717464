//! "Did you mean": of the names that are allowed, the one that a wrong one is a slip of.

/// Returns the hint after a name that does not exist: ` (did you mean worker?)`, or nothing where no name is near.
///
/// Near is what a slip makes of a name: one letter in four is another, missing, too many, or has changed places with its neighbour. Upper and lower case
/// do not matter, nor do `_` and `-`. A name with `id` after it is near, too.
pub fn did_you_mean<'a>(given: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, allowed).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// Longer than any name: whatever is that long is no slip of one, and would take long to compare.
const LONGEST: usize = 64;

pub(crate) fn nearest<'a>(given: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(given, &mut allowed.into_iter())
}

/// One function for all lists, because each would have a copy of it.
fn nearest_of<'a>(given: &str, allowed: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    let given = plain(given);
    let mut best: Option<(usize, &str)> = None;
    for name in allowed {
        let slips = slips(&given, &plain(name));
        if slips.is_some_and(|slips| best.is_none_or(|(least, _)| slips < least)) {
            best = slips.map(|slips| (slips, name));
        }
    }
    best.map(|(_, name)| name)
}

/// A name without what spellings differ in: `workerId` and `worker-id` are `workerid`.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// The slips that make one name of another, if they are few.
fn slips(given: &str, name: &str) -> Option<usize> {
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
    fn slips() {
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
    fn what_is_no_slip_is_not_guessed_at() {
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
