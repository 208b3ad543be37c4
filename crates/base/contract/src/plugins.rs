//! The plugins that every server has: whoever asks for one of a sandbox calls it by these names.

/// A plugin that is part of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name, which no manifest can take.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
}

/// The variable of a sandbox that says whether it has a browser, and when that starts.
pub const BROWSER: &str = "GLOVEPORT_BROWSER";
/// Its value for none.
pub const NO_BROWSER: &str = "off";

/// The plugins that are part of the server.
pub const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn { name: "browser", description: "Chromium, which executes browse and browse_interactive" },
    BuiltIn { name: "jupyter", description: "An IPython kernel, which executes run_ipython" },
    BuiltIn { name: "agent_skills", description: "Python functions for agents in the kernel" },
    BuiltIn { name: "vscode", description: "VS Code in the browser, for the workspace" },
];
