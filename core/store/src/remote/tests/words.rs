//! Requests and answers, in the form in which they are sent and parsed.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn question() -> impl Strategy<Value = Asked> {
    let node = 0..1_u64 << 62;
    let these = vec(node.clone(), 2..9).prop_map(|nodes| Which::These(nodes.into()));
    let which = prop_oneof![node.clone().prop_map(Which::One), these, any::<u64>().prop_map(Which::Page)];
    let record = || proptest::option::of(any::<String>());
    let key = prop_oneof![Just(Key::Meta), node.clone().prop_map(Key::Slot)];
    let swap = (record(), any::<String>(), key, record(), any::<String>(), any::<i64>(), any::<i64>());
    let swap =
        swap.prop_map(|(meta, server, key, old, new, earliest_ms, latest_ms)| Swap { meta, server, key, old, new, earliest_ms, latest_ms });
    prop_oneof![
        Just(Asked::List),
        (any::<String>(), which, 0..i64::MAX).prop_map(|(name, which, floor)| Asked::Load(name, which, floor)),
        (any::<String>(), swap).prop_map(|(name, swap)| Asked::Swap(name, swap)),
    ]
}

proptest! {
    #[test]
    fn requests_mean_the_same_on_both_ends(question in question(), ms in any::<u64>()) {
        let words = question.words(Duration::from_millis(ms));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        prop_assert_eq!(Asked::parse(&words), Some((question, Duration::from_millis(ms))));
    }

    #[test]
    fn answers_mean_the_same_on_both_ends(source in any::<String>(), history in proptest::option::of(0..i64::MAX),
                         server in any::<String>(), time_ms in proptest::option::of(0..1_i64 << 53), meta in any::<Option<String>>(),
                         slots in vec((0..1_u64 << 62, any::<String>()), 0..4), loses_writes in any::<bool>(), next in any::<Option<u64>>()) {
        let loaded = Loaded { meta, server, time_ms, slots, loses_writes, next };
        let backing = Backing { source, history };
        prop_assert_eq!(message::loaded(message::of_loaded(backing.clone(), loaded.clone())), Some((backing, loaded)));
    }

    #[test]
    fn any_words_are_parsed_without_a_panic(words in vec(prop_oneof![any::<String>(), "LOAD|SWAP|LIST|meta|-|[+]|[*]|page:[0-9]{0,3}|[0-9,]{1,20}"], 0..11)) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        drop(Asked::parse(&words));
    }
}

#[test]
fn outcomes_of_a_swap_round_trip() {
    for swapped in [Swapped::Done, Swapped::Differs, Swapped::OutOfTime(-5), Swapped::OutOfTime(i64::MAX)] {
        let backing = Backing { source: "s".to_owned(), history: Some(1) };
        assert_eq!(message::swapped(&message::of_swapped(backing.clone(), swapped)), Some((backing, swapped)));
    }
}
