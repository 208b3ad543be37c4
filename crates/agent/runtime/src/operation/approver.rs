//! Who answers the question whether something risky may be done.

use gloveport_protocol::{ActionEvent, BoxFuture};
use gloveport_security::Assessment;

/// Answers the questions of the gate.
///
/// A closure that takes a [`Question`] and gives an [`Answer`] is one.
pub trait Approver: Send + Sync {
    /// Whether somebody can be asked at all. Where nobody can, nothing is asked, and what would have to be confirmed is
    /// refused.
    fn attends(&self) -> bool {
        true
    }

    /// Asks, and waits for the answer as long as it takes.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;
}

/// Whether an action may be executed.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The action, as it was meant: with its secrets.
    pub action: &'a ActionEvent,
    /// How risky it is, and why.
    pub assessment: &'a Assessment,
}

/// What somebody says to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may be executed.
    Confirm,
    /// It must not.
    Reject,
}

impl<F: Fn(Question<'_>) -> Answer + Send + Sync> Approver for F {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let answer = self(question);
        Box::pin(async move { answer })
    }
}

/// There is nobody to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn attends(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Reject })
    }
}
