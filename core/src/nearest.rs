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

fn plain(name: &str) -> Vec<u8> {
    name.bytes().filter(|b| !matches!(b, b'_' | b'-')).map(|b| b.to_ascii_lowercase()).collect()
}

/// The slips that make one name of another, if they are few.
fn slips(given: &[u8], name: &[u8]) -> Option<usize> {
    if given.strip_suffix(b"id") == Some(name) {
        return Some(0);
    }
    let length = given.len().max(name.len());
    let distance = distance(given, name);
    (distance <= (length / 4).max(usize::from(length > 2))).then_some(distance)
}

/// The fewest letters to insert, delete, replace, or swap with their neighbour.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut least = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let at = i * width + j;
            least[at] = if i == 0 || j == 0 {
                i + j
            } else {
                let other = usize::from(a[i - 1] != b[j - 1]);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swap = if swapped { least[at - 2 * width - 2] + 1 } else { usize::MAX };
                (least[at - width - 1] + other).min(least[at - width] + 1).min(least[at - 1] + 1).min(swap)
            };
        }
    }
    least[a.len() * width + b.len()]
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
    fn distances() {
        for (a, b, slips) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("ab", "ba", 1), ("abc", "cab", 2), ("ca", "abc", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), slips, "{a} {b}");
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
