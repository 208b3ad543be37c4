//! The program that reads one document, and nothing else.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read as _, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use gloveport_sys::{
    Identity,
    apart::{ChildLimits, confine},
};

#[cfg(not(feature = "documents"))]
use crate::convert::converted;
#[cfg(feature = "documents")]
use crate::converters::converted;
#[cfg(feature = "documents")]
use crate::web::{Input, shown};
use crate::{
    Format, View,
    error::ConversionError,
    frames::{self, Kind},
    limits::INPUT,
};
#[cfg(feature = "pictures")]
use crate::{draw, frames::Head};

/// The first argument of a program that is to read a document.
pub(crate) const COMMAND: &str = "read-document";
/// Its exit code when it can not confine itself; why stands on its standard error.
pub(crate) const UNCONFINED: u8 = 3;
/// Its exit code when it is not started as it must be.
const MISUSED: u8 = 2;

/// Bytes of its stack. Parsers of nested data call themselves.
const STACK: u64 = 16 * 1024 * 1024;
/// Seconds of processor time.
pub(crate) const SECONDS: u64 = 30;

/// What is to be done with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// To show it as Markdown.
    Markdown(Format),
    /// To show it as the inner part of a page of a browser.
    Web(View),
    /// To draw its pages.
    Draw,
}

impl Job {
    const ALL: [(Self, &str); 12] = [
        (Self::Markdown(Format::Docx), "docx"),
        (Self::Markdown(Format::Xlsx), "xlsx"),
        (Self::Markdown(Format::Pptx), "pptx"),
        (Self::Markdown(Format::Pdf), "pdf"),
        (Self::Markdown(Format::Audio), "audio"),
        (Self::Web(View::Markdown), "web-markdown"),
        (Self::Web(View::Separated), "web-separated"),
        (Self::Web(View::Tabs), "web-tabs"),
        (Self::Web(View::Workbook), "web-workbook"),
        (Self::Web(View::Notebook), "web-notebook"),
        (Self::Web(View::Text), "web-text"),
        (Self::Draw, "draw"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(job, _)| *job == self).map_or("", |(_, name)| name)
    }

    /// Bytes of its address space. Pictures are larger than texts.
    pub(crate) const fn memory(self) -> u64 {
        match self {
            Self::Markdown(_) | Self::Web(_) => 512 * 1024 * 1024,
            Self::Draw => 1024 * 1024 * 1024,
        }
    }
}

/// What a child is told by its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) job: Job,
    /// The process that starts it.
    pub(crate) parent: u32,
    /// As whom it reads, if it is started by root.
    pub(crate) identity: Option<Identity>,
}

impl Order {
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let numbers = self.identity.iter().flat_map(|identity| {
            [identity.uid, identity.gid].into_iter().chain(identity.groups.iter().copied()).map(|id| id.to_string())
        });
        let words = [COMMAND.to_owned(), self.job.name().to_owned(), self.parent.to_string()];
        words.into_iter().chain(numbers).map(OsString::from).collect()
    }

    /// The order behind the command.
    fn parse(words: &[OsString]) -> Option<Self> {
        let [job, parent, identity @ ..] = words else { return None };
        let (job, _) = Job::ALL.into_iter().find(|(_, name)| job == name)?;
        let number = |word: &OsString| word.to_str()?.parse().ok();
        let identity = match identity {
            [] => None,
            [uid, gid, groups @ ..] => Some(Identity {
                uid: number(uid)?,
                gid: number(gid)?,
                groups: groups.iter().map(number).collect::<Option<_>>()?,
            }),
            [_] => return None,
        };
        Some(Self { job, parent: number(parent)?, identity })
    }
}

/// Reads a document if the arguments of this process say so, which are those of a child of a [`Reader`](crate::Reader);
/// `None` if they do not. A program that readers are to start calls it first in `main`, before there is another thread.
pub fn run_if_asked(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != OsStr::new(COMMAND) {
        return None;
    }
    let words: Vec<OsString> = arguments.collect();
    let mut complaints = io::stderr();
    let Some(order) = Order::parse(&words) else {
        let _told = writeln!(complaints, "{COMMAND} is started by programs that show documents, and by nobody else");
        return Some(ExitCode::from(MISUSED));
    };
    let limits = ChildLimits { memory: order.job.memory(), stack: STACK, seconds: SECONDS };
    if let Err(error) = confine(order.parent, order.identity.as_ref(), &limits) {
        let _told = writeln!(complaints, "{error}");
        return Some(ExitCode::from(UNCONFINED));
    }
    // What a defect says of itself is of no use to whoever wants to see the document.
    std::panic::set_hook(Box::new(|_| {}));
    match work(order.job, &mut io::stdout().lock()) {
        Ok(()) => Some(ExitCode::SUCCESS),
        // Nobody listens any more.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Reads standard input and tells what is in it.
fn work(job: Job, out: &mut impl Write) -> io::Result<()> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match job {
        Job::Markdown(format) => show(format, document()?, out),
        Job::Web(view) => web(view, out),
        Job::Draw => pages(document()?, out),
    }));
    match outcome {
        Ok(Ok(())) => frames::write(out, Kind::Done, &[]),
        Ok(Err(Failed::Document(reason))) => fail(out, &reason),
        Ok(Err(Failed::Output(error))) => Err(error),
        Err(_panic) => fail(out, "the converter failed on this document"),
    }
}

fn fail(out: &mut impl Write, reason: &str) -> io::Result<()> {
    frames::write(out, Kind::Failure, &[frames::fitting(reason, Kind::Failure).as_bytes()])
}

enum Failed {
    /// Why the document can not be shown.
    Document(String),
    Output(io::Error),
}

impl From<ConversionError> for Failed {
    fn from(error: ConversionError) -> Self {
        Self::Document(error.to_string())
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The whole of standard input.
fn document() -> Result<Vec<u8>, Failed> {
    match beginning(INPUT)? {
        (bytes, false) => Ok(bytes),
        (_, true) => Err(Failed::Document(format!("the file is larger than {} MB", INPUT / (1024 * 1024)))),
    }
}

/// As much of standard input, and whether there is more.
fn beginning(most: u64) -> Result<(Vec<u8>, bool), Failed> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failed::Document(format!("the file cannot be read: {error}")))?;
    let is_cut = bytes.len() as u64 > most;
    if is_cut {
        bytes.pop();
    }
    Ok((bytes, is_cut))
}

fn show(format: Format, bytes: Vec<u8>, out: &mut impl Write) -> Result<(), Failed> {
    if bytes.is_empty() {
        return Err(ConversionError::Empty.into());
    }
    let text = converted(format, bytes)?;
    Ok(frames::write(out, Kind::Text, &[frames::fitting(&text, Kind::Text).as_bytes()])?)
}

#[cfg(not(feature = "documents"))]
fn web(_view: View, _out: &mut impl Write) -> Result<(), Failed> {
    Err(ConversionError::LeftOut.into())
}

#[cfg(feature = "documents")]
fn web(view: View, out: &mut impl Write) -> Result<(), Failed> {
    let input = if view.takes_a_beginning() {
        let (bytes, is_cut) = beginning(view.input())?;
        Input { bytes, is_cut }
    } else {
        Input { bytes: document()?, is_cut: false }
    };
    let page = shown(view, input)?;
    Ok(frames::write(out, Kind::Web, &[page.as_bytes()])?)
}

#[cfg(not(feature = "pictures"))]
fn pages(_bytes: Vec<u8>, _out: &mut impl Write) -> Result<(), Failed> {
    let reason = "this build of the server leaves pictures of pages out; use one with the feature `pictures`";
    Err(Failed::Document(reason.to_owned()))
}

#[cfg(feature = "pictures")]
fn pages(bytes: Vec<u8>, out: &mut impl Write) -> Result<(), Failed> {
    let drawn = draw::pages(bytes, |page| match page {
        draw::Page::Picture { number, width, height, png } => {
            let head = Head { number, width, height }.bytes();
            frames::write(out, Kind::Picture, &[&head, &png])
        }
        draw::Page::Note(text) => frames::write(out, Kind::Note, &[frames::fitting(&text, Kind::Note).as_bytes()]),
    });
    drawn.map_err(|error| match error {
        draw::PdfError::Output(error) => Failed::Output(error),
        error => Failed::Document(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_understood_as_it_was_given() {
        let root = Identity { uid: 0, gid: 0, groups: Vec::new() };
        let user = Identity { uid: 1000, gid: 100, groups: vec![4, 27] };
        for identity in [None, Some(root), Some(user)] {
            for (job, _) in Job::ALL {
                let order = Order { job, parent: 77, identity: identity.clone() };
                assert_eq!(Order::parse(&order.arguments()[1..]), Some(order));
            }
        }
    }

    #[test]
    fn other_arguments_are_not_for_a_child() {
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        assert!(run_if_asked(words("")).is_none());
        assert!(run_if_asked(words("gloveport serve")).is_none());
        assert!(run_if_asked(words("gloveport view read-document")).is_none());
        for line in ["", "pdf", "pdf x", "exe 1", "pdf 1 0", "pdf 1 0 x", "pdf 1 0 0 -1", "pdf -1"] {
            assert_eq!(Order::parse(&words(line)), None, "{line}");
        }
    }
}
