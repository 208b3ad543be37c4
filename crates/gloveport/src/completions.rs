//! `gloveport completions`: the script for a shell, and what that script asks for when somebody presses Tab.
//!
//! The scripts of bash, zsh and fish call this command again, with the words so far. It looks at files of this user and
//! at the folders of `PATH` alone: no runtime is asked, nothing is started, and nothing is told. What it offers never needs
//! quotes, and names of files are left to the shell, which quotes them: so nothing on this machine can have a name that
//! runs as a command of the person who completes it.

mod line;
mod offer;
mod position;

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
    sync::mpsc,
    time::Duration,
};

use clap::{Args, ValueEnum};
use clap_complete::{
    Generator, generate,
    shells::{Elvish, PowerShell},
};

use self::{line::Line, offer::Offer, position::Position};
use crate::{cli, output};

/// How long somebody who pressed Tab waits: folders may be on a disk that does not answer.
const PATIENCE: Duration = Duration::from_millis(300);
/// The characters of a word at which bash begins a new one, if it does not tell.
const BREAKS: &str = "=:";

/// Below `gloveport completions --help`.
pub(crate) const INSTALL: &str = "To have them in every new shell, add a line to its start file:\n  \
    bash, ~/.bashrc:                       source <(gloveport completions bash)\n  \
    zsh, ~/.zshrc, after compinit:         source <(gloveport completions zsh)\n  \
    fish, ~/.config/fish/config.fish:      gloveport completions fish | source\n  \
    elvish, ~/.config/elvish/rc.elv:       eval (gloveport completions elvish | slurp)\n  \
    PowerShell, $PROFILE:                  gloveport completions powershell | Out-String | Invoke-Expression\n\n\
    In Elvish and PowerShell only commands and flags are completed.";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
    /// The line up to the cursor, of bash.
    #[arg(long, hide = true, allow_hyphen_values = true)]
    line: Option<String>,
    /// The characters at which bash begins a new word.
    #[arg(long, hide = true, allow_hyphen_values = true, default_value = BREAKS)]
    breaks: String,
    /// The words up to the cursor, the program first.
    #[arg(last = true, hide = true)]
    words: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    Power,
    Zsh,
}

pub(crate) fn completions(arguments: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let text = match (arguments.line, arguments.words) {
        (Some(line), _) => answer(arguments.shell, Line::split(&line, &arguments.breaks)),
        (None, words) if !words.is_empty() => {
            answer(arguments.shell, Line::of_words(words.iter().map(OsString::as_os_str).map(OsStr::to_string_lossy)))
        }
        (None, _) => script(arguments.shell),
    };
    output::print_bytes(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What a shell reads once.
fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => include_str!("completions/gloveport.bash").to_owned(),
        Shell::Fish => include_str!("completions/gloveport.fish").to_owned(),
        Shell::Zsh => include_str!("completions/gloveport.zsh").to_owned(),
        Shell::Elvish => fixed(Elvish),
        Shell::Power => fixed(PowerShell),
    }
}

/// The script of a shell that does not ask again.
fn fixed(generator: impl Generator) -> String {
    let mut text = Vec::new();
    generate(generator, &mut cli::visible(), "gloveport", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// What a script reads: a word that says what the shell does with the lines behind it, and then a line for each word that
/// is offered, in zsh and fish with a tab and what it means.
fn answer(shell: Shell, line: Line) -> String {
    let fixed = line.fixed;
    let (sender, receiver) = mpsc::channel();
    // It ends with the process.
    std::thread::spawn(move || {
        // Nobody waits any more if it cannot be sent.
        let _late = sender.send(offer(&line));
    });
    let offer = receiver.recv_timeout(PATIENCE).unwrap_or_default();
    let mut text = format!("{}\n", offer.then.name());
    for candidate in &offer.words {
        let Some(word) = candidate.word.get(fixed..) else { continue };
        text.push_str(word);
        if shell != Shell::Bash && !candidate.meaning.is_empty() {
            text.extend(["\t", &candidate.meaning]);
        }
        text.push('\n');
    }
    text
}

fn offer(line: &Line) -> Offer {
    if line.is_redirected {
        return Offer::files();
    }
    let root = cli::visible();
    Position::find(&root, &line.words).offer(&line.current)
}
