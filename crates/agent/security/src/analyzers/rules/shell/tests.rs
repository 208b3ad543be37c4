use super::*;

fn simple(words: &[&str]) -> Stage {
    let words = words.iter().map(|word| Word::bare(word)).collect();
    Stage { command: Command::Simple(Simple { words, ..Simple::default() }), redirects: Vec::new() }
}

fn pipeline(stages: Vec<Stage>) -> Pipeline {
    Pipeline { stages, background: false }
}

#[test]
fn pipelines_follow_each_other_whatever_stands_between_them() {
    let Parsed { script, fault } = parse("a b | c && d; e &\nf # g");
    assert_eq!(fault, None);
    let mut expected = vec![
        pipeline(vec![simple(&["a", "b"]), simple(&["c"])]),
        pipeline(vec![simple(&["d"])]),
        pipeline(vec![simple(&["e"])]),
        pipeline(vec![simple(&["f"])]),
    ];
    expected[2].background = true;
    assert_eq!(script.pipelines, expected);
}

#[test]
fn constructs_hold_the_commands_of_all_their_parts() {
    let rows = [
        ("if a; then b; elif c; then d; else e; fi", "a b c d e"),
        ("while a; do b; done", "a b"),
        ("case x in (1|2) a;; *) b;& esac", "a b"),
        ("{ a; b; }", "a b"),
    ];
    for (text, commands) in rows {
        let Parsed { script, fault } = parse(text);
        assert_eq!(fault, None, "{text}");
        let inner = Script { pipelines: commands.split(' ').map(|one| pipeline(vec![simple(&[one])])).collect() };
        let stage = Stage { command: Command::Group(inner), redirects: Vec::new() };
        assert_eq!(script.pipelines, [pipeline(vec![stage])], "{text}");
    }
}

#[test]
fn the_body_of_a_here_document_belongs_to_its_redirection() {
    let Parsed { script, fault } = parse("a <<X | b <<-'Y'\n1 $V\nX\n\t2 $W\n\tY\nc");
    assert_eq!(fault, None);
    let bodies: Vec<_> = script.pipelines[0].stages.iter().map(|stage| stage.redirects[0].word().unwrap()).collect();
    let text = |text: &str| Piece::Text { text: text.to_owned(), quoting: Quoting::Quoted };
    let variable = Piece::Variable { name: "V".to_owned(), change: Change::None, quoting: Quoting::Quoted };
    assert_eq!(bodies[0].pieces, [text("1 "), variable, text("\n")]);
    assert_eq!(bodies[1].pieces, [text("2 $W\n")]);
    assert_eq!(script.pipelines[1], pipeline(vec![simple(&["c"])]));
}

#[test]
fn what_stands_before_a_fault_is_read() {
    for text in ["a\nb '", "a; b )", "a; ${x", "a\nif b", "a | ", "a; fi", "a; b (c)", "a; b >"] {
        let Parsed { script, fault } = parse(text);
        assert_eq!(fault, Some(Fault::Syntax), "{text}");
        assert!(text.ends_with("| ") || script.pipelines[0] == pipeline(vec![simple(&["a"])]), "{text}");
    }
}
