//! `gloveport image build`.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_config::Config;
use gloveport_image::{
    BuildLimits, Built, Contents, DockerOptions, ImageBuilder, ImageName, Job, Method, Naming, Progress, Recipe, Reuse,
    build as build_sandbox, build_program, prepare, user_id,
};
use serde_json::json;

use super::{
    Settings,
    arguments::{BuildArgs, BuildKit, BuilderKind},
    docker, naming, remote,
    report::Report,
};
use crate::output::{print, print_json};

pub(super) async fn build(arguments: &BuildArgs) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    for name in &arguments.tags {
        name.parse::<ImageName>()?;
    }
    let report = Report::new(arguments.quiet);
    let progress = report.progress();
    let done = match arguments.builder.builder {
        BuilderKind::Docker => {
            let builder = docker(&arguments.builder, &settings, docker_options(arguments))?;
            Box::pin(with(&builder, naming(&settings, None)?, arguments, &settings.config, &progress)).await?
        }
        BuilderKind::Remote => {
            let builder = remote(&arguments.builder, &settings.config)?;
            let repository = builder.repository().await?;
            Box::pin(with(&builder, naming(&settings, Some(&repository))?, arguments, &settings.config, &progress))
                .await?
        }
    };
    let took = report.finish();
    if arguments.json {
        let mut value = done.json;
        if let Some(map) = value.as_object_mut() {
            map.insert("seconds".into(), json!(took.as_secs_f64()));
        }
        print_json(&value)?;
    } else {
        print(&format!("{}\n", done.text))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is printed.
struct Done {
    text: String,
    json: serde_json::Value,
}

fn docker_options(arguments: &BuildArgs) -> DockerOptions {
    let mut limits = BuildLimits::default();
    if let Some(seconds) = arguments.timeout {
        limits.build = Duration::from_secs_f64(seconds);
    }
    let method = match arguments.buildkit {
        BuildKit::Auto => Method::Best,
        BuildKit::Always => Method::BuildKit,
        BuildKit::Never => Method::Engine,
    };
    DockerOptions { method, cache: arguments.cache_dir.clone(), limits, program: None }
}

async fn with(
    builder: &impl ImageBuilder,
    naming: Naming,
    arguments: &BuildArgs,
    config: &Config,
    progress: &Progress,
) -> anyhow::Result<Done> {
    let sandbox = &config.sandbox;
    let mut extra_arguments = sandbox.runtime_extra_build_args.clone().unwrap_or_default();
    extra_arguments.extend(arguments.extra_arguments.iter().cloned());
    let recipe = if arguments.scratch {
        Recipe { platforms: arguments.recipe.platforms(sandbox)?, ..Recipe::plain("scratch".parse()?) }
    } else {
        arguments.recipe.recipe(sandbox)?
    };
    let programs = arguments.recipe.programs()?;
    let reuse = if arguments.force || sandbox.force_rebuild_runtime { Reuse::Nothing } else { Reuse::Existing };
    let job = Job { naming: &naming, recipe: &recipe, programs: &programs, reuse, extra_arguments: &extra_arguments };
    if arguments.scratch {
        let user = arguments.recipe.user.as_deref().map(user_id).transpose()?;
        let contents = Contents::Program { user, platforms: recipe.platforms.clone() };
        let image = build_program(&contents, &arguments.tags, &job, builder, progress).await?;
        return Ok(Done { json: json!({ "image": image, "tags": arguments.tags }), text: image });
    }
    if let Some(folder) = &arguments.build_folder {
        return into_folder(&job, folder, builder, progress).await;
    }
    let built = build_sandbox(&job, &arguments.tags, builder, progress).await?;
    Ok(Done { json: json_of(&built), text: built.image })
}

fn json_of(built: &Built) -> serde_json::Value {
    json!({
        "image": built.image,
        "source": built.names.source,
        "lock": built.names.lock,
        "versioned": built.names.versioned,
        "built_from": built.from.map(gloveport_image::BuildFrom::word),
        "tags": built.given,
    })
}

/// The dry run of the reference's helper: a folder that its build script takes (`docker-runtime` §17).
async fn into_folder(
    job: &Job<'_>,
    folder: &Path,
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> anyhow::Result<Done> {
    anyhow::ensure!(folder.is_dir(), "the build folder {} does not exist", folder.display());
    let fresh = tempfile::tempdir().context("cannot make a temporary folder")?;
    let names = prepare(job, fresh.path(), builder, progress).await?;
    copy(fresh.path(), folder)?;
    let generic = job.naming.generic(&job.recipe.base).tag;
    let source = names.source.rsplit(':').next().unwrap_or_default().to_owned();
    let path = folder.join("config.sh");
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| {
            file.write_all(format!("\nDOCKER_IMAGE_TAG={generic}\nDOCKER_IMAGE_SOURCE_TAG={source}\n").as_bytes())
        })
        .with_context(|| format!("cannot add the tags to {}", path.display()))?;
    Ok(Done {
        text: folder.display().to_string(),
        json: json!({ "folder": folder, "image": names.source, "tag": generic, "source_tag": source }),
    })
}

/// Copies a tree over another one. Links stay links.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let target = to.join(entry.file_name());
        let failed = || format!("cannot write {}", target.display());
        let kind = entry.file_type().with_context(failed)?;
        if kind.is_dir() {
            fs::create_dir_all(&target).with_context(failed)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            if target.symlink_metadata().is_ok() {
                fs::remove_file(&target).with_context(failed)?;
            }
            gloveport_platform::link_to_file(&fs::read_link(entry.path()).with_context(failed)?, &target)
                .with_context(failed)?;
        } else {
            fs::copy(entry.path(), &target).with_context(failed)?;
        }
    }
    Ok(())
}
