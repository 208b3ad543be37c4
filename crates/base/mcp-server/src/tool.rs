//! The tools: their names, and what a model is told of them.

use std::{fmt, str::FromStr};

use rmcp::model::ToolAnnotations;

use crate::schema;

/// A tool that a model can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Runs a command in the shell that stays, or in the background.
    Shell,
    /// More output of a command.
    ShellOutput,
    /// Types into a command.
    ShellInput,
    /// Ends a command.
    ShellStop,
    /// Runs a cell in an IPython kernel that stays.
    Python,
    /// Reads a file, a picture or a directory.
    ReadFile,
    /// Writes a file whole.
    WriteFile,
    /// Replaces a text in a file.
    EditFile,
    /// Finds lines and names.
    SearchFiles,
    /// Leads the browser somewhere.
    BrowserOpen,
    /// Does something in the page of the browser.
    BrowserAct,
    /// Looks at the page of the browser.
    BrowserRead,
}

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool(String);

impl fmt::Display for UnknownTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Tool::ALL.map(Tool::name).join(", ");
        write!(formatter, "there is no tool `{}`; the tools are {names}", self.0)
    }
}

impl std::error::Error for UnknownTool {}

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, UnknownTool> {
        Self::ALL.into_iter().find(|tool| tool.name() == name).ok_or_else(|| UnknownTool(name.to_owned()))
    }
}

impl Tool {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 12] = [
        Self::Shell,
        Self::ShellOutput,
        Self::ShellInput,
        Self::ShellStop,
        Self::Python,
        Self::ReadFile,
        Self::WriteFile,
        Self::EditFile,
        Self::SearchFiles,
        Self::BrowserOpen,
        Self::BrowserAct,
        Self::BrowserRead,
    ];

    /// The name by which it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::ShellOutput => "shell_output",
            Self::ShellInput => "shell_input",
            Self::ShellStop => "shell_stop",
            Self::Python => "python",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::SearchFiles => "search_files",
            Self::BrowserOpen => "browser_open",
            Self::BrowserAct => "browser_act",
            Self::BrowserRead => "browser_read",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Shell => "Run a shell command",
            Self::ShellOutput => "Read more output",
            Self::ShellInput => "Type into a command",
            Self::ShellStop => "Stop a command",
            Self::Python => "Run Python",
            Self::ReadFile => "Read a file",
            Self::WriteFile => "Write a file",
            Self::EditFile => "Edit a file",
            Self::SearchFiles => "Search files",
            Self::BrowserOpen => "Open a web page",
            Self::BrowserAct => "Act in a web page",
            Self::BrowserRead => "Read a web page",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Shell => {
                "Run a bash command in the sandbox. Directory, variables and functions stay for the next call. Returns when the \
                 command ends, waits for input, or `wait` seconds have passed; then it keeps running, and its `id` is for \
                 shell_output, shell_input and shell_stop. Use `background` for servers and for what runs beside other commands."
            }
            Self::ShellOutput => {
                "Read the output of a command that shell started, from where you left off or from `offset`, and see whether it \
                 has ended."
            }
            Self::ShellInput => {
                "Type a line into a running command, or press a key: C-c, C-d, C-z, Up, Down, Tab, Escape. Returns what it then \
                 writes."
            }
            Self::ShellStop => "End a running command: it is interrupted (C-c), and quit if that is not enough.",
            Self::Python => {
                "Run Python code in an IPython session of the sandbox. Variables and imports stay for the next call. Returns what \
                 it prints, the value of the last expression, and pictures such as matplotlib figures."
            }
            Self::ReadFile => {
                "Read a text file (whole, or some lines), look at a picture, or list a directory of the sandbox."
            }
            Self::WriteFile => {
                "Write a whole file of the sandbox. Replaces what is there, and makes missing directories. For small changes \
                 use edit_file."
            }
            Self::EditFile => {
                "Replace a text in a file of the sandbox. `old_text` must match exactly, and only one place: give enough lines \
                 around it."
            }
            Self::SearchFiles => {
                "Find lines that match a regular expression, or without `pattern` the files whose names match `glob`. Skips \
                 what .gitignore names."
            }
            Self::BrowserOpen => {
                "Open an address in the sandbox's browser, or go `back` or `forward`, or `reload`. Returns the page as a tree \
                 of its elements, whose ids in brackets are targets for browser_act."
            }
            Self::BrowserAct => {
                "Do one thing in the open web page, such as a click. Returns the tree of the page as it is then."
            }
            Self::BrowserRead => {
                "Look at the open web page: as the tree of its elements, as text in Markdown, or as a picture."
            }
        }
    }

    /// Hints for whoever asks a person before a call.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::with_title(self.title());
        match self {
            // What a command does is not known.
            Self::Shell | Self::ShellInput | Self::Python => {
                hints.read_only(false).destructive(true).idempotent(false).open_world(true)
            }
            Self::ShellOutput | Self::ReadFile | Self::SearchFiles => hints.read_only(true).open_world(false),
            Self::ShellStop | Self::WriteFile => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
            Self::EditFile => hints.read_only(false).destructive(true).idempotent(false).open_world(false),
            // What a page does with a click is not known; an address that is opened is asked for, and no more.
            Self::BrowserAct => hints.read_only(false).destructive(true).idempotent(false).open_world(true),
            Self::BrowserOpen => hints.read_only(false).destructive(false).idempotent(false).open_world(true),
            Self::BrowserRead => hints.read_only(true).open_world(true),
        }
    }

    /// Whether it needs a browser.
    pub const fn is_of_browser(self) -> bool {
        matches!(self, Self::BrowserOpen | Self::BrowserAct | Self::BrowserRead)
    }

    /// What a client is told of it.
    pub(crate) fn describe(self) -> rmcp::model::Tool {
        rmcp::model::Tool::new(self.name(), self.description(), schema::input(self))
            .with_title(self.title())
            .with_raw_output_schema(schema::output(self).into())
            .with_annotations(self.annotations())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_its_name_and_no_other() {
        for tool in Tool::ALL {
            assert_eq!(tool.name().parse(), Ok(tool));
        }
        let error = "Shell".parse::<Tool>().unwrap_err().to_string();
        assert!(error.starts_with("there is no tool `Shell`; the tools are shell, shell_output,"), "{error}");
    }

    #[test]
    fn all_tools_together_cost_a_model_little() {
        let told: usize = Tool::ALL.into_iter().map(|tool| tool.description().len()).sum();
        assert!(told < 2000, "{told} bytes of descriptions");
        for tool in Tool::ALL {
            let described = serde_json::to_value(tool.describe()).unwrap();
            for (name, field) in described["inputSchema"]["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{} {name}", tool.name());
            }
            assert_eq!(described["inputSchema"]["additionalProperties"], false, "{}", tool.name());
            assert_eq!(described["outputSchema"]["type"], "object", "{}", tool.name());
        }
    }
}
