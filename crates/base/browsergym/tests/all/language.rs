//! Texts of actions, as BrowserGym 0.13.3 reads them (`record_language.py`).

#![expect(clippy::unwrap_used, reason = "functions that tests share stop at the first broken assumption, too")]

use gloveport_browsergym::{
    ActionError,
    language::{Call, Literal, parse},
    parse_script,
};
use proptest::prelude::*;

fn recorded() -> Vec<(String, Option<Vec<String>>, Option<String>)> {
    serde_json::from_str(include_str!("../golden/language.json")).unwrap()
}

fn shown(calls: &[Call]) -> Vec<String> {
    calls.iter().map(ToString::to_string).collect()
}

#[test]
fn every_recorded_text_has_the_calls_of_the_reference() {
    let rows = recorded();
    assert!(rows.len() > 400, "{}", rows.len());
    let different: Vec<_> = rows
        .into_iter()
        .map(|(text, calls, _)| (parse(&text).ok().map(|calls| shown(&calls)), calls, text))
        .filter(|(ours, theirs, _)| ours != theirs)
        .collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn every_recorded_text_has_the_error_of_the_reference() {
    let different: Vec<_> = recorded()
        .into_iter()
        .map(|(text, _, error)| (parse_script(&text).err().map(|error| error.to_string()), error, text))
        .filter(|(ours, theirs, _)| ours != theirs)
        .collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn surrogates_that_belong_together_are_a_character_and_lone_ones_are_replaced() {
    for (text, value) in [
        (r"f('\ud83d\ude00')", "😀"),
        (r"f('\ud83d')", "\u{fffd}"),
        (r"f('\ude00\ud83d')", "\u{fffd}\u{fffd}"),
        (r"f('\ud83d\ud83d\ude00a')", "\u{fffd}😀a"),
        (r"f('\ud83da')", "\u{fffd}a"),
        (r"f('\U0000d83d\ude00')", "😀"),
    ] {
        assert_eq!(parse(text).unwrap()[0].positional, [Literal::Str(value.to_owned())], "{text}");
    }
}

#[test]
fn a_character_by_its_name_is_unknown() {
    let error = parse(r"f('\N{DIGIT ONE}')").unwrap_err();
    let message = "(unicode error) 'unicodeescape' codec can't decode bytes in position 0-12: unknown Unicode character name \
                   (<unknown>, line 1)";
    assert_eq!(error, ActionError::new("SyntaxError", message));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth| format!("noop({}{})", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(shown(&parse(&nested(64)).unwrap()), [nested(64)]);
    assert_eq!(parse(&nested(65)).unwrap_err().to_string(), "RecursionError: maximum recursion depth exceeded");
}

/// A reader that starts again and again would take hours for these.
#[test]
fn texts_that_start_again_and_again_are_read_in_linear_time() {
    const SIZE: usize = 1 << 18;
    let comments = format!("{}\n{}", "f(1,#".repeat(SIZE / 10), "1,".repeat(SIZE / 4) + "]");
    let blanks = format!("{}\n{}", "f(1,#".repeat(SIZE / 10), " ".repeat(SIZE / 2));
    for text in [
        "f".repeat(SIZE),
        "f(".repeat(SIZE / 2),
        "f('".repeat(SIZE / 3),
        "f('''".repeat(SIZE / 5),
        format!("f(\"\"\"{}", "f(\\\"\"\"".repeat(SIZE / 6)),
        "f(1,#".repeat(SIZE / 5),
        "f #".repeat(SIZE / 3),
        "f [".repeat(SIZE / 3),
        "é\t".repeat(SIZE / 3),
        comments,
        blanks,
    ] {
        let _ = parse(&text);
    }
    let members: Vec<_> = (0..SIZE / 16).map(|key| format!("'{key}': 1")).collect();
    assert_eq!(parse(&format!("f({{{}}})", members.join(","))).unwrap().len(), 1);
}

#[test]
fn calls_after_a_text_that_starts_again_and_again_are_found() {
    let text = format!("{}\n{} ]\nnoop()", "f(1,#".repeat(2000), "1,".repeat(2000));
    assert_eq!(shown(&parse(&text).unwrap()), ["noop()"]);
}

fn literal() -> impl Strategy<Value = Literal> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Literal::Str),
        any::<i64>().prop_map(|number| Literal::Int(number.into())),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Literal::Float),
        any::<bool>().prop_map(Literal::Bool),
        Just(Literal::None),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Literal::List),
            prop::collection::vec(inner.clone(), 0..6).prop_map(Literal::Tuple),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Literal::Dict(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        let _ = parse_script(&text);
    }

    #[test]
    fn any_text_of_the_characters_of_calls_is_read_without_a_panic(text in r#"[\\a-fxuUN'"()\[\]{}:,=.#0-9é \r\n\t+\-]{0,200}"#) {
        if let Ok(calls) = parse(&text) {
            for call in calls {
                let _ = call.bind();
            }
        }
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same(
        name in "[a-z_][a-z_0-9]{0,10}",
        positional in prop::collection::vec(literal(), 0..4),
        named in prop::collection::vec(("[a-z_][a-z_0-9]{0,10}", literal()), 0..4),
    ) {
        let call = Call { name, positional, named };
        prop_assert_eq!(parse(&call.to_string()).unwrap(), vec![call]);
    }
}
