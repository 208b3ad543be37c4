//! What stands in the place of `here` on other systems than Linux: the half beside the agent works there, and what needs
//! sandboxes of this machine says what to do instead.

use std::{
    ffi::OsString,
    future::{Ready, ready},
    path::PathBuf,
    process::ExitCode,
};

use clap::Subcommand;
use gloveport_build_id::BUILD;
use gloveport_config::Config;
use gloveport_protocol::{Action, Observation, files::FileEntry};
use gloveport_provider::{
    ProviderContext, ProviderError, Registry,
    program::{Beside, SMALL},
};
use gloveport_runtime::RuntimeOptions;

use crate::{
    cli::{RunArgs, SandboxKeeperArgs, ServeArgs},
    doctor::Check,
    files::{
        copied::{Copied, End},
        progress::Progress,
    },
    image::arguments::{LsArgs, PullArgs, RmArgs},
    ipython::IpythonArgs,
    names::LOCAL,
    plugin::PluginArgs,
    providers,
};

/// The runtime of commands that name none.
pub(crate) const DEFAULT_RUNTIME: &str = "docker";

/// Something that only Linux has.
#[derive(Debug, thiserror::Error)]
#[error("{what} needs Linux; {instead}")]
struct Missing {
    what: &'static str,
    instead: &'static str,
}

/// What is said of commands.
const IN_SANDBOX: &str = "give --runtime docker for a fresh sandbox, or --url for a server";

fn missing<T>(what: &'static str, instead: &'static str) -> anyhow::Result<T> {
    Err(Missing { what, instead }.into())
}

fn later<T>(what: &'static str, instead: &'static str) -> Ready<anyhow::Result<T>> {
    ready(missing(what, instead))
}

/// Images are for sandboxes of this machine.
const NO_IMAGES: &str = "keep images with the engine, and give --runtime docker";

pub(crate) fn pull(_arguments: &PullArgs) -> Ready<anyhow::Result<ExitCode>> {
    later("an image without an engine", NO_IMAGES)
}

pub(crate) fn list_images(_arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    missing("an image without an engine", NO_IMAGES)
}

pub(crate) fn remove_images(_arguments: &RmArgs) -> anyhow::Result<ExitCode> {
    missing("an image without an engine", NO_IMAGES)
}

/// What a sandbox of this machine is not kept from; there are none here.
pub(crate) const fn isolation_gaps() -> Vec<&'static str> {
    Vec::new()
}

/// Whether an error says that this system lacks something.
pub(crate) fn is_missing(error: &anyhow::Error) -> bool {
    error.is::<Missing>()
}

/// Nothing is started here that would need an owner.
#[derive(Debug)]
pub(crate) struct Owner;

impl Owner {
    #[expect(clippy::unnecessary_wraps, reason = "on Linux it may fail")]
    pub(crate) const fn start() -> anyhow::Result<Self> {
        Ok(Self)
    }
}

/// The commands of programs inside of sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum Inside {
    /// Serve a sandbox like the OpenHands 0.62 action execution server; on Linux only.
    #[command(name = "action-execution-server", hide = true)]
    ActionExecutionServer(Anything),
    /// Serve clients of SWE-ReX; on Linux only.
    #[command(hide = true)]
    Swerex(Anything),
    /// Serve clients of OpenHands' SDK 1.x; on Linux only.
    #[command(name = "agent-server", hide = true)]
    AgentServer(Anything),
    /// Serve a sandbox of the runtime `local`.
    #[command(hide = true)]
    SandboxServer(Anything),
    /// Give files of a sandbox to others.
    #[command(hide = true)]
    OwnersWork(Anything),
    /// Serve a sandbox of the runtime `docker`.
    #[command(hide = true)]
    ContainerServer(Anything),
    /// Check whether the server in this container answers.
    #[command(hide = true)]
    ContainerHealth(Anything),
    /// Be the only way out of and into a sandbox whose network is closed.
    #[command(hide = true)]
    Gate(Anything),
}

/// Whatever words.
#[derive(Debug, clap::Args)]
pub(crate) struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn inside(_command: Inside) -> anyhow::Result<ExitCode> {
    missing("the server of a sandbox", "`gloveport session start --runtime docker` starts one in a container")
}

pub(crate) const fn begin() -> Option<ExitCode> {
    None
}

pub(crate) fn command_line() -> Vec<OsString> {
    std::env::args_os().collect()
}

pub(crate) const fn hide() {}

pub(crate) fn run(_arguments: &RunArgs, _owner: &Owner) -> Ready<anyhow::Result<ExitCode>> {
    later("`run` without a runtime", IN_SANDBOX)
}

pub(crate) fn confined(_arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    missing("a command without a sandbox (`--runtime cli`, `--no-tty`)", IN_SANDBOX)
}

pub(crate) fn ipython(_arguments: IpythonArgs, _owner: &Owner) -> Ready<anyhow::Result<ExitCode>> {
    const INSTEAD: &str = "give --url for a server, or run the cell in a session with `gloveport session ipython`";
    later("`ipython` without a server", INSTEAD)
}

pub(crate) fn serve(_arguments: ServeArgs, _owner: &Owner) -> Ready<anyhow::Result<ExitCode>> {
    const INSTEAD: &str = "`gloveport session start --runtime docker` starts a sandbox with a server, and `gloveport session env` names it";
    later("`serve`", INSTEAD)
}

pub(crate) fn plugin(_arguments: PluginArgs, _owner: &Owner) -> Ready<anyhow::Result<ExitCode>> {
    later("`plugin`", "run it where the plugins will run, for example in a container that has gloveport")
}

pub(crate) fn keep(_arguments: SandboxKeeperArgs) -> Ready<anyhow::Result<ExitCode>> {
    later("the runtime `local`", "use --runtime docker")
}

/// There is nothing to look at: sandboxes are in containers, of which the providers tell.
pub(crate) fn checks(_owner: anyhow::Result<Owner>) -> Ready<Vec<Check>> {
    let text = "this system has none of its own; `--runtime docker` has them in containers, and `--url` uses a server";
    ready(vec![Check::ok("sandboxes here", text)])
}

pub(crate) fn system() -> String {
    format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)
}

pub(crate) const fn memory() -> Option<u64> {
    None
}

pub(crate) fn cli_session(_config: Config, _directory: PathBuf, _owner: &Owner) -> anyhow::Result<RuntimeOptions> {
    missing("the runtime `cli`", IN_SANDBOX)
}

pub(crate) fn own_session(_config: Config, _directory: PathBuf, _owner: &Owner) -> anyhow::Result<RuntimeOptions> {
    missing("`replay` without a runtime", IN_SANDBOX)
}

/// The tools for files of this machine, of which there are none.
pub(crate) enum Files {}

impl Files {
    pub(crate) fn new() -> anyhow::Result<Self> {
        const INSTEAD: &str =
            "name a server with --url, or a session with `gloveport session view`, `write`, `edit` and `cp`";
        missing("a command for the files of this machine", INSTEAD)
    }

    pub(crate) fn execute(&self, _action: Action) -> Ready<anyhow::Result<Observation>> {
        match *self {}
    }

    pub(crate) fn store(_path: &str, _content: &[u8]) -> anyhow::Result<()> {
        Self::new().map(|files| match files {})
    }

    pub(crate) fn list(_path: String, _hidden: bool) -> Ready<anyhow::Result<(Vec<FileEntry>, bool)>> {
        ready(Self::new().map(|files| match files {}))
    }
}

pub(crate) fn copy(_source: End, _destination: End, _progress: &Progress) -> Ready<anyhow::Result<Copied>> {
    later("a copy from this machine to itself", "name a server with --url, or a session with `gloveport session cp`")
}

/// Registers that there is no such runtime, so that whoever names it learns why.
pub(crate) fn register(registry: &mut Registry) {
    let what = "this system, because its sandboxes are processes of Linux: use `--runtime docker`";
    registry.register(LOCAL, move |_| {
        Err(ProviderError::Unsupported { provider: LOCAL.to_owned(), what: what.to_owned() })
    });
}

/// Whether a runtime that is registered can have sandboxes.
pub(crate) fn can_host(name: &str) -> bool {
    name != LOCAL
}

pub(crate) const fn sessions(_context: &ProviderContext, _also_ended: bool) -> Vec<String> {
    Vec::new()
}

pub(crate) const fn plugin_names() -> Vec<String> {
    Vec::new()
}

/// No server of this machine has made a key for itself.
pub(crate) const fn known_key(_url: &str) -> Option<String> {
    None
}

pub(crate) fn refill_waiting(_runtime: &str, _context: &ProviderContext) -> Ready<()> {
    ready(())
}

pub(crate) fn count_waiting(_context: &ProviderContext) -> Ready<usize> {
    ready(0)
}

pub(crate) fn end_waiting(_context: &ProviderContext) -> Ready<anyhow::Result<usize>> {
    ready(Ok(0))
}

/// The program that goes into images: the small one, which is for Linux and lies beside this one.
pub(crate) fn image_program() -> anyhow::Result<PathBuf> {
    let own = providers::own_program()?;
    match Beside::of(&own, BUILD) {
        Beside::Same(small) => Ok(small),
        Beside::Other(_) | Beside::Unusable(..) | Beside::Nothing => anyhow::bail!(
            "an image needs a program for Linux, and no {SMALL} of this build is in the folder of {}; put it there, or name \
             a program with --binary",
            own.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::*;
    use crate::doctor::Verdict;

    /// The text of an error that says what is missing.
    fn text<T>(result: anyhow::Result<T>) -> String {
        let error = result.err().unwrap();
        assert!(is_missing(&error), "{error}");
        error.to_string()
    }

    /// The flags of a command.
    fn flags<A: clap::Args>(words: &[&str]) -> A {
        let command = A::augment_args(clap::Command::new("x"));
        let matches = command.try_get_matches_from([&["x"], words].concat()).unwrap();
        A::from_arg_matches(&matches).unwrap()
    }

    #[tokio::test]
    async fn each_command_that_needs_linux_says_so_and_what_to_use_instead() {
        let owner = Owner::start().unwrap();
        let run: RunArgs = flags(&["true"]);
        let instead = "needs Linux; give --runtime docker for a fresh sandbox, or --url for a server";
        assert_eq!(text(super::run(&run, &owner).await), format!("`run` without a runtime {instead}"));
        assert!(text(confined(&run)).ends_with(instead));
        let (one, other) = (text(Files::store("/x", b"")), text(Files::new().map(drop)));
        assert_eq!(one, other);
        let session = own_session(Config::default(), PathBuf::new(), &owner).map(drop);
        assert_eq!(text(session), format!("`replay` without a runtime {instead}"));
        let session = cli_session(Config::default(), PathBuf::new(), &owner).map(drop);
        assert_eq!(text(session), format!("the runtime `cli` {instead}"));
        for (text, begin, end) in [
            (text(ipython(flags(&["1"]), &owner).await), "`ipython` without a server", "`gloveport session ipython`"),
            (text(serve(flags(&[]), &owner).await), "`serve`", "`gloveport session env` names it"),
            (text(plugin(flags(&["ls"]), &owner).await), "`plugin`", "a container that has gloveport"),
            (text(keep(flags(&["--count", "1"])).await), "the runtime `local`", "use --runtime docker"),
            (
                text(Files::list(String::new(), true).await),
                "a command for the files of this machine",
                "`edit` and `cp`",
            ),
            (
                text(copy(End::Stream, End::Stream, &Progress::new(false)).await),
                "a copy from this machine to itself",
                "`gloveport session cp`",
            ),
        ] {
            assert!(text.starts_with(&format!("{begin} needs Linux; ")) && text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn the_servers_of_sandboxes_are_refused_whatever_their_flags() {
        #[derive(Debug, Parser)]
        struct Cli {
            #[command(subcommand)]
            command: Inside,
        }
        Cli::command().debug_assert();
        for words in ["action-execution-server 3000 --working-dir /workspace", "gate --x", "container-server"] {
            let words = ["gloveport"].into_iter().chain(words.split(' '));
            let cli = Cli::from_arg_matches(&Cli::command().get_matches_from(words)).unwrap();
            assert!(text(inside(cli.command)).starts_with("the server of a sandbox needs Linux; "));
        }
    }

    #[tokio::test]
    async fn what_linux_alone_has_is_not_there() {
        fn is_default<T: Default + PartialEq + Debug>(value: &T) {
            assert_eq!(*value, T::default());
        }
        let context = providers::context().unwrap();
        is_default(&sessions(&context, true));
        is_default(&plugin_names());
        is_default(&known_key("http://127.0.0.1:8000"));
        is_default(&memory());
        is_default(&count_waiting(&context).await);
        is_default(&end_waiting(&context).await.unwrap());
        refill_waiting(LOCAL, &context).await;
        assert!(begin().is_none() && !command_line().is_empty() && system().contains(" on "));
        hide();
        let checks = checks(Owner::start()).await;
        assert!(checks.iter().all(|check| check.verdict == Verdict::Ok && check.found.contains("--runtime docker")));
        // No small program lies beside a test.
        assert!(image_program().unwrap_err().to_string().contains("--binary"));
    }

    #[test]
    fn the_runtime_of_this_machine_says_why_it_is_missing_and_is_not_asked_for_its_sandboxes() {
        let mut registry = Registry::new();
        register(&mut registry);
        let error = registry.make(LOCAL, &providers::context().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with("the runtime `local` has no support for this system, because"), "{error}");
        assert!(error.contains("use `--runtime docker`"), "{error}");
        assert!(!can_host(LOCAL) && can_host(DEFAULT_RUNTIME) && can_host("exec"));
    }
}
