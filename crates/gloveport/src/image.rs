//! `gloveport image`: builds images of sandboxes, tells what they are called, and keeps those for sandboxes of this machine.

pub(crate) mod arguments;
mod build;
mod report;

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gloveport_client::{Certificates, Pool};
use gloveport_config::{Config, LoadOptions};
use gloveport_docker_engine::{Endpoint, Engine};
use gloveport_image::{
    DockerBuilder, DockerOptions, ImageBuilder as _, ImageName, Lookup, Naming, Progress, REPOSITORY_VARIABLE,
    RemoteBuilder, RemoteTimes, names,
};
use serde_json::json;

use crate::{
    exit::INTERRUPTED,
    here,
    image::arguments::{BuildArgs, BuilderArgs, BuilderKind, ExistsArgs, LsArgs, PullArgs, RmArgs, TagArgs},
    output::{print, print_json},
    signals,
};

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted.";
const EXISTS_CODES: &str =
    "Exit codes: 0 it exists, 3 it does not, 1 unknown because of an error, 2 wrong command line.";

const BUILD_EXAMPLES: &str = "Examples:\n  gloveport image build --base-image debian:12 --jupyter\n  \
    gloveport image build --base-image ubuntu:24.04 --extra-deps 'sudo apt-get install -y golang' -- --network=host\n  \
    gloveport image build --base-image busybox --plain --tag mine:latest\n  \
    gloveport image build --scratch --user 1000 --tag gloveport:latest\n  \
    gloveport image build --base-image debian:12 --build-folder containers/runtime\n\nExit codes: 0 done, 1 failed, \
    2 wrong command line, 130 interrupted.";

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    /// Build an image for sandboxes, unless it exists. Arguments after `--` go to the builder.
    #[command(after_help = BUILD_EXAMPLES)]
    Build(Box<BuildArgs>),
    /// Print the names that an image of a base would get. Builds nothing, and asks no engine.
    #[command(after_help = EXIT_CODES)]
    Tag(Box<TagArgs>),
    /// Check whether an image with this name exists.
    #[command(after_help = EXISTS_CODES)]
    Exists(ExistsArgs),
    /// Get an image for sandboxes of this machine (`--isolation container --image IMAGE`), without an engine.
    ///
    /// A sandbox gets its image itself if it is not there. This gets it ahead, or another one that has its name by now.
    #[command(after_help = EXIT_CODES)]
    Pull(PullArgs),
    /// List the images for sandboxes of this machine.
    #[command(visible_alias = "list", after_help = EXIT_CODES)]
    Ls(LsArgs),
    /// Delete images for sandboxes of this machine. One that a sandbox uses stays.
    #[command(visible_alias = "delete", after_help = EXIT_CODES)]
    Rm(RmArgs),
}

/// Exit code of `exists` for an image that is not there.
const ABSENT: u8 = 3;

pub(crate) async fn image(arguments: ImageArgs) -> anyhow::Result<ExitCode> {
    let stop = signals::stop()?;
    let work = async {
        match arguments.command {
            ImageCommand::Build(arguments) => Box::pin(build::build(&arguments)).await,
            ImageCommand::Tag(arguments) => tag(&arguments),
            ImageCommand::Exists(arguments) => Box::pin(exists(&arguments)).await,
            ImageCommand::Pull(arguments) => Box::pin(here::pull(&arguments)).await,
            ImageCommand::Ls(arguments) => here::list_images(&arguments),
            ImageCommand::Rm(arguments) => here::remove_images(&arguments),
        }
    };
    tokio::select! {
        done = work => done,
        // What is dropped is given up.
        () = stop.cancelled() => {
            tracing::warn!("interrupted, and given up");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn tag(arguments: &TagArgs) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    let recipe = arguments.recipe.recipe(&settings.config.sandbox)?;
    let programs = arguments.recipe.programs()?;
    let naming = naming(&settings, None)?;
    let names = names(&naming, &recipe, &programs)?;
    let generic = naming.generic(&recipe.base).name();
    if arguments.json {
        print_json(&json!({
            "source": names.source, "lock": names.lock, "versioned": names.versioned, "generic": generic,
        }))?;
    } else {
        print(&format!("{}\n{}\n{}\n{generic}\n", names.source, names.lock, names.versioned))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn exists(arguments: &ExistsArgs) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    let name: ImageName = arguments.name.parse()?;
    let progress = Progress::silent();
    let lookup = if arguments.pull { Lookup::Registry } else { Lookup::Here };
    let exists = match arguments.builder.builder {
        BuilderKind::Docker => {
            let builder = docker(&arguments.builder, &settings, DockerOptions::default())?;
            Box::pin(builder.image_exists(name.as_str(), lookup, &progress)).await?
        }
        BuilderKind::Remote => {
            remote(&arguments.builder, &settings.config)?.image_exists(name.as_str(), lookup, &progress).await?
        }
    };
    if arguments.json {
        print_json(&json!({ "image": name.as_str(), "exists": exists }))?;
    }
    Ok(if exists { ExitCode::SUCCESS } else { ExitCode::from(ABSENT) })
}

/// The names of images: in the repository of the service, or the one that the environment names.
fn naming(settings: &Settings, repository: Option<&str>) -> anyhow::Result<Naming> {
    let named = settings.environment.get(REPOSITORY_VARIABLE).map(String::as_str);
    Ok(Naming::new(repository.or(named))?)
}

/// The configuration, and the environment with the `.env` file.
struct Settings {
    config: Config,
    environment: BTreeMap<String, String>,
}

impl Settings {
    fn load() -> anyhow::Result<Self> {
        let loaded = Config::load(&LoadOptions::from_process()?)?;
        let environment = loaded.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Self { config: loaded.config, environment })
    }
}

/// A builder with the engine that the environment names.
fn docker(arguments: &BuilderArgs, settings: &Settings, options: DockerOptions) -> anyhow::Result<DockerBuilder> {
    let endpoint = match &arguments.host {
        Some(host) => Endpoint::at(host, "--docker-host")?,
        None => Endpoint::find(&settings.environment)?,
    };
    Ok(DockerBuilder::new(Arc::new(Engine::new(endpoint)), options))
}

/// A builder with the service that the configuration names.
fn remote(arguments: &BuilderArgs, config: &Config) -> anyhow::Result<RemoteBuilder> {
    let sandbox = &config.sandbox;
    let url = arguments.api_url.as_deref().or(sandbox.remote_runtime_api_url.as_deref());
    let url = url.context("no build service is named; give --api-url, or set sandbox.remote_runtime_api_url")?;
    let key = sandbox.api_key.as_ref().filter(|key| !key.is_empty());
    let key = key.context("the build service needs a key; set sandbox.api_key or SANDBOX_API_KEY")?;
    let http = Pool::new(Certificates::Checked)?.http().clone();
    Ok(RemoteBuilder::new(http, url, key.expose(), RemoteTimes::default())?)
}
