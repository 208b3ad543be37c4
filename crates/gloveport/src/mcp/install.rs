//! `gloveport mcp install` and `uninstall`: our entry in the configuration of MCP clients.

use std::{env, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use gloveport_mcp_install::{Change, Entry, Homes, Scope};
use serde_json::json;

use super::arguments::{EntryArgs, InstallArgs, ServeArgs, UninstallArgs};
use crate::{
    approve::confirm,
    exit::WRONG_COMMAND_LINE,
    names::LOCAL,
    output::{print, print_json, tell},
};

/// What a project's file calls this program: others have it elsewhere.
const PROGRAM: &str = "gloveport";

pub(super) async fn install(arguments: &InstallArgs) -> anyhow::Result<ExitCode> {
    let InstallArgs { entry: what, print: only_print, flags } = arguments;
    let serve = match served(flags) {
        Ok(serve) => serve,
        Err(error) => {
            tell(&format!("gloveport: behind `--` are the flags of `gloveport mcp`\n{error}"));
            return Ok(ExitCode::from(WRONG_COMMAND_LINE));
        }
    };
    if !what.project {
        starts_anywhere(&serve)?;
    }
    let program = if what.project {
        PROGRAM.to_owned()
    } else {
        let path = env::current_exe().context("cannot find this program's file")?;
        path.into_os_string().into_string().ok().context("the path of this program is not UTF-8")?
    };
    let args = [&["mcp".to_owned()], flags.as_slice()].concat();
    let entry = Entry { name: what.name.clone(), command: program, args, ..Entry::default() };
    let file = file(what)?;
    if *only_print {
        let snippet = gloveport_mcp_install::snippet(what.program, &entry);
        if what.json {
            print_json(&json!({"file": file, "text": snippet}))?;
        } else {
            tell(&format!("for {}:", file.display()));
            print(&snippet)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let isolates = serve.session.is_some() || serve.url.is_some();
    if !isolates && serve.runtime.as_deref().is_none_or(|runtime| runtime == LOCAL) {
        tell(
            "note: the runtime `local` has no isolation: the model works on this machine as you; `-- --runtime docker` gives it a container",
        );
    }
    let change = gloveport_mcp_install::install(what.program, &file, &entry)?;
    apply(what, &change, "it is there already").await
}

pub(super) async fn uninstall(arguments: &UninstallArgs) -> anyhow::Result<ExitCode> {
    let what = &arguments.entry;
    let change = gloveport_mcp_install::uninstall(what.program, &file(what)?, &what.name)?;
    apply(what, &change, "it is not there").await
}

/// The flags of `gloveport mcp`, or what is wrong with them.
fn served(flags: &[String]) -> Result<ServeArgs, clap::Error> {
    let command = ServeArgs::augment_args(clap::Command::new("gloveport mcp"));
    let words = ["gloveport mcp"].into_iter().chain(flags.iter().map(String::as_str));
    ServeArgs::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// A client starts its servers in whichever directory it likes.
fn starts_anywhere(serve: &ServeArgs) -> anyhow::Result<()> {
    for (flag, path) in [("--workspace", serve.make.workspace()), ("--key-file", serve.key_file.as_deref())] {
        if let Some(path) = path.filter(|path| path.is_relative()) {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| Path::new("/").join(path));
            anyhow::bail!(
                "{flag} {} is relative, and the client starts the server in any directory; write {flag} {}",
                path.display(),
                absolute.display()
            );
        }
    }
    Ok(())
}

fn file(what: &EntryArgs) -> anyhow::Result<std::path::PathBuf> {
    let scope = if what.project { Scope::Project(env::current_dir()?) } else { Scope::User };
    Ok(what.program.file(&scope, &Homes::new(|name| env::var_os(name)))?)
}

/// Shows what changes, asks, and writes it.
async fn apply(what: &EntryArgs, change: &Change, nothing: &str) -> anyhow::Result<ExitCode> {
    let (file, program) = (change.file.display(), what.program.title());
    let is_changed = !change.is_empty();
    if what.json {
        if what.yes {
            change.apply()?;
        }
        let written = is_changed && what.yes;
        print_json(&json!({"file": change.file, "changed": is_changed, "written": written, "diff": change.diff()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !is_changed {
        print(&format!("{file}: nothing changes, {nothing}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&change.diff())?;
    if !what.yes {
        match confirm(&format!("Write this to {file}? [y/N] ")).await {
            Some(true) => {}
            Some(false) => {
                tell("gloveport: nothing was written");
                return Ok(ExitCode::FAILURE);
            }
            None => anyhow::bail!("there is no terminal to ask at, so nothing was written; --yes writes it"),
        }
    }
    change.apply()?;
    tell(&format!("{file} is written; {program} sees it when it starts the next time"));
    Ok(ExitCode::SUCCESS)
}
