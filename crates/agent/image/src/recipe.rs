//! What an image is made of, and the Dockerfile for it (`docker-runtime` §16).
//!
//! The image is for our server: there is no Python tree, no Poetry and no Micromamba in it. A link to our program stands
//! where an unmodified OpenHands 0.62 looks for its launcher. Nothing of what a user gives becomes an instruction: names
//! are checked, and commands are a script of their own.

use std::{fmt, fmt::Write as _, str::FromStr};

use crate::{base::ImageName, error::ImageError, platform::Platform};

/// A script with the steps.
pub(crate) const SETUP: &str = include_str!("recipe/setup.sh");
/// The step for VS Code from npm.
pub(crate) const VSCODE: &str = include_str!("recipe/vscode.sh");
/// The Python packages.
pub(crate) const REQUIREMENTS: &str = include_str!("recipe/requirements.txt");

/// The user of a sandbox, if nothing else is said.
pub const DEFAULT_USER: &str = "openhands";
/// Most bytes of the extra commands.
const MOST_EXTRA: usize = 64 * 1024;
/// What pip may be told by `--build-arg`. None of them stays in the image.
const PIP_VARIABLES: [&str; 5] =
    ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT"];

/// What npm may be told in the same way.
const NPM_VARIABLES: [&str; 2] = ["NPM_CONFIG_REGISTRY", "NODE_EXTRA_CA_CERTS"];

/// The name of a user that an image gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UserName {
    fn default() -> Self {
        Self(DEFAULT_USER.into())
    }
}

impl FromStr for UserName {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let refused = |reason: &str| ImageError::Value {
            what: "the user name",
            value: text.escape_debug().to_string(),
            reason: reason.into(),
        };
        let good = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        if !text.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
            || !text.chars().all(good)
            || text.len() > 32
        {
            return Err(refused(
                "it has up to 32 lower-case letters, digits, `_` and `-`, and begins with a letter or `_`",
            ));
        }
        if text == "root" {
            return Err(refused("root is there anyway; build without a user"));
        }
        Ok(Self(text.into()))
    }
}

/// Where VS Code's server comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VsCode {
    /// From the npm registry; its native parts are built.
    Npm,
    /// An archive (`.tar.gz`) with one folder that has `bin/openvscode-server`.
    Archive(String),
}

impl FromStr for VsCode {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        if text == "npm" {
            return Ok(Self::Npm);
        }
        // What is wrong may be a password.
        let refused = |reason: &str| ImageError::Value {
            what: "the source of VS Code",
            value: text.split(['@', '?']).next_back().unwrap_or_default().escape_debug().to_string(),
            reason: reason.into(),
        };
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let Some(rest) = rest else { return Err(refused("it is `npm` or the URL of an archive")) };
        if rest.split('/').next().is_some_and(|host| host.contains('@') || host.is_empty()) {
            return Err(refused("the URL must have a host and no user or password: it stays in the image"));
        }
        if !rest.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._~:/?#[]@!&()*+,;=%".contains(letter)) {
            return Err(refused("the URL has characters that must be percent-encoded"));
        }
        Ok(Self::Archive(text.into()))
    }
}

impl fmt::Display for VsCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Npm => formatter.write_str("npm"),
            Self::Archive(url) => formatter.write_str(url),
        }
    }
}

/// Commands that run once while the image is built, as its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraCommands(String);

impl ExtraCommands {
    /// The script.
    pub fn script(&self) -> String {
        format!("set -e\n{}\n", self.0)
    }
}

impl FromStr for ExtraCommands {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let refused = |reason: &str| ImageError::Value {
            what: "the extra commands",
            value: text.chars().take(60).collect::<String>().escape_debug().to_string(),
            reason: reason.into(),
        };
        let text = text.trim();
        // The setting is documented with the instruction in front.
        let script = text.strip_prefix("RUN ").unwrap_or(text).trim();
        if script.is_empty() {
            return Err(refused("there are none"));
        }
        if script.contains('\0') || script.len() > MOST_EXTRA {
            return Err(refused("they are a script of up to 64 KiB without a NUL"));
        }
        Ok(Self(script.into()))
    }
}

/// What a build begins with (`docker-runtime` §13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildFrom {
    /// The base image.
    Scratch,
    /// An image from the same base, whose packages are there already.
    Versioned,
    /// An image from the same recipe: only our program is exchanged.
    Lock,
}

impl BuildFrom {
    /// One word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::Versioned => "versioned",
            Self::Lock => "lock",
        }
    }
}

/// What a sandbox image is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The image it begins with.
    pub base: ImageName,
    /// A user that the tools can work as.
    pub user: Option<UserName>,
    /// Tools that agents expect: bash, git, curl, ripgrep, ….
    pub system: bool,
    /// IPython, and what AgentSkills need.
    pub jupyter: bool,
    /// Chromium.
    pub browser: bool,
    /// VS Code's server.
    pub vscode: Option<VsCode>,
    /// Commands that run at last.
    pub extra: Option<ExtraCommands>,
    /// What it is built for; that of the engine if there are none.
    pub platforms: Vec<Platform>,
}

impl Recipe {
    /// Tools and the usual user on a base.
    pub fn new(base: ImageName) -> Self {
        Self {
            base,
            user: Some(UserName::default()),
            system: true,
            jupyter: false,
            browser: false,
            vscode: None,
            extra: None,
            platforms: Vec::new(),
        }
    }

    /// A base with our program and nothing else. No command runs while it is built, so the base needs no shell.
    pub fn plain(base: ImageName) -> Self {
        Self { user: None, system: false, ..Self::new(base) }
    }

    /// Whether a command runs while it is built.
    pub(crate) fn runs(&self) -> bool {
        self.system || self.user.is_some() || self.extra.is_some() || self.has_parts()
    }

    fn has_parts(&self) -> bool {
        self.jupyter || self.browser || self.vscode.is_some()
    }

    /// What belongs together is there.
    pub fn check(&self) -> Result<(), ImageError> {
        let refused = |what, value: &str, reason: &str| {
            Err(ImageError::Value { what, value: value.into(), reason: reason.into() })
        };
        if self.base.as_str() == "scratch" && self.runs() {
            return refused("the base", "scratch", "there is nothing in it that could run; build a plain image");
        }
        if self.has_parts() && !self.system {
            return refused("the recipe", "without tools", "Jupyter, Chromium and VS Code are installed by them");
        }
        Ok(())
    }

    /// The Dockerfile that begins with `base`, which is ours but for builds from scratch.
    pub fn dockerfile(&self, from: BuildFrom, base: &str) -> String {
        let mut text = format!("# A sandbox of gloveport, built from {}.\nFROM {base}\nUSER root\n", from.word());
        if from != BuildFrom::Lock {
            self.steps(&mut text);
        }
        text.push_str(&self.program());
        text
    }

    fn steps(&self, text: &mut String) {
        if !self.runs() {
            return;
        }
        let mut line = |words: fmt::Arguments<'_>| {
            let _infallible = writeln!(text, "{words}");
        };
        let user = self.user.as_ref().map(UserName::as_str);
        line(format_args!("ENV LANG=C.UTF-8 LC_ALL=C.UTF-8"));
        line(format_args!("COPY setup/ /openhands/setup/"));
        if self.system {
            let mut words = vec!["system"];
            words.extend(self.jupyter.then_some("jupyter"));
            words.extend((self.vscode == Some(VsCode::Npm)).then_some("vscode"));
            line(format_args!("{}", step(&words)));
        }
        if let Some(user) = user {
            line(format_args!("{}", step(&["user", user])));
        }
        let from_npm = self.vscode == Some(VsCode::Npm);
        if self.jupyter || from_npm {
            let npm = from_npm.then_some(NPM_VARIABLES).into_iter().flatten();
            for variable in PIP_VARIABLES.into_iter().chain(npm) {
                line(format_args!("ARG {variable}"));
            }
        }
        if self.jupyter {
            line(format_args!("{}", step(&["jupyter", user.unwrap_or_default()])));
            // The kernel's Python; the shell keeps the one of the base.
            line(format_args!(
                "ENV GLOVEPORT_PYTHON=/openhands/venv/bin/python OH_INTERPRETER_PATH=/openhands/venv/bin/python"
            ));
        }
        if self.browser {
            line(format_args!("{}", step(&["browser"])));
        }
        if let Some(vscode) = &self.vscode {
            line(format_args!("ENV OPENVSCODE_SERVER_ROOT=/openhands/.openvscode-server"));
            line(format_args!("{}", step(&["vscode", &vscode.to_string(), user.unwrap_or_default()])));
        }
        if self.extra.is_some() {
            line(format_args!("WORKDIR /openhands/code"));
            if let Some(user) = user {
                line(format_args!("USER {user}"));
            }
            let shell = if self.system { "/bin/bash" } else { "/bin/sh" };
            line(format_args!("RUN [\"{shell}\", \"/openhands/setup/extra.sh\"]"));
            line(format_args!("USER root"));
        }
    }

    /// The last lines: what changes with each version of our program.
    fn program(&self) -> String {
        let source = match self.platforms.as_slice() {
            [] | [_] => "code/openhands/".to_owned(),
            _ => "code/openhands-${TARGETARCH}/".to_owned(),
        };
        let argument = if self.platforms.len() > 1 { "ARG TARGETARCH\n" } else { "" };
        format!(
            "{argument}COPY {source} /openhands/\nCOPY links/ /usr/local/bin/\nWORKDIR /openhands/code\nLABEL dev.gloveport.image.base=\"{}\" \
             dev.gloveport.image.version=\"{}\"\n",
            self.base,
            env!("CARGO_PKG_VERSION"),
        )
    }

    /// Files of the build folder that steps read.
    pub(crate) fn setup_files(&self) -> Vec<(&'static str, String)> {
        if !self.runs() {
            return Vec::new();
        }
        let mut files = vec![("setup.sh", SETUP.to_owned())];
        if self.jupyter {
            files.push(("requirements.txt", REQUIREMENTS.to_owned()));
        }
        if self.vscode == Some(VsCode::Npm) {
            files.push(("vscode.sh", VSCODE.to_owned()));
        }
        files.extend(self.extra.as_ref().map(|extra| ("extra.sh", extra.script())));
        files
    }

    /// All that an image is made with but its base and our program: two recipes with the same make the same image.
    pub(crate) fn lock_inputs(&self) -> Vec<String> {
        let mut inputs = vec![self.dockerfile(BuildFrom::Scratch, self.base.as_str())];
        for (name, text) in self.setup_files() {
            inputs.push(format!("\0{name}\0{text}"));
        }
        inputs.push(format!("\0{}", self.platforms.iter().map(Platform::to_string).collect::<Vec<_>>().join(",")));
        inputs
    }
}

/// A step in the form without a shell, whose words are never read by one. They have no quotes and no backslashes.
fn step(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().filter(|word| !word.is_empty()).map(|word| format!(", \"{word}\"")).collect();
    format!("RUN [\"/bin/sh\", \"/openhands/setup/setup.sh\"{}]", words.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Recipe {
        Recipe {
            jupyter: true,
            browser: true,
            vscode: Some(VsCode::Npm),
            extra: Some("pip list".parse().unwrap()),
            ..Recipe::new("debian:12".parse().unwrap())
        }
    }

    #[test]
    fn a_dockerfile_has_a_step_for_each_part_and_our_program_last() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            r#"# A sandbox of gloveport, built from scratch.
FROM debian:12
USER root
ENV LANG=C.UTF-8 LC_ALL=C.UTF-8
COPY setup/ /openhands/setup/
RUN ["/bin/sh", "/openhands/setup/setup.sh", "system", "jupyter", "vscode"]
RUN ["/bin/sh", "/openhands/setup/setup.sh", "user", "openhands"]
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_TRUSTED_HOST
ARG PIP_CERT
ARG NPM_CONFIG_REGISTRY
ARG NODE_EXTRA_CA_CERTS
RUN ["/bin/sh", "/openhands/setup/setup.sh", "jupyter", "openhands"]
ENV GLOVEPORT_PYTHON=/openhands/venv/bin/python OH_INTERPRETER_PATH=/openhands/venv/bin/python
RUN ["/bin/sh", "/openhands/setup/setup.sh", "browser"]
ENV OPENVSCODE_SERVER_ROOT=/openhands/.openvscode-server
RUN ["/bin/sh", "/openhands/setup/setup.sh", "vscode", "npm", "openhands"]
WORKDIR /openhands/code
USER openhands
RUN ["/bin/bash", "/openhands/setup/extra.sh"]
USER root
COPY code/openhands/ /openhands/
COPY links/ /usr/local/bin/
WORKDIR /openhands/code
LABEL dev.gloveport.image.base="debian:12" dev.gloveport.image.version="{version}"
"#
        );
        assert_eq!(full().dockerfile(BuildFrom::Scratch, "debian:12"), expected);
        assert!(full().dockerfile(BuildFrom::Versioned, "r:v").contains("\"jupyter\""));
    }

    #[test]
    fn only_our_program_is_exchanged_in_an_image_of_the_same_recipe() {
        let text = full().dockerfile(BuildFrom::Lock, "r:lock");
        assert!(!text.contains("RUN") && !text.contains("setup/"), "{text}");
        assert!(text.contains("FROM r:lock\nUSER root\nCOPY code/openhands/ /openhands/\n"), "{text}");
    }

    #[test]
    fn a_plain_image_runs_no_command() {
        let recipe = Recipe::plain("busybox".parse().unwrap());
        let text = recipe.dockerfile(BuildFrom::Scratch, "busybox");
        assert!(!text.contains("RUN") && !text.contains("setup/"), "{text}");
        assert!(recipe.setup_files().is_empty());
        Recipe::plain("scratch".parse().unwrap()).check().unwrap();
        assert!(Recipe::new("scratch".parse().unwrap()).check().is_err());
        assert!(Recipe { jupyter: true, ..recipe }.check().is_err());
    }

    #[test]
    fn each_platform_gets_its_own_program() {
        let platforms = ["linux/amd64", "linux/arm64"].map(|text| text.parse().unwrap()).to_vec();
        let text = Recipe { platforms, ..full() }.dockerfile(BuildFrom::Scratch, "debian:12");
        assert!(text.contains("ARG TARGETARCH\nCOPY code/openhands-${TARGETARCH}/ /openhands/\n"), "{text}");
    }

    #[test]
    fn commands_with_newlines_stay_out_of_the_dockerfile() {
        let extra: ExtraCommands = "true\nUSER nobody\nENTRYPOINT [\"/evil\"]".parse().unwrap();
        let recipe = Recipe { extra: Some(extra), ..full() };
        let text = recipe.dockerfile(BuildFrom::Scratch, "debian:12");
        assert!(!text.contains("nobody") && !text.contains("evil"), "{text}");
        let (_, script) = recipe.setup_files().pop().unwrap();
        assert_eq!(script, "set -e\ntrue\nUSER nobody\nENTRYPOINT [\"/evil\"]\n");
        let documented: ExtraCommands = "RUN apt-get install -y x\n".parse().unwrap();
        assert_eq!(documented.script(), "set -e\napt-get install -y x\n");
        assert!("  ".parse::<ExtraCommands>().is_err());
        assert!("a\0b".parse::<ExtraCommands>().is_err());
    }

    #[test]
    fn names_of_users_that_a_shell_or_a_dockerfile_would_read_are_refused() {
        for text in ["", "root", "a b", "a\nRUN x", "-a", "1a", "A", "a;b", "a$b", "a\"", "ä", &"a".repeat(33)] {
            assert!(text.parse::<UserName>().is_err(), "{text:?}");
        }
        for text in ["openhands", "_x-1"] {
            assert_eq!(text.parse::<UserName>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn vs_code_comes_from_npm_or_a_url_without_a_password() {
        assert_eq!("npm".parse::<VsCode>().unwrap(), VsCode::Npm);
        let url = "https://mirror.example/a/server-1.0.tar.gz?x=1";
        assert_eq!(url.parse::<VsCode>().unwrap(), VsCode::Archive(url.into()));
        for text in
            ["", "yes", "ftp://x/y", "https:///x", "https://x/a b", "https://x/\"", "https://x/\\", "https://x/\nRUN"]
        {
            assert!(text.parse::<VsCode>().is_err(), "{text:?}");
        }
        let error = "https://user:secret@x/y".parse::<VsCode>().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn whatever_changes_the_image_changes_the_lock() {
        let other: [fn(&mut Recipe); 6] = [
            |recipe| recipe.user = None,
            |recipe| recipe.jupyter = false,
            |recipe| recipe.browser = false,
            |recipe| recipe.vscode = None,
            |recipe| recipe.extra = Some("other".parse().unwrap()),
            |recipe| recipe.platforms = vec!["linux/arm64".parse().unwrap()],
        ];
        for change in other {
            let mut changed = full();
            change(&mut changed);
            assert_ne!(changed.lock_inputs(), full().lock_inputs());
        }
    }
}
