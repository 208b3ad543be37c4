//! Separates what programs wrote from the private sequences in which the shell reports.
//!
//! A report is `ESC ] 7777 ; NONCE ; KIND 1F field 1F field … 1F NONCE BEL`. The nonce is random for each shell, so
//! output that imitates the sequence is output, and a report tells which of several shells made it. The last field may
//! contain anything but the end sequence.
//!
//! A shell that shows what it reads (`set -v`) also shows lines of ours: those are known, and taken out, too.

use memchr::memmem;

/// A report is never longer: it holds one `PATH` and one directory.
const MAX_REPORT: usize = 256 * 1024;
/// Nor are the reports that hold a number at most: what begins like one and does not end is output.
const MAX_SHORT_REPORT: usize = 64;
/// How a line of ours begins.
const LINE: u8 = b'{';
/// So much of such a line must be there for bytes to be kept back.
const LEAST_LINE: usize = 6;
/// Separates fields.
const FIELD: u8 = 0x1f;

/// What the shell reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The hook ran before a prompt.
    Prompt(PromptReport),
    /// A prompt was displayed; the status is that of the last command.
    Displayed { status: Option<i32> },
    /// The shell asks for the rest of an unfinished command.
    Continuation,
    /// The shell begins to read its lesson once more; the status is that of the last command.
    Lesson { status: i32 },
}

/// What the hook reports before each prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptReport {
    pub(crate) status: i32,
    pub(crate) background_pid: Option<u32>,
    /// Option letters (`$-`).
    pub(crate) options: String,
    /// `PATH`, if it changed since the last report.
    pub(crate) path: Option<String>,
    /// Logical working directory.
    pub(crate) directory: String,
}

/// One part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Output(&'a [u8]),
    /// A report, and which shell made it: 0 is the first one that the scanner was told of.
    Report(usize, Report),
}

/// What of a line of ours is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    None,
    Begun,
    /// All of it: so many bytes.
    Whole(usize),
}

/// The state of the separation between two reads.
#[derive(Debug)]
pub(crate) struct Scanner {
    sources: Vec<Source>,
    /// A line that was typed and is no output, without its end. It begins with [`LINE`].
    typed: Vec<u8>,
    held: Vec<u8>,
}

/// A shell that reports.
#[derive(Debug)]
struct Source {
    begin: Vec<u8>,
    end: Vec<u8>,
    /// The line that it runs before each prompt.
    hook: Vec<u8>,
}

impl Source {
    fn new(nonce: &str, hook: &str) -> Self {
        Self {
            begin: format!("\x1b]7777;{nonce};").into_bytes(),
            end: format!("\x1f{nonce}\x07").into_bytes(),
            hook: hook.as_bytes().to_owned(),
        }
    }
}

impl Scanner {
    /// `hook` is the line that the shell runs before each prompt.
    pub(crate) fn new(nonce: &str, hook: &str) -> Self {
        Self { sources: vec![Source::new(nonce, hook)], typed: Vec::new(), held: Vec::new() }
    }

    /// A shell reports as the source of this number from now on: one that is known, or the next one.
    pub(crate) fn listen_to(&mut self, number: usize, nonce: &str, hook: &str) {
        let source = Source::new(nonce, hook);
        match self.sources.get_mut(number) {
            Some(known) => *known = source,
            None => self.sources.push(source),
        }
    }

    /// A line of ours was typed, which the shell may show.
    pub(crate) fn typed(&mut self, line: &str) {
        self.typed = line.find(char::from(LINE)).and_then(|at| line.get(at..)).unwrap_or_default().trim_end().into();
    }

    /// How much of what begins here is a line of ours.
    fn line(&self, rest: &[u8]) -> Line {
        let hooks = self.sources.iter().map(|source| source.hook.as_slice());
        for line in hooks.chain([self.typed.as_slice()]).filter(|line| !line.is_empty()) {
            match rest.strip_prefix(line) {
                Some([b'\n', ..]) => return Line::Whole(line.len() + 1),
                Some([b'\r', b'\n', ..]) => return Line::Whole(line.len() + 2),
                Some([] | [b'\r']) => return Line::Begun,
                None if rest.len() >= LEAST_LINE && line.starts_with(rest) => return Line::Begun,
                Some(_) | None => {}
            }
        }
        Line::None
    }

    /// Hands the parts of `bytes` to `sink` in order. Bytes that may be the beginning of a report are kept back until
    /// more arrive.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Part<'_>)) {
        if self.held.is_empty() {
            let rest = self.scan(bytes, sink);
            self.held.extend_from_slice(bytes.get(bytes.len() - rest..).unwrap_or_default());
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            let rest = self.scan(&held, sink);
            held.drain(..held.len() - rest);
            self.held = held;
        }
    }

    /// Returns how many bytes at the end are kept back.
    fn scan(&self, bytes: &[u8], sink: &mut impl FnMut(Part<'_>)) -> usize {
        let mut from = 0;
        let mut search = 0;
        while let Some(found) = bytes.get(search..).and_then(|rest| memchr::memchr2(0x1b, LINE, rest)) {
            let at = search + found;
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.first() == Some(&LINE) {
                search = match self.line(rest) {
                    Line::None => at + 1,
                    Line::Begun => {
                        emit(bytes, from, at, sink);
                        return rest.len();
                    }
                    Line::Whole(length) => {
                        emit(bytes, from, at, sink);
                        from = at + length;
                        from
                    }
                };
                continue;
            }
            let begun = |source: &Source| rest.len() < source.begin.len() && source.begin.starts_with(rest);
            if self.sources.iter().any(begun) {
                emit(bytes, from, at, sink);
                return rest.len();
            }
            let mut sources = self.sources.iter().enumerate();
            let Some((number, source, body)) = sources.find_map(|(number, source)| {
                rest.strip_prefix(source.begin.as_slice()).map(|body| (number, source, body))
            }) else {
                search = at + 1;
                continue;
            };
            let most = if matches!(body.first(), None | Some(b'P')) { MAX_REPORT } else { MAX_SHORT_REPORT };
            let window = body.get(..most + source.end.len()).unwrap_or(body);
            if let Some(length) = memmem::find(window, &source.end) {
                if memmem::find(window.get(..length).unwrap_or_default(), &source.begin).is_some() {
                    // A program shows the beginning of a report; a real one is behind it.
                    search = at + 1;
                    continue;
                }
                emit(bytes, from, at, sink);
                if let Some(report) = body.get(..length).and_then(parse) {
                    sink(Part::Report(number, report));
                }
                from = at + source.begin.len() + length + source.end.len();
                search = from;
            } else if body.len() < most {
                emit(bytes, from, at, sink);
                return rest.len();
            } else {
                search = at + 1;
            }
        }
        emit(bytes, from, bytes.len(), sink);
        0
    }
}

fn emit(bytes: &[u8], from: usize, to: usize, sink: &mut impl FnMut(Part<'_>)) {
    if let Some(output) = bytes.get(from..to).filter(|output| !output.is_empty()) {
        sink(Part::Output(output));
    }
}

fn parse(body: &[u8]) -> Option<Report> {
    let mut fields = body.splitn(6, |byte| *byte == FIELD).map(String::from_utf8_lossy);
    match fields.next()?.as_ref() {
        "P" => Some(Report::Prompt(PromptReport {
            status: fields.next()?.parse().ok()?,
            background_pid: fields.next()?.parse().ok(),
            options: fields.next()?.into_owned(),
            path: fields.next().map(std::borrow::Cow::into_owned).filter(|path| !path.is_empty()),
            directory: fields.next()?.into_owned(),
        })),
        "D" => Some(Report::Displayed { status: fields.next().and_then(|status| status.parse().ok()) }),
        "C" => Some(Report::Continuation),
        "L" => Some(Report::Lesson { status: fields.next()?.parse().ok()? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(chunks: &[&[u8]]) -> (Vec<u8>, Vec<Report>) {
        let mut scanner = Scanner::new("n0nce", "{ hook n0nce; }");
        let (mut output, mut reports) = (Vec::new(), Vec::new());
        for chunk in chunks {
            scanner.feed(chunk, &mut |part| match part {
                Part::Output(bytes) => output.extend_from_slice(bytes),
                Part::Report(0, report) => reports.push(report),
                Part::Report(number, report) => panic!("{report:?} of {number}"),
            });
        }
        (output, reports)
    }

    const STREAM: &[u8] = b"a\x1b[1mb\x1b]7777;n0nce;P\x1f3\x1f42\x1fhimBHs\x1f/bin:/usr/bin\x1f/tmp/a;b\x1fn0nce\x07\
        \x1b]7777;n0nce;D\x1f3\x1fn0nce\x07c\x1b]7777;other;P\x1f0\x1fother\x07\x1b]7777;n0nce;C\x1f\x1fn0nce\x07d";

    fn expected() -> (Vec<u8>, Vec<Report>) {
        let prompt = PromptReport {
            status: 3,
            background_pid: Some(42),
            options: "himBHs".into(),
            path: Some("/bin:/usr/bin".into()),
            directory: "/tmp/a;b".into(),
        };
        (
            b"a\x1b[1mbc\x1b]7777;other;P\x1f0\x1fother\x07d".to_vec(),
            vec![Report::Prompt(prompt), Report::Displayed { status: Some(3) }, Report::Continuation],
        )
    }

    #[test]
    fn reports_leave_the_stream_and_imitations_with_another_nonce_stay() {
        assert_eq!(collect(&[STREAM]), expected());
    }

    #[test]
    fn any_cut_of_the_stream_gives_the_same_parts() {
        for cut in 0..=STREAM.len() {
            assert_eq!(collect(&[&STREAM[..cut], &STREAM[cut..]]), expected(), "cut at {cut}");
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(collect(&single), expected());
    }

    #[test]
    fn a_report_that_does_not_end_hides_neither_output_nor_the_next_report() {
        for begun in ["\x1b]7777;n0nce;D\x1f$?n0nce\x07", "\x1b]7777;n0nce;P\x1f0", "\x1b]7777;n0nce;C"] {
            let stream = [begun, "\noutput\n\x1b]7777;n0nce;D\x1f5\x1fn0nce\x07tail"].concat();
            let output = [begun, "\noutput\ntail"].concat().into_bytes();
            let expected = (output, vec![Report::Displayed { status: Some(5) }]);
            assert_eq!(collect(&[stream.as_bytes()]), expected);
            for cut in 0..=stream.len() {
                assert_eq!(collect(&[&stream.as_bytes()[..cut], &stream.as_bytes()[cut..]]), expected, "cut at {cut}");
            }
        }
    }

    #[test]
    fn lines_of_ours_leave_the_stream_and_what_only_begins_like_them_stays() {
        for (stream, output) in [
            ("a\n{ hook n0nce; }\nb", "a\nb"),
            ("{ hook n0nce; }\r\n{ hook n0nce; }\nb", "b"),
            ("{ hook n0nce; }{ hook other; }\n{", "{ hook n0nce; }{ hook other; }\n{"),
            ("{ hook n0nce; } \n", "{ hook n0nce; } \n"),
        ] {
            // The first bytes alone are not kept back: a program may show no more than that.
            let bare = |cut: &usize| (1..LEAST_LINE).any(|most| stream[..*cut].ends_with(&"{ hook"[..most]));
            for cut in (0..=stream.len()).filter(|cut| !bare(cut)) {
                let (before, after) = stream.as_bytes().split_at(cut);
                assert_eq!(
                    collect(&[before, after]),
                    (output.as_bytes().to_owned(), vec![]),
                    "{stream:?} cut at {cut}"
                );
            }
        }
        let mut scanner = Scanner::new("n0nce", "{ hook }");
        scanner.typed(" x; { typed }\r");
        let mut output = Vec::new();
        for part in ["x; { type", "d }", "\n{ hook }\nend"] {
            scanner.feed(part.as_bytes(), &mut |part| match part {
                Part::Output(bytes) => output.extend_from_slice(bytes),
                Part::Report(_, report) => panic!("{report:?}"),
            });
        }
        assert_eq!(output, b"x; end");
    }

    #[test]
    fn a_report_tells_which_of_several_shells_made_it() {
        let report = |nonce: &str, status: i32| format!("\x1b]7777;{nonce};D\x1f{status}\x1f{nonce}\x07");
        let stream = [report("one", 1), report("two", 2), report("three", 3)].concat();
        let mut scanner = Scanner::new("one", "");
        scanner.listen_to(1, "other", "");
        scanner.listen_to(2, "three", "");
        scanner.listen_to(1, "two", "");
        for cut in 0..=stream.len() {
            let mut seen = Vec::new();
            for piece in [&stream[..cut], &stream[cut..]] {
                scanner.feed(piece.as_bytes(), &mut |part| match part {
                    Part::Report(number, Report::Displayed { status }) => seen.push((number, status)),
                    part => panic!("{part:?}"),
                });
            }
            assert_eq!(seen, [(0, Some(1)), (1, Some(2)), (2, Some(3))], "cut at {cut}");
        }
    }

    #[test]
    fn an_endless_report_becomes_output() {
        let mut stream = b"\x1b]7777;n0nce;P\x1f".to_vec();
        stream.resize(MAX_REPORT + 100, b'x');
        let (output, reports) = collect(&[&stream, b"tail"]);
        assert_eq!((output.len(), reports.len()), (MAX_REPORT + 104, 0));
    }

    proptest! {
        #[test]
        fn bytes_without_the_nonce_pass_unchanged(chunks in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just(0x1b), Just(b']'), Just(b'7'), any::<u8>()], 0..40), 0..20))
        {
            let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let mut whole = chunks.concat();
            whole.push(b'.');
            let mut fed = slices;
            fed.push(b".");
            prop_assert_eq!(collect(&fed), (whole, vec![]));
        }
    }
}
