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
    if given.len() > LONGEST {
        return None;
    }
    let plain = |name: &str| name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect::<String>();
    let given = plain(given);
    let slips = |name: &&str| {
        let name = plain(name);
        if given.strip_suffix("id") == Some(&name) {
            return Some(0);
        }
        let distance = strsim::osa_distance(&given, &name);
        let length = given.chars().count().max(name.chars().count());
        (distance <= (length / 4).max(usize::from(length > 2))).then_some(distance)
    };
    allowed
        .into_iter()
        .filter_map(|name| slips(&name).map(|distance| (distance, name)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
