//! A person at a terminal decides whether something risky is done.

use std::{
    io::{self, BufRead as _, BufReader, IsTerminal as _, Read, Write},
    process::ExitCode,
};

use clap::Args;
use gloveport_protocol::{Action, ActionEvent, BoxFuture, SecurityRisk};
use gloveport_runtime::{Answer, Approver, Question, Refused, RefusedBy, attached_terminal};
use gloveport_security::Assessment;
use tokio::sync::oneshot;

use crate::{
    exit::REFUSED,
    output::{print_json, tell},
    signals, terminal, visible,
};

/// What is to be done about a question.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ApproveArgs {
    /// Answer yes to every question about something that the section [security] of the configuration finds risky.
    #[arg(long, conflicts_with = "deny")]
    pub(crate) yes: bool,
    /// Refuse it without a question.
    #[arg(long)]
    pub(crate) deny: bool,
}

/// The person who runs this command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Person {
    arguments: ApproveArgs,
    /// Standard input is read for something else.
    input_is_taken: bool,
}

impl Person {
    pub(crate) const fn new(arguments: ApproveArgs, input_is_taken: bool) -> Self {
        Self { arguments, input_is_taken }
    }
}

impl Approver for Person {
    fn attends(&self) -> bool {
        self.arguments.yes || self.arguments.deny || Dialogue::open(self.input_is_taken).is_some()
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            // What was typed already is for whatever is asked about, unless a question is put.
            match self.arguments {
                ApproveArgs { yes: true, .. } => Answer::Confirm,
                ApproveArgs { deny: true, .. } => Answer::Reject,
                ApproveArgs { .. } => match Dialogue::open(self.input_is_taken) {
                    Some(dialogue) => answer(dialogue, &text(question)).await,
                    None => Answer::Reject,
                },
            }
        })
    }
}

/// Asks whoever is at the terminal; nobody if there is none.
pub(crate) async fn confirm(question: &str) -> Option<bool> {
    let dialogue = Dialogue::open(false)?;
    Some(matches!(answer(dialogue, question).await, Answer::Confirm))
}

/// Where the question is written, and the answer read.
struct Dialogue {
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
}

impl Dialogue {
    /// Only a terminal is asked: what else stands at our streams would answer by accident. What was typed before the
    /// question is no answer to it.
    fn open(input_is_taken: bool) -> Option<Self> {
        if let Ok((input, output)) = terminal::own() {
            return Some(Self { input: Box::new(input), output: Box::new(output) });
        }
        let (input, output) = (io::stdin(), io::stderr());
        if input_is_taken || !input.is_terminal() || !output.is_terminal() {
            return None;
        }
        terminal::forget_typed();
        Some(Self { input: Box::new(input), output: Box::new(output) })
    }
}

/// Asks. C-c and the end of input are a no.
async fn answer(mut dialogue: Dialogue, text: &str) -> Answer {
    // Whoever sees the question may answer it with C-c at once.
    let Ok(mut interrupts) = signals::interrupts() else { return Answer::Reject };
    let asked = dialogue.output.write_all(text.as_bytes()).and_then(|()| dialogue.output.flush());
    if asked.is_err() {
        return Answer::Reject;
    }
    let (sender, line) = oneshot::channel();
    // Nobody can take a thread's read back, so it is one that nobody waits for.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(dialogue.input).read_line(&mut line);
        let _nobody_waits = sender.send(read.is_ok().then_some(line));
    });
    let line = tokio::select! {
        line = line => line.ok().flatten(),
        () = interrupts.recv() => None,
    };
    // Without the end of a line the answer was not typed to its end.
    let line = line.filter(|line| line.ends_with('\n'));
    if line.is_none() {
        let _nobody_reads = dialogue.output.write_all(b"\n");
    }
    match line.unwrap_or_default().trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Confirm,
        _ => Answer::Reject,
    }
}

/// The question as it is shown.
fn text(question: Question<'_>) -> String {
    let (what, content) = described(question.action);
    let mut text = match question.assessment.risk {
        SecurityRisk::Unknown => format!("gloveport: {what} needs your confirmation; nothing rates its risk:\n\n"),
        risk => format!("gloveport: {what} is risky (risk {}):\n\n", word(risk)),
    };
    // What is to be run may hold anything, and must not rewrite the question.
    for line in visible::lines(&content).lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&visible::lines(&reasons(question.assessment)));
    text.push_str("Go on? [y/N] ");
    text
}

/// The rules that apply, each on a line of its own.
fn reasons(assessment: &Assessment) -> String {
    let lines = assessment.rules.iter().map(|found| format!("  {}: {}\n", found.rule, found.explanation));
    lines.collect::<Vec<_>>().concat()
}

const fn word(risk: SecurityRisk) -> &'static str {
    match risk {
        SecurityRisk::High => "high",
        SecurityRisk::Medium => "medium",
        SecurityRisk::Low => "low",
        SecurityRisk::Unknown => "unknown",
    }
}

/// What an action is, and what of it a person must see.
fn described(event: &ActionEvent) -> (&'static str, String) {
    match &event.action {
        Action::Run(run) => match attached_terminal(run) {
            Some(terminal) => ("attaching to this terminal", terminal.to_owned()),
            None => ("this command", run.command.clone()),
        },
        Action::RunIpython(cell) => ("this cell", cell.code.clone()),
        Action::Read(read) => ("reading this file", read.path.clone()),
        Action::Write(write) => ("writing this file", write.path.clone()),
        Action::Edit(edit) => ("changing this file", edit.path.clone()),
        other => ("this", other.message()),
    }
}

/// Tells that something was refused, and gives our exit code.
pub(crate) fn refused(refused: &Refused, json: bool) -> anyhow::Result<ExitCode> {
    let high =
        |why: &str| format!("gloveport: not done: {why}\n{}", reasons(&refused.assessment)).trim_end().to_owned();
    tell(&match refused.by {
        RefusedBy::Approver => "gloveport: not done: it was refused".to_owned(),
        RefusedBy::NobodyToAsk => {
            high("it has to be confirmed, and there is no terminal to ask at (--yes lets it pass, --deny refuses it)")
        }
        RefusedBy::Gate => {
            high("its risk is high, and you can confirm it only with `confirmation_mode = true` in [security]")
        }
    });
    if json {
        print_json(&refused.observation.to_value())?;
    }
    Ok(ExitCode::from(REFUSED))
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::RunAction;
    use gloveport_security::RuleMatch;

    use super::*;

    #[test]
    fn the_question_shows_the_command_the_risk_and_why_and_nothing_in_it_moves_the_cursor() {
        let rule = RuleMatch {
            rule: "delete-root",
            risk: SecurityRisk::High,
            explanation: "`rm -rf /` deletes the root of the file system.".to_owned(),
        };
        let assessment = Assessment { risk: SecurityRisk::High, rules: vec![rule] };
        let action = ActionEvent::from(Action::Run(RunAction::new("rm -rf /\necho \x1b[2Jgone")));
        let shown = text(Question { action: &action, assessment: &assessment });
        let expected = "gloveport: this command is risky (risk high):\n\n    rm -rf /\n    echo ";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(
            shown.ends_with("\n\n  delete-root: `rm -rf /` deletes the root of the file system.\nGo on? [y/N] "),
            "{shown}"
        );
        assert!(!shown.contains('\x1b'), "{shown:?}");
    }
}
