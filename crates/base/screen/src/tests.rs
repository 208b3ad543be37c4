//! The rules of the terminal as tables, and what must hold for any input at all.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::{Renderer, Size};

const SMALL: Size = Size { columns: 20, rows: 5, history: 30 };
const TINY: Size = Size { columns: 8, rows: 4, history: 10 };

fn fed(size: Size, bytes: impl AsRef<[u8]>) -> Renderer {
    let mut renderer = Renderer::new(size);
    renderer.feed(bytes.as_ref());
    renderer
}

fn shown(bytes: impl AsRef<[u8]>) -> String {
    fed(Size::default(), bytes).text()
}

/// Checks a table of input and text on a screen of 8 x 4 cells.
#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (input, expected) in table {
        assert_eq!(fed(TINY, input).text(), *expected, "{input:?}");
    }
}

fn numbered(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "Line {number}");
        text
    })
}

#[test]
fn a_character_is_repeated_also_after_it_scrolled_away_in_a_large_piece() {
    let input = format!("@{}3{}\x1b[2b", "\n".repeat(12), "\n".repeat(12));
    let mut cut = Renderer::new(TINY);
    input.as_bytes().chunks(3).for_each(|chunk| cut.feed(chunk));
    assert_eq!(fed(TINY, &input).text(), cut.text());
    assert!(cut.text().ends_with("33"));
}

#[test]
fn case_table_of_the_shell_session_holds() {
    let table: &[(&str, &str)] = &[
        ("no newline", "no newline"),
        ("\n\n\nlead", "\n\n\nlead"),
        ("a\n\n\n", "a"),
        ("a\n\n\nz\n", "a\n\n\nz"),
        ("a   \n", "a"),
        ("a   \nb  \n", "a\nb"),
        ("hello   world    with\nspecial  chars\n", "hello   world    with\nspecial  chars"),
        ("a\tb\n", "a       b"),
        ("\x1b[31mred\x1b[0m\n", "red"),
        ("10%\r50%\r100%\n", "100%"),
        ("é漢字😀\n", "é漢字😀"),
        ("", ""),
        ("\r\n", ""),
        ("a\r\nb\r\n", "a\nb"),
    ];
    for (input, expected) in table {
        assert_eq!(shown(input), *expected, "{input:?}");
    }
    assert_eq!(shown("x".repeat(2500) + "\n"), "x".repeat(2500));
    assert_eq!(shown(numbered(5000)), numbered(5000).trim_end());
}

#[test]
fn control_characters_move_or_vanish() {
    check(&[
        ("abc\rX", "Xbc"),
        ("abc\x08X", "abX"),
        ("\x08\x08a", "a"),
        ("a\x07b", "ab"),
        ("a\x0bb\x0cc", "a\nb\nc"),
        ("a\0b\x01c\x7fd\x05e", "abcde"),
        ("a\x0eb\x0fc", "abc"),
        ("a\tb", "a      b"),
        ("abc\r\td", "abc    d"),
        ("\u{85}a\u{9b}2Jb", "a2Jb"),
    ]);
    assert_eq!(shown("12345678\tx"), "12345678        x");
}

#[test]
fn lines_wrap_late_and_come_out_in_one_piece() {
    check(&[
        ("12345678", "12345678"),
        ("12345678\nab", "12345678\nab"),
        ("12345678\r\nab", "12345678\nab"),
        ("123456789", "123456789"),
        ("12345678\rX", "X2345678"),
        ("12345678\x08X", "1234567X"),
        ("12345678\x1b[K9", "123456789"),
        ("1234567漢", "1234567漢"),
        ("123456漢字", "123456漢字"),
        ("12345678\x1b[AX", "1234567X"),
        ("123      \n", "123"),
        ("123                             \nx", "123\nx"),
        ("123         4\n", "123         4"),
        ("12345678\tX", "12345678X"),
        ("\x1b[?7l123456789abc", "1234567c"),
        ("\x1b[?7l1234567漢", "123456漢"),
        ("\x1b[?7l12345678\x1b[?7hX9", "12345678X9"),
        ("1234567890\x1b[1;1H\x1b[Kx", "x\n90"),
        ("1234567890\x1b[1;8H\x1b[P", "1234567\n90"),
        ("1234567890\x1b[2;1H\x1b[L", "12345678\n\n90"),
        ("1234567890\x1b[2;1H\x1b[Mx", "12345678\nx"),
    ]);
}

#[test]
fn the_cursor_moves_and_stays_inside() {
    check(&[
        ("a\nb\nc\x1b[2AX", "aX\nb\nc"),
        ("a\nb\x1b[9AX", "aX\nb"),
        ("a\x1b[BX", "a\n X"),
        ("a\x1b[99BX", "a\n\n\n X"),
        ("a\x1b[3CX", "a   X"),
        ("a\x1b[99CX", "a      X"),
        ("abc\x1b[2DX", "aXc"),
        ("abc\x1b[99DX", "Xbc"),
        ("a\nb\x1b[EX", "a\nb\nX"),
        ("abc\nb\x1b[FX", "Xbc\nb"),
        ("abc\x1b[2GX", "aXc"),
        ("abc\x1b[2`X", "aXc"),
        ("abc\x1b[0GX", "Xbc"),
        ("\x1b[2;3HX", "\n  X"),
        ("\x1b[2;3fX", "\n  X"),
        ("ab\x1b[HX", "Xb"),
        ("ab\x1b[3dX", "ab\n\n  X"),
        ("\x1b[99;99HX", "\n\n\n       X"),
        ("ab\x1b7cd\x1b8X", "abXd"),
        ("ab\x1b[scd\x1b[uX", "abXd"),
        ("ab\x1bDX", "ab\n  X"),
        ("ab\x1bEX", "ab\nX"),
        ("a\nb\x1bMX", "aX\nb"),
        ("a\x1bMX", " X\na"),
        ("\x1b[2IX", "       X"),
        ("abc\x1b[ZX", "Xbc"),
    ]);
}

#[test]
fn erasing_takes_exactly_what_it_names() {
    check(&[
        ("abc\nabc\nabc\x1b[2;2H\x1b[J", "abc\na"),
        ("abc\nabc\nabc\x1b[2;2H\x1b[1J", "\n  c\nabc"),
        ("abc\nabc\nabc\x1b[2;2H\x1b[2JX", "\n X"),
        ("abcd\x1b[2D\x1b[K", "ab"),
        ("abcd\x1b[3D\x1b[1K", "  cd"),
        ("abcd\x1b[2D\x1b[2KX", "  X"),
        ("abcd\r\x1b[2X", "  cd"),
        ("abcd\r\x1b[X", " bcd"),
        ("漢字\x1b[2G\x1b[X", "  字"),
        ("abc\x1b[9Jd\x1b[7Ke", "abcde"),
        ("abc\x1b[?2Jd", "abcd"),
    ]);
}

#[test]
fn cells_and_lines_are_inserted_and_deleted() {
    check(&[
        ("abcd\x1b[3D\x1b[2@X", "aX bcd"),
        ("abcdefgh\r\x1b[2@", "  abcdef"),
        ("abcd\x1b[3D\x1b[2P", "ad"),
        ("abcd\x1b[3D\x1b[99P", "a"),
        ("漢字\x1b[2G\x1b[@", "   字"),
        ("漢字\x1b[2G\x1b[P", " 字"),
        ("a漢字b\r\x1b[3@", "   a漢字"),
        ("a漢字b\r\x1b[4@", "    a漢"),
        ("\x1b[4habc\rX\x1b[4lY", "XYbc"),
        ("\x1b[4h字\r漢", "漢字"),
        ("a\nb\nc\x1b[2;1H\x1b[LX", "a\nX\nb\nc"),
        ("a\nb\nc\nd\x1b[2;1H\x1b[2L", "a\n\n\nb"),
        ("a\nb\nc\x1b[1;1H\x1b[M", "b\nc"),
        ("a\nb\nc\x1b[1;1H\x1b[99M", ""),
        ("a\nb\x1b[SX", "a\nb\n X"),
        ("a\nb\x1b[TX", "\naX\nb"),
        ("ab\x1b[3b", "abbbb"),
        ("漢\x1b[9b", "漢漢漢漢"),
        ("\x1b[9b", ""),
    ]);
}

#[test]
fn a_scroll_region_scrolls_alone() {
    check(&[
        ("a\nb\nc\nd\x1b[2;3r\x1b[3;1H\nX", "a\nc\nX\nd"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[2;1H\x1bMX", "a\nX\nb\nd"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[4;1H\n\nX", "a\nb\nc\nX"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[S", "a\nc\n\nd"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[T", "a\n\nb\nd"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[2;1H\x1b[M", "a\nc\n\nd"),
        ("a\nb\nc\nd\x1b[2;3r\x1b[1;1H\x1b[M", "a\nb\nc\nd"),
        ("\x1b[3;2rX\x1b[0;0rY", "Y"),
        // From the first row on, what leaves the region is kept.
        ("a\nb\nc\nd\x1b[1;2r\x1b[2;1H\nX", "a\nb\nX\nc\nd"),
        ("\x1b[1;2r123456789012345678901234", "123456789012345678901234"),
    ]);
}

#[test]
fn what_does_not_touch_the_text_is_swallowed() {
    check(&[
        ("\x1b[1;38:5:196mx\x1b[m", "x"),
        ("\x1b[?25l\x1b[?2004hx\x1b[>4;1m\x1b[=5u\x1b[!p", "x"),
        ("\x1b(B\x1b)0\x1b#8\x1b=\x1b>x", "x"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://host\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x07~\x1b\\x\x1b_a\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\w", "xyzw"),
        ("\x1bktitle\x1b\\x", "x"),
        ("\x1b]0;ti\ntle\x18x", "x"),
        ("\x1b]0;ti\x1ax", "x"),
        ("\x1b]0;a\x1b[31mx", "x"),
        ("\x1b[3\x18x", "x"),
        ("\x1b[3\x1b[31mx", "x"),
        ("ab\x1b[2\rCX", "abX"),
        ("a\x1b[2éb", "aéb"),
        ("\x1b[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9mx", "x"),
        ("\x1b\x1b\x1b[1mx", "x"),
    ]);
}

#[test]
fn a_string_without_end_is_given_up_at_64_kib() {
    let input = [b"\x1b]0;".as_slice(), &b"y".repeat(70_000)].concat();
    assert_eq!(shown(input).len(), 70_002 - 64 * 1024);
}

#[test]
fn text_beyond_ascii_is_kept_exactly() {
    let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦";
    for text in ["e\u{301}a", family, "❤\u{fe0f}x", "🇩🇪", "नमस्ते", "漢\u{301}字", "a\u{a0}"] {
        assert_eq!(shown(text), text);
        assert_eq!(fed(TINY, text.repeat(9)).text(), text.repeat(9), "wrapped {text}");
    }
    check(&[
        ("漢字\rX", "X 字"),
        ("漢字\x1b[2GX", " X字"),
        ("漢字\x1b[3DX", " X字"),
        ("ab\x1b[2G漢", "a漢"),
        ("漢字\x1b[2G語", " 語"),
        ("e\u{301}\rx", "x"),
        ("e\u{301}f\x1b[D\x1b[K", "e\u{301}"),
        ("\u{301}a", "a"),
        ("e\u{301}\r\x1b[@", " e\u{301}"),
        ("ae\u{301}\r\x1b[P", "e\u{301}"),
    ]);
    let marks = fed(TINY, "a".to_owned() + &"\u{301}".repeat(40)).text();
    assert_eq!(marks.chars().count(), 16);
}

#[test]
fn invalid_utf8_becomes_one_replacement_per_maximal_part() {
    let samples: &[&[u8]] = &[
        b"a\xffb",
        b"\xc3(",
        b"\xe2\x82x",
        b"\xf0\x9f\x98x",
        b"\xf0\x9f\xf0\x9f\x98\x80.",
        b"\xed\xa0\x80.",
        b"\xf4\x90\x80\x80.",
        b"\xc0\xaf\xe0\x80\xbf.",
        b"\xe2\x82\n\x80.",
        b"\xf8\x88\x80\x80\x80.",
    ];
    for bytes in samples {
        let expected = String::from_utf8_lossy(bytes);
        assert_eq!(shown(bytes), expected, "{bytes:?}");
        let mut renderer = Renderer::new(Size::default());
        bytes.chunks(1).for_each(|byte| renderer.feed(byte));
        assert_eq!(renderer.text(), expected, "{bytes:?} byte by byte");
    }
}

#[test]
fn clearing_leaves_nothing_of_what_was_before() {
    let text = numbered(3000);
    for clear in ["\x1b[H\x1b[2J\x1b[3J", "\x1b[H\x1b[J\x1b[3J", "\x1bc"] {
        let renderer = fed(Size::default(), format!("{text}{clear}after\n"));
        assert_eq!((renderer.text().as_str(), renderer.erased()), ("after", true), "{clear:?}");
    }
    // Without ED 3 the history stays, and the erased screen does not go there.
    let renderer = fed(TINY, "1\n2\n3\n4\n5\x1b[H\x1b[2Jx");
    assert_eq!((renderer.text().as_str(), renderer.erased()), ("1\nx", true));
    for harmless in ["a\x1b[K\x1b[1J\x1b[2K", "a\x1b[J", "\x1b[?1049h\x1b[2J\x1b[?1049l"] {
        assert!(!fed(TINY, harmless).erased(), "{harmless:?}");
    }
}

#[test]
fn the_alternate_screen_disappears_when_left() {
    check(&[
        ("main\x1b[?1049hfull", "    full"),
        ("main\x1b[?1049h\x1b[Hfull\x1b[?1049l!", "main!"),
        ("main\x1b[?47h\x1b[H\x1b[?47l!", "!ain"),
        ("main\x1b[?1047h\x1b[H\x1b[?1047l!", "!ain"),
        ("\x1b[?1049ha\nb\nc", "a\n b\n  c"),
        ("\x1b[?1049h\x1b[?1049hx\x1b[?1049l\x1b[?1049ly", "y"),
        ("m\n\x1b[?1049h1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5"),
        ("m\n\x1b[?1049h1\n2\n3\n4\n5\n6\x1b[?1049ln", "m\nn"),
        ("m\x1b[?1;1049;25hx\x1b[?1049l", "m"),
        ("m\x1b[?1049hx\x1bcy", "y"),
    ]);
    let mut renderer = fed(TINY, "\x1b[?1049h");
    assert!(renderer.in_alternate_screen());
    renderer.feed(b"\x1b[?1049l");
    assert!(!renderer.in_alternate_screen());
}

#[test]
fn the_oldest_tenth_goes_when_the_history_is_full() {
    let size = Size::default();
    // The screen holds 999 lines and the empty one that follows the last line feed.
    for (count, kept) in [(10_999, 10_999), (11_000, 10_000), (11_999, 10_999), (12_000, 10_000), (50_000, 10_000)] {
        for chunk in [usize::MAX, 1000] {
            let mut renderer = Renderer::new(size);
            numbered(count).as_bytes().chunks(chunk).for_each(|piece| renderer.feed(piece));
            let text = renderer.text();
            let first = count - kept + 1;
            assert_eq!(text.lines().next(), Some(format!("Line {first}").as_str()), "{count}");
            assert_eq!(text.lines().last(), Some(format!("Line {count}").as_str()), "{count}");
            assert_eq!((renderer.line_count(), text.lines().count()), (kept, kept), "{count}");
            assert_eq!(renderer.lines_lost(), kept < count, "{count}");
        }
    }
}

#[test]
fn a_history_of_any_size_works() {
    for history in [0, 1, 3, 9, 10, 11, 25] {
        let size = Size { columns: 10, rows: 3, history };
        let whole = fed(size, numbered(500));
        let mut parts = Renderer::new(size);
        numbered(500).as_bytes().chunks(5).for_each(|piece| parts.feed(piece));
        assert_eq!(whole.text(), parts.text());
        let kept = whole.line_count();
        assert!((history.saturating_sub(history.div_ceil(10))..=history + 3).contains(&kept), "{history}: {kept}");
        assert!(whole.text().ends_with("Line 500"));
    }
}

#[test]
fn a_joined_line_loses_its_blanks_across_the_history() {
    let line = "abc".to_owned() + &" ".repeat(200);
    for tail in ["", "x"] {
        let expected = format!("{}{tail}\nend", if tail.is_empty() { "abc" } else { &line });
        let renderer = fed(Size { columns: 8, rows: 4, history: 100 }, format!("{line}{tail}\nend\n\n\n\n\n"));
        assert_eq!(renderer.text(), expected);
    }
}

#[test]
fn clear_starts_over_and_keeps_the_modes() {
    let mut renderer = fed(Size::default(), numbered(50_000) + "\x1b[2J\x1b[5;9r\x1b[?1049hx\x1b]0;");
    let revision = renderer.revision();
    renderer.clear();
    assert_eq!((renderer.text().as_str(), renderer.line_count()), ("", 0));
    assert!(!renderer.lines_lost() && !renderer.erased() && renderer.in_alternate_screen());
    assert_ne!(renderer.revision(), revision);
    renderer.feed(b"next\x1b[?1049lmain");
    assert_eq!(renderer.text(), "main");
    assert!(renderer.heap_bytes() < 512 * 1024);
}

#[test]
fn clear_gives_the_memory_of_large_output_back() {
    for unit in ["x", "漢", "a\u{301}"] {
        let mut renderer = Renderer::new(Size::default());
        let small = renderer.heap_bytes();
        renderer.feed(unit.repeat(3_000_000).as_bytes());
        assert!(renderer.heap_bytes() > 1_000_000);
        renderer.clear();
        assert!(renderer.heap_bytes() < small + 64 * 1024);
    }
}

#[test]
fn the_revision_follows_the_text() {
    let mut renderer = Renderer::new(TINY);
    for (input, changes) in [
        ("a", true),
        ("\x1b[1m", false),
        ("\x1b[2;2H", false),
        ("é", true),
        ("\x1b[H\x1b[K", true),
        ("\n\n\n", false),
        ("\n", true),
        ("\x1b]0;title\x07", false),
        ("\x1b[?1049h", true),
        ("\x1b[?1049l", true),
        ("\x1b[3J", true),
    ] {
        let before = renderer.revision();
        renderer.feed(input.as_bytes());
        assert_eq!(renderer.revision() != before, changes, "{input:?}");
    }
}

#[test]
fn huge_parameters_are_clamped() {
    for number in ["999999999", "4294967296", "18446744073709551616", "65535", "65536"] {
        for last in "@ABCDEFGHIJKLMPSTXZ`abdefhlrsu".chars() {
            let input = format!("ab漢\x1b[{number}{last}\x1b[{number};{number}{last}x\x1b[?{number}{last}y");
            let renderer = fed(SMALL, input);
            assert!(renderer.line_count() <= 40 && renderer.heap_bytes() < 64 * 1024, "{number}{last}");
        }
    }
}

#[test]
fn hostile_output_stays_within_bounds() {
    let mega = 1024 * 1024;
    let million = 1_000_000;
    let cases: &[(&str, usize, usize)] = &[
        ("\x1b]0;xxxxxxxxxxxxxxxx", million, mega),
        ("\u{301}", million, mega),
        ("x\x1b[4h\x1b[999@", million, 32 * mega),
        ("x\x1b[1000b", million, 32 * mega),
        ("x", 13_000_000, 32 * mega),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 400_000, 4 * mega),
        ("\x1b[999;999Hx\n", million, 32 * mega),
        ("a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}", million, 128 * mega),
        ("😀", 6_000_000, 128 * mega),
        ("\x1b[?1049h\x1b[?1049l\x1b7\x1b[s", million / 100, mega),
    ];
    for (unit, count, limit) in cases {
        let mut renderer = Renderer::new(Size::default());
        let piece = unit.repeat(count / 100);
        (0..100).for_each(|_| renderer.feed(piece.as_bytes()));
        assert!(renderer.heap_bytes() < *limit, "{unit:?}: {}", renderer.heap_bytes());
    }
}

/// Pieces of terminal output that meet as many rules as possible.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let sequence = (0_u16..12, 0_u16..25, prop::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abdefmrsu".as_slice()))
        .prop_map(|(first, second, last)| format!("\x1b[{first};{second}{}", char::from(last)).into_bytes());
    let fixed: &[&str] = &[
        "\n",
        "\r",
        "\t",
        "\x08",
        "\r\n",
        "\x1bM",
        "\x1bD",
        "\x1bE",
        "\x1b7",
        "\x1b8",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[r",
        "\x1bc",
        "\x1b]0;t\x07",
        "漢",
        "😀",
        "é",
        "\u{301}",
        "e\u{301}",
        "    ",
    ];
    let piece = prop_oneof![
        4 => "[a-z ]{1,30}".prop_map(String::into_bytes),
        4 => prop::sample::select(fixed).prop_map(|text| text.as_bytes().to_vec()),
        3 => sequence,
        2 => (1_usize..60, "[a-z ]{0,25}").prop_map(|(count, line)| (line + "\n").repeat(count).into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 1..12),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Everything that can be seen of a renderer, apart from the revision.
fn state(renderer: &Renderer) -> (String, usize, bool, bool, bool) {
    (renderer.text(), renderer.line_count(), renderer.lines_lost(), renderer.erased(), renderer.in_alternate_screen())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_gives_the_same_text(bytes in output(), sizes in prop::collection::vec(1_usize..40, 1..20)) {
        let mut parts = Renderer::new(SMALL);
        let mut rest = bytes.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(rest.len().min(*size));
            parts.feed(piece);
            rest = later;
        }
        prop_assert_eq!(state(&fed(SMALL, &bytes)), state(&parts));
    }

    #[test]
    fn any_bytes_give_clean_text(bytes in prop::collection::vec(any::<u8>(), 0..3000), columns in 0_u16..12, rows in 0_u16..6) {
        let renderer = fed(Size { columns, rows, history: 20 }, &bytes);
        let text = renderer.text();
        prop_assert!(!text.chars().any(|code| code.is_control() && code != '\n'));
        prop_assert!(!text.ends_with([' ', '\n']) && !text.contains(" \n"));
        prop_assert_eq!(renderer.line_count(), if text.is_empty() { 0 } else { text.matches('\n').count() + 1 });
        prop_assert!(renderer.line_count() <= 20 + usize::from(rows.max(1)));
    }

    #[test]
    fn mixed_output_gives_clean_text(bytes in output()) {
        let text = fed(SMALL, bytes).text();
        prop_assert!(!text.chars().any(|code| code.is_control() && code != '\n'));
        prop_assert!(!text.ends_with([' ', '\n']) && !text.contains(" \n"));
    }

    #[test]
    fn plain_text_comes_out_as_it_is(text in "([a-z\u{e9}漢😀 ]{0,50}[a-z]\n){0,20}") {
        let size = Size { columns: 20, rows: 10, history: 1000 };
        prop_assert_eq!(fed(size, &text).text(), text.trim_end_matches('\n'));
    }

    #[test]
    fn invalid_utf8_reads_as_the_standard_library_reads_it(
        bytes in prop::collection::vec(prop::sample::select(b"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xed\xf4\xe0.".as_slice()), 0..40)
    ) {
        // The letter in front carries what has no width.
        let bytes = [b"a", bytes.as_slice(), b"."].concat();
        prop_assert_eq!(fed(SMALL, &bytes).text(), String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_program_asks_for_other_sequences_of_the_arrow_keys() {
    for (bytes, application) in [
        ("", false),
        ("\x1b[?1h", true),
        ("\x1b[?1;25h", true),
        ("\x1b[?1h\x1b[?1l", false),
        ("\x1b[?1h\x1bc", false),
        ("\x1b[1h", false),
        ("\x1b[?12h", false),
    ] {
        assert_eq!(fed(TINY, bytes).application_cursor(), application, "{bytes:?}");
    }
}
