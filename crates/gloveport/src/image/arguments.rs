//! Flags of `gloveport image`, and what they mean.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gloveport_config::SandboxConfig;
use gloveport_image::{DEFAULT_USER, ImageName, Platform, Programs, Recipe, UserName, VsCode};

use crate::{here, session::values::limit};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Build an image with the program alone, without a base and a user database. Needs --tag.
    #[arg(long, requires = "tags", conflicts_with_all = ["base_image", "plain", "jupyter", "browser", "vscode", "extra_deps", "no_user", "build_folder"])]
    pub(crate) scratch: bool,
    /// Build it from the base, even if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// Another name for the image; may be repeated.
    #[arg(long = "tag", value_name = "NAME")]
    pub(crate) tags: Vec<String>,
    /// Build nothing: put the Dockerfile and everything that it needs into this folder, which must exist, and add the tags
    /// to its config.sh.
    #[arg(long, value_name = "FOLDER", conflicts_with = "tags")]
    pub(crate) build_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) builder: BuilderArgs,
    /// Whether to build with BuildKit, which needs Docker's command line with the plugin buildx.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) buildkit: BuildKit,
    /// Keep BuildKit's cache in this directory. Parts that are older than 7 days are removed.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Give up after this time, such as 90m; by default after an hour, or half an hour with a build service.
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(crate) timeout: Option<f64>,
    /// Print JSON at the end.
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print the output of the build.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Further arguments for `docker buildx build`, after those of sandbox.runtime_extra_build_args.
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) extra_arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TagArgs {
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExistsArgs {
    /// Name of the image.
    pub(crate) name: String,
    /// Also look for it in its registry, and pull it from there.
    #[arg(long)]
    pub(crate) pull: bool,
    #[command(flatten)]
    pub(crate) builder: BuilderArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BuilderArgs {
    /// What builds the image, and knows which images exist.
    #[arg(long, value_name = "NAME", default_value = "docker")]
    pub(crate) builder: BuilderKind,
    /// The Docker engine; by default the one that DOCKER_HOST or the current context names.
    #[arg(long = "docker-host", value_name = "ADDRESS")]
    pub(crate) host: Option<String>,
    /// The build service; by default sandbox.remote_runtime_api_url. Its key is sandbox.api_key.
    #[arg(long, value_name = "URL")]
    pub(crate) api_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuilderKind {
    /// A Docker engine, or Podman's.
    Docker,
    /// A build service of the Remote Runtime API.
    Remote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildKit {
    /// With BuildKit if it is available.
    Auto,
    /// With BuildKit, or fail.
    Always,
    /// Without BuildKit, by the engine itself.
    Never,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RecipeArgs {
    /// The image to start from; by default sandbox.base_container_image.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) base_image: Option<String>,
    /// Commands that run once, as the image's user; by default sandbox.runtime_extra_deps.
    #[arg(long, value_name = "COMMANDS")]
    pub(crate) extra_deps: Option<String>,
    /// Add IPython, and the libraries with which AgentSkills read documents.
    #[arg(long)]
    pub(crate) jupyter: bool,
    /// Add Chromium.
    #[arg(long)]
    pub(crate) browser: bool,
    /// Add the server of VS Code: `npm` builds it from the npm registry, a URL names an archive with bin/openvscode-server.
    #[arg(long, value_name = "npm|URL", num_args = 0..=1, default_missing_value = "npm")]
    pub(crate) vscode: Option<String>,
    /// The user that tools can work as; with --scratch, a number.
    #[arg(long, value_name = "NAME", conflicts_with = "no_user")]
    pub(crate) user: Option<String>,
    /// Create no user.
    #[arg(long)]
    pub(crate) no_user: bool,
    /// Add only the program. No command runs in the base, so the base needs no shell.
    #[arg(long, conflicts_with_all = ["jupyter", "browser", "vscode", "user", "extra_deps"])]
    pub(crate) plain: bool,
    /// Platforms to build for, separated by commas, for example linux/arm64. By default sandbox.platform, or the engine's
    /// own.
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    pub(crate) platform: Vec<String>,
    /// The program to put into the image, one for each platform; by default this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Vec<PathBuf>,
}

impl RecipeArgs {
    /// What the flags mean; what they leave open the configuration says.
    pub(crate) fn recipe(&self, config: &SandboxConfig) -> anyhow::Result<Recipe> {
        let base: ImageName = self.base_image.as_deref().unwrap_or(config.base_image()).parse()?;
        if self.plain {
            return Ok(Recipe { platforms: self.platforms(config)?, ..Recipe::plain(base) });
        }
        let extra = self.extra_deps.as_ref().or(config.runtime_extra_deps.as_ref()).filter(|text| !text.is_empty());
        let user: UserName = self.user.as_deref().unwrap_or(DEFAULT_USER).parse()?;
        let recipe = Recipe {
            user: (!self.no_user).then_some(user),
            jupyter: self.jupyter,
            browser: self.browser,
            vscode: self.vscode.as_deref().map(str::parse::<VsCode>).transpose()?,
            extra: extra.map(|text| text.parse()).transpose()?,
            platforms: self.platforms(config)?,
            ..Recipe::new(base)
        };
        recipe.check()?;
        Ok(recipe)
    }

    pub(crate) fn platforms(&self, config: &SandboxConfig) -> anyhow::Result<Vec<Platform>> {
        let configured = config.platform.as_ref().filter(|text| !text.is_empty());
        let words = if self.platform.is_empty() {
            configured.into_iter().collect()
        } else {
            self.platform.iter().collect::<Vec<_>>()
        };
        Ok(words.into_iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
    }

    /// The programs that go into the image.
    pub(crate) fn programs(&self) -> anyhow::Result<Programs> {
        if self.binary.is_empty() {
            return Ok(Programs::new(&[here::image_program()?])?);
        }
        Ok(Programs::new(&self.binary)?)
    }
}

/// An image for sandboxes of this machine.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Its name, such as python:3.13-slim or ghcr.io/owner/name@sha256:…; or oci:DIRECTORY[:TAG], oci-archive:FILE or
    /// docker-archive:FILE for one in a directory or a file.
    #[arg(value_name = "IMAGE")]
    pub(crate) image: String,
    /// Print what it is as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The images, by a name or the digest that `image ls` shows.
    #[arg(value_name = "IMAGE", required = true)]
    pub(crate) images: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
