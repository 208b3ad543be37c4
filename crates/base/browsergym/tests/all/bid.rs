//! Ids of elements.

use gloveport_browsergym::bid::{Bid, frame_letters};

#[test]
fn frames_are_counted_in_letters() {
    let table = [
        (0, "a"),
        (1, "b"),
        (25, "z"),
        (26, "aA"),
        (27, "aB"),
        (51, "aZ"),
        (52, "bA"),
        (701, "zZ"),
        (702, "aAA"),
        (703, "aAB"),
        (18_277, "zZZ"),
        (18_278, "aAAA"),
        (u64::MAX, "gKGWBYLWRXTLPP"),
    ];
    for (counter, letters) in table {
        assert_eq!(frame_letters(counter), letters, "{counter}");
    }
}

#[test]
fn a_bid_names_the_frames_on_the_way() {
    let table: [(&str, &[&str]); 6] = [
        ("0", &[]),
        ("123", &[]),
        ("a12", &["a"]),
        ("ab0", &["a", "ab"]),
        ("aAb0", &["aA", "aAb"]),
        ("abDEb123", &["a", "abDE", "abDEb"]),
    ];
    for (text, frames) in table {
        let bid = Bid::new(text);
        assert_eq!(bid.frames().collect::<Vec<_>>(), frames, "{text}");
        assert_eq!(bid.as_str(), text);
        assert_eq!(bid.not_found().to_string(), format!("ValueError: Could not find element with bid \"{text}\""));
    }
}

#[test]
fn what_is_no_bid_leads_through_frames_that_there_are_not() {
    let table: [(&str, &[&str]); 7] = [
        ("", &[]),
        ("a", &["a"]),
        ("A0", &["A"]),
        ("1a", &["1", "1a"]),
        ("3 ", &["3", "3 "]),
        ("é1", &["é"]),
        ("a1b2", &["a", "a1", "a1b"]),
    ];
    for (text, frames) in table {
        let bid = Bid::new(text);
        assert_eq!(bid.frames().collect::<Vec<_>>(), frames, "{text}");
        assert_eq!(bid.not_found().to_string(), format!("ValueError: Could not find element with bid \"{text}\""));
    }
}
