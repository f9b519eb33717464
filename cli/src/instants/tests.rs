use super::*;

#[test]
fn instants_and_distances_from_now() {
    let now = 1_800_000_000_000;
    for (text, ms) in
        [("90m", now - 5_400_000), ("7d", now - 604_800_000), ("1970-01-02", 86_400_000), ("315532800000", 315_532_800_000), ("0", 0)]
    {
        assert_eq!(instant("--since", text, now), Ok(ms), "{text}");
    }
    for text in ["2025", "20250131", "1764000000", "", "d", "soon", "-5h", "99999999999999999999d", "5w", "9999999999999999999d"] {
        assert!(instant("--since", text, now).is_err(), "{text}");
    }
}
