use super::*;

/// What of a course is compared: its stage without times, the prompts that must come, whether a program may have read.
type Seen = (&'static str, i64, bool);

const READING: &str = "reading";
const UNFINISHED: &str = "reading the rest";
const ASKING: &str = "asking";
const IN_DOUBT: &str = "in doubt";
const UNREPORTED: &str = "unreported";
const UNREPORTED_IN_DOUBT: &str = "unreported, in doubt before";
const QUEUED: &str = "lesson queued";
const READ: &str = "lesson read";
const FOLLOWED: &str = "lesson followed";
const COMPLETE: &str = "complete";

fn seen(course: &Course, verdict: Verdict) -> Seen {
    let stage = match (verdict, &course.stage) {
        (Verdict::Complete, _) => COMPLETE,
        (_, Stage::Reading { unfinished: false }) => READING,
        (_, Stage::Reading { unfinished: true }) => UNFINISHED,
        (_, Stage::Asking) => ASKING,
        (_, Stage::InDoubt(_)) => IN_DOUBT,
        (_, Stage::Unreported { last: None, .. }) => UNREPORTED,
        (_, Stage::Unreported { last: Some(_), .. }) => UNREPORTED_IN_DOUBT,
        (_, Stage::LessonQueued) => QUEUED,
        (_, Stage::LessonRead { .. }) => READ,
        (_, Stage::LessonFollowed { .. }) => FOLLOWED,
    };
    (stage, course.prompts, course.shared)
}

/// A course in a stage, with one prompt to come.
fn in_stage(stage: &str, now: Instant) -> Course {
    let doubt = Doubt::looked_at_after(Duration::ZERO, now);
    let until = now + LESSON_LIMIT;
    let (stage, prompts) = match stage {
        READING => (Stage::Reading { unfinished: false }, 1),
        UNFINISHED => (Stage::Reading { unfinished: true }, 1),
        ASKING => (Stage::Asking, 0),
        IN_DOUBT => (Stage::InDoubt(doubt), 1),
        UNREPORTED => (Stage::Unreported { status: 3, doubt, last: None }, 1),
        UNREPORTED_IN_DOUBT => (Stage::Unreported { status: 3, doubt, last: Some(doubt) }, 1),
        QUEUED => (Stage::LessonQueued, 1),
        READ => (Stage::LessonRead { until }, 1),
        FOLLOWED => (Stage::LessonFollowed { status: 3, until }, 1),
        other => panic!("no stage {other}"),
    };
    Course { stage, prompts, shared: false }
}

const PROMPTED: Event = Event::Prompted;
const MORE: Event = Event::AskedForMore;
const BARE: Event = Event::PromptUnreported { status: 4 };
const TYPED: Event = Event::Typed { lines: 2 };
const BEGUN: Event = Event::LessonBegun { status: 4 };

/// The drawing, as a table: from each stage, by each event, to a stage.
const TRANSITIONS: [(&str, [(Event, Seen); 9]); 9] = [
    (
        READING,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (READING, 1, true)),
            (Event::Settled, (READING, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (READING, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        UNFINISHED,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (UNFINISHED, 1, true)),
            (Event::Settled, (UNFINISHED, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (UNFINISHED, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        ASKING,
        [
            // It was given up at the end of its input.
            (PROMPTED, (COMPLETE, -1, false)),
            (BARE, (UNREPORTED, 0, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, -1, false)),
            // The shell reads the lines, and nothing else does.
            (TYPED, (UNFINISHED, 2, false)),
            (Event::Settled, (UNFINISHED, 1, false)),
            (Event::LessonQueued, (QUEUED, 0, false)),
            (Event::PipeEmptied, (ASKING, 0, false)),
            (BEGUN, (FOLLOWED, 0, false)),
        ],
    ),
    (
        IN_DOUBT,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED_IN_DOUBT, 1, false)),
            (Event::Silent, (UNREPORTED_IN_DOUBT, 1, false)),
            // The prompt was not the last one.
            (MORE, (ASKING, 0, false)),
            (TYPED, (IN_DOUBT, 1, true)),
            (Event::Settled, (IN_DOUBT, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (IN_DOUBT, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        UNREPORTED,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (UNREPORTED, 1, true)),
            (Event::Settled, (UNREPORTED, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (UNREPORTED, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        UNREPORTED_IN_DOUBT,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED_IN_DOUBT, 1, false)),
            (Event::Silent, (UNREPORTED_IN_DOUBT, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (UNREPORTED_IN_DOUBT, 1, true)),
            (Event::Settled, (UNREPORTED_IN_DOUBT, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (UNREPORTED_IN_DOUBT, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        QUEUED,
        [
            // The lesson is still to be read, and a prompt comes behind it.
            (PROMPTED, (QUEUED, 1, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (QUEUED, 1, true)),
            (Event::Settled, (READING, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (READ, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        READ,
        [
            (PROMPTED, (READ, 1, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (READ, 1, true)),
            (Event::Settled, (READING, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (READ, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
    (
        FOLLOWED,
        [
            (PROMPTED, (COMPLETE, 0, false)),
            (BARE, (UNREPORTED, 1, false)),
            (Event::Silent, (UNREPORTED, 1, false)),
            (MORE, (ASKING, 0, false)),
            (TYPED, (FOLLOWED, 1, true)),
            (Event::Settled, (READING, 1, false)),
            (Event::LessonQueued, (QUEUED, 1, false)),
            (Event::PipeEmptied, (FOLLOWED, 1, false)),
            (BEGUN, (FOLLOWED, 1, false)),
        ],
    ),
];

#[test]
fn each_event_leads_from_each_stage_to_the_one_that_is_drawn() {
    let now = Instant::now();
    for (stage, row) in TRANSITIONS {
        for (event, expected) in row {
            let mut course = in_stage(stage, now);
            let verdict = course.on(event, now);
            assert_eq!(seen(&course, verdict), expected, "{stage}, {event:?}");
        }
    }
}

#[test]
fn a_prompt_is_not_the_end_while_others_must_come_or_a_program_may_have_read() {
    let now = Instant::now();
    let mut course = Course::of_lines(3);
    let verdict = course.on(Event::AskedForMore, now);
    assert_eq!(seen(&course, verdict), (UNFINISHED, 2, false));
    let verdict = course.on(Event::Prompted, now);
    assert_eq!(seen(&course, verdict), (IN_DOUBT, 1, false));
    let verdict = course.on(Event::Prompted, now);
    assert_eq!(seen(&course, verdict), (COMPLETE, 0, false));

    let mut course = Course::of_lines(1);
    course.on(Event::Typed { lines: 1 }, now);
    for prompts in [0, -1] {
        let verdict = course.on(Event::Prompted, now);
        assert_eq!(seen(&course, verdict), (IN_DOUBT, prompts, true));
    }
}

struct Shell {
    has_terminal: bool,
    waits: bool,
    reads: Option<bool>,
}

impl ShellSeen for Shell {
    fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn reads_commands(&self) -> Option<bool> {
        self.reads
    }
}

/// Looks at a course after so many milliseconds.
fn look(course: &mut Course, begin: Instant, millis: u64, waits: bool, reads: Option<bool>) -> Found {
    course.look(begin + Duration::from_millis(millis), &Shell { has_terminal: true, waits, reads })
}

#[test]
fn a_last_prompt_is_the_end_when_the_shell_is_seen_waiting_for_long_enough() {
    let begin = Instant::now();
    let mut course = in_stage(IN_DOUBT, begin);
    assert_eq!(look(&mut course, begin, 0, true, None), Found::Nothing);
    // Something runs again, so it has to hold from the beginning.
    assert_eq!(look(&mut course, begin, 5, false, None), Found::Nothing);
    assert_eq!(look(&mut course, begin, 6, true, None), Found::Nothing);
    course.output_seen();
    assert_eq!(look(&mut course, begin, 15, true, None), Found::Nothing);
    assert_eq!(look(&mut course, begin, 24, true, None), Found::Nothing);
    assert_eq!(look(&mut course, begin, 25, true, None), Found::Over);

    let mut course = in_stage(IN_DOUBT, begin);
    assert_eq!(look(&mut course, begin, 299, false, None), Found::Nothing);
    assert_eq!(look(&mut course, begin, 300, false, None), Found::Over);

    // While a program has the terminal the prompt before it was not the last one, however long it takes.
    let mut course = in_stage(IN_DOUBT, begin);
    let busy = Shell { has_terminal: false, waits: false, reads: None };
    assert_eq!(course.look(begin + Duration::from_mins(1), &busy), Found::Nothing);
    assert_eq!(look(&mut course, begin, 60_299, false, None), Found::Nothing);
    assert_eq!(look(&mut course, begin, 60_300, false, None), Found::Over);
}

#[test]
fn a_hook_is_lost_when_the_shell_reads_commands_for_long_enough_and_a_program_is_not_a_shell() {
    let begin = Instant::now();
    for reads in [Some(true), None] {
        let mut course = in_stage(UNREPORTED, begin);
        assert_eq!(look(&mut course, begin, 0, true, reads), Found::Nothing);
        assert_eq!(look(&mut course, begin, 10, true, reads), Found::HookLost(3));
        assert_eq!(seen(&course, Verdict::Running), (READING, 1, false));
    }
    let mut course = in_stage(UNREPORTED, begin);
    assert_eq!(look(&mut course, begin, 299, false, Some(false)), Found::Nothing);
    assert_eq!(seen(&course, Verdict::Running), (UNREPORTED, 1, false));
    assert_eq!(look(&mut course, begin, 300, false, Some(false)), Found::Nothing);
    assert_eq!(seen(&course, Verdict::Running), (READING, 1, false));
    // A silent shell is given more time.
    let mut course = Course::of_lines(2);
    course.on(Event::Silent, begin);
    assert_eq!(look(&mut course, begin, 0, true, Some(true)), Found::Nothing);
    assert_eq!(look(&mut course, begin, 99, true, Some(true)), Found::Nothing);
    assert_eq!(look(&mut course, begin, 100, true, Some(true)), Found::HookLost(UNKNOWN));
    // A prompt that was reported before may still be the last one.
    let mut course = in_stage(UNREPORTED_IN_DOUBT, begin);
    assert_eq!(look(&mut course, begin, 0, true, Some(false)), Found::Nothing);
    assert_eq!(look(&mut course, begin, 10, true, Some(false)), Found::Over);
}

#[test]
fn a_lesson_that_brings_no_prompt_ends_the_command_in_time() {
    let begin = Instant::now();
    for (stage, status) in [(READ, UNKNOWN), (FOLLOWED, 3)] {
        let mut course = in_stage(stage, begin);
        assert_eq!(course.next_look(), Some(begin + LESSON_LIMIT));
        assert_eq!(look(&mut course, begin, 1999, true, None), Found::Nothing);
        assert_eq!(look(&mut course, begin, 2000, true, None), Found::OverWithStatus(status));
    }
    assert_eq!(in_stage(QUEUED, begin).next_look(), None);
}
