//! Our standard input as a command gets it: a line whenever the command waits for one, or its end at once.
//!
//! Nothing is read ahead: what the command does not ask for stays where it is, for whoever reads it next.

use std::{
    future::pending,
    io::IsTerminal as _,
    time::{Duration, SystemTime},
};

use gloveport_script::{Script, classify};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

use crate::terminal::{self, Hidden};

/// After this time without news about a command that was typed to, it is asked how it stands.
const NEWS: Duration = Duration::from_millis(200);
/// It is asked less and less often when it is only told that there is no input.
const RARE_NEWS: Duration = Duration::from_secs(2);
/// A command that waits for longer than this is told of.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a command gets when it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// The end of input.
    #[default]
    Nothing,
    /// The lines of our standard input, which somebody types.
    Keyboard,
    /// The lines of our standard input, which is a pipe or a file.
    Lines,
}

impl Source {
    /// What is typed is passed on only if that is asked for; a pipe or a file is there to be read, unless the command
    /// itself came from it.
    pub(crate) fn of_run(interactive: bool, script_from_stdin: bool) -> Self {
        match (interactive && !script_from_stdin, std::io::stdin().is_terminal()) {
            (true, true) => Self::Keyboard,
            (_, true) => Self::Nothing,
            (_, false) if script_from_stdin => Self::Nothing,
            (_, false) => Self::Lines,
        }
    }

    /// Standard input is passed on only if that is asked for.
    pub(crate) fn of_session(interactive: bool) -> Self {
        if interactive { Self::of_run(true, false) } else { Self::Nothing }
    }
}

/// Something that is typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    End,
}

impl Line {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::End => "C-d",
        }
    }
}

/// What is to be done about input.
pub(crate) enum Next {
    /// This is typed.
    Line(Line),
    /// The shell waits for the rest of an unfinished command, and there is none: the command is interrupted.
    GiveUp,
    /// The command is asked whether it waits.
    Question,
    /// A person is told this.
    Tell(String),
}

/// What a command gets to read.
#[derive(Debug)]
pub(crate) struct Input {
    source: Source,
    /// The command, and what was typed to it.
    text: String,
    /// Nothing is typed any more.
    ended: bool,
    /// The line that is being read.
    reading: Option<oneshot::Receiver<Line>>,
    /// When it is asked whether the command waits again.
    news: Option<Instant>,
    pause: Duration,
    /// Since when the command waits.
    waiting: Option<(Instant, SystemTime)>,
    /// Nobody wants to be told, or everybody has been.
    quiet: bool,
    /// Our terminal shows nothing of what is typed, because the command's does not.
    hidden: Option<Hidden>,
}

impl Input {
    /// For this command. A person is told of one that waits unless it is `quiet`.
    pub(crate) fn new(source: Source, command: &str, quiet: bool) -> Self {
        Self {
            source,
            text: command.to_owned(),
            ended: false,
            reading: None,
            news: None,
            pause: NEWS,
            waiting: None,
            // Whoever types knows what for.
            quiet: quiet || source == Source::Keyboard,
            hidden: None,
        }
    }

    /// The command waits for input, or does not. What its terminal does not show, such as a password, is `hidden` on ours.
    pub(crate) fn waits(&mut self, waits: bool, hidden: bool) {
        if !(waits && hidden) {
            self.hidden = None;
        } else if self.source == Source::Keyboard && self.hidden.is_none() {
            self.hidden = Hidden::begin();
        }
        if self.ended {
            return;
        }
        if !waits {
            self.waiting = None;
            // Whether it waits again later is told, or asked for.
            self.news = self.news.map(|_| Instant::now() + self.pause);
            return;
        }
        self.news = None;
        self.waiting.get_or_insert_with(|| (Instant::now(), SystemTime::now()));
        let source = self.source;
        self.reading.get_or_insert_with(|| read_line(source));
    }

    /// What is to be done next. It can be given up at any time.
    pub(crate) async fn next(&mut self) -> Next {
        if self.ended {
            return pending().await;
        }
        let late = self.waiting.filter(|_| !self.quiet).map(|(since, _)| since + PATIENCE);
        tokio::select! {
            biased;
            line = line(&mut self.reading) => {
                self.reading = None;
                self.typed(line)
            }
            () = at(self.news) => Next::Question,
            () = at(late) => {
                self.quiet = true;
                Next::Tell(self.told())
            }
        }
    }

    fn typed(&mut self, line: Line) -> Next {
        // Whether the next one is to be seen is known when the command waits for it.
        self.hidden = None;
        match &line {
            Line::Text(text) => {
                self.waiting = None;
                self.text.push('\n');
                self.text.push_str(text);
            }
            // The shell itself reads on, and would take an end of its input for its own.
            Line::End if classify(&self.text) == Script::Incomplete => {
                self.end();
                return Next::GiveUp;
            }
            // A command may read again, and gets the end again.
            Line::End if self.source == Source::Nothing => self.pause = (self.pause * 2).min(RARE_NEWS),
            Line::End => self.source = Source::Nothing,
        }
        self.news = Some(Instant::now() + self.pause);
        Next::Line(line)
    }

    fn told(&self) -> String {
        let since = self.waiting.map(|(_, since)| since_when(since)).unwrap_or_default();
        match self.source {
            Source::Nothing => {
                format!("the command has been waiting for input {since}, although there is none; C-c interrupts it")
            }
            Source::Keyboard | Source::Lines => {
                format!("the command has been waiting {since} for a line of standard input, which has none yet")
            }
        }
    }

    /// The command has ended.
    pub(crate) const fn end(&mut self) {
        self.ended = true;
    }
}

/// A point in time for people: how long ago, and when.
pub(crate) fn since_when(then: SystemTime) -> String {
    let ago = then.elapsed().unwrap_or_default().as_secs();
    let second = then.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("for {ago} s (since {:02}:{:02}:{:02} UTC)", second / 3_600, second / 60 % 60, second % 60)
}

async fn at(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => pending().await,
    }
}

async fn line(reading: &mut Option<oneshot::Receiver<Line>>) -> Line {
    match reading {
        Some(reading) => reading.await.unwrap_or(Line::End),
        None => pending().await,
    }
}

/// One line of standard input without its end, read by a thread of its own: nobody waits for it when we end.
fn read_line(source: Source) -> oneshot::Receiver<Line> {
    let (sender, receiver) = oneshot::channel();
    let read = move || {
        let mut line = String::new();
        let read = match std::io::stdin().read_line(&mut line) {
            Ok(count) if count > 0 => Line::Text(terminal::without_end(&line).to_owned()),
            _ => Line::End,
        };
        // Nobody wants it any more if the command has ended.
        let _ = sender.send(read);
    };
    if source != Source::Nothing {
        std::thread::spawn(read);
    }
    // Without a sender it is the end.
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_that_reads_without_input_gets_the_end_each_time_and_an_unfinished_one_is_given_up() {
        let mut input = Input::new(Source::Nothing, "read a; read b", true);
        for _ in 0..2 {
            input.waits(true, false);
            assert!(matches!(input.next().await, Next::Line(Line::End)));
            assert!(matches!(input.next().await, Next::Question));
        }
        let mut input = Input::new(Source::Nothing, "echo \"a", true);
        input.waits(true, false);
        assert!(matches!(input.next().await, Next::GiveUp));
    }

    #[tokio::test]
    async fn a_person_is_told_once_that_a_command_waits_in_spite_of_the_end() {
        let mut input = Input::new(Source::Nothing, "vi", false);
        let (mut told, mut ends) = (Vec::new(), 0);
        input.waits(true, false);
        while told.is_empty() || ends < 4 {
            match input.next().await {
                Next::Line(Line::End) => ends += 1,
                Next::Question => input.waits(true, false),
                Next::Tell(text) => told.push(text),
                Next::Line(Line::Text(_)) | Next::GiveUp => panic!("there is no input, and the command is complete"),
            }
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("the command has been waiting for input for "), "{told:?}");
    }

    #[test]
    fn a_time_is_told_with_how_long_ago_it_was() {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 3 + 3_661);
        assert!(since_when(then).ends_with(" s (since 01:01:01 UTC)"), "{}", since_when(then));
    }
}
