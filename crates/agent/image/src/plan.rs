//! What is built, and from what (`docker-runtime` §13).

use std::path::{Path, PathBuf};

use crate::{
    base::ImageName,
    blocking::blocking,
    builder::{BuildRequest, ImageBuilder, Lookup, Progress},
    error::ImageError,
    folder::{self, Contents, Programs},
    naming::{Names, Naming},
    recipe::{BuildFrom, Recipe},
};

/// Whether what is there already is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Images that are there are used, and begun with.
    Existing,
    /// All is built from the base, and the names are moved to it.
    Nothing,
}

/// What has to be done for an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is there.
    Exists,
    /// It has to be built.
    Build {
        /// What from.
        from: BuildFrom,
        /// The image that the Dockerfile begins with.
        base: String,
        /// The names it gets.
        names: Vec<String>,
    },
}

/// An image that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The name to run it by.
    pub image: String,
    /// All its names.
    pub names: Names,
    /// What it was built from; nothing if it was there.
    pub from: Option<BuildFrom>,
    /// The names that the build gave.
    pub given: Vec<String>,
}

/// How an image is built.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// What it is called.
    pub naming: &'a Naming,
    /// What it is made of.
    pub recipe: &'a Recipe,
    /// The programs that go into it.
    pub programs: &'a Programs,
    /// Whether what is there is used.
    pub reuse: Reuse,
    /// More arguments for the builder.
    pub extra_arguments: &'a [String],
}

/// Decides by the table of §13. When nothing is reused, all names are kept, so that they move to the new image.
pub async fn decide(
    job: &Job<'_>,
    names: &Names,
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> Result<Decision, ImageError> {
    let base = job.recipe.base.as_str().to_owned();
    let all = vec![names.source.clone(), names.lock.clone(), names.versioned.clone()];
    if job.reuse == Reuse::Nothing {
        return Ok(Decision::Build { from: BuildFrom::Scratch, base, names: all });
    }
    let lookup = if job.naming.may_pull() { Lookup::Registry } else { Lookup::Here };
    if builder.image_exists(&names.source, Lookup::Here, progress).await? {
        return Ok(Decision::Exists);
    }
    let (from, base, wanted) = if builder.image_exists(&names.lock, lookup, progress).await? {
        (BuildFrom::Lock, names.lock.clone(), all.get(..2).unwrap_or_default().to_vec())
    } else if builder.image_exists(&names.versioned, lookup, progress).await? {
        (BuildFrom::Versioned, names.versioned.clone(), all.get(..2).unwrap_or_default().to_vec())
    } else {
        (BuildFrom::Scratch, base, all)
    };
    let mut missing = Vec::new();
    for name in wanted {
        if !builder.image_exists(&name, Lookup::Here, progress).await? {
            missing.push(name);
        }
    }
    // Somebody else may have built it since it was looked for.
    if missing.is_empty() { Ok(Decision::Exists) } else { Ok(Decision::Build { from, base, names: missing }) }
}

/// Builds the image of a recipe where it is not there yet. `more` are further names that it gets in any case.
pub async fn build(
    job: &Job<'_>,
    more: &[String],
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> Result<Built, ImageError> {
    let names = names_of(job).await?;
    let (from, base, mut given) = match decide(job, &names, builder, progress).await? {
        Decision::Exists => {
            for name in more {
                builder.tag(&names.source, name).await?;
            }
            return Ok(Built { image: names.source.clone(), names, from: None, given: more.to_vec() });
        }
        Decision::Build { from, base, names } => (from, base, names),
    };
    given.extend(more.iter().cloned());
    progress.tell(&format!("building {} from {base}", names.source));
    let contents = Contents::Sandbox(Box::new(job.recipe.clone()));
    let image = build_contents(&contents, from, &base.parse()?, &given, job, builder, progress).await?;
    Ok(Built { image, names, from: Some(from), given })
}

/// Builds our program's own image, always.
pub async fn build_program(
    contents: &Contents,
    names: &[String],
    job: &Job<'_>,
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> Result<String, ImageError> {
    let scratch = "scratch".parse()?;
    build_contents(contents, BuildFrom::Scratch, &scratch, names, job, builder, progress).await
}

async fn build_contents(
    contents: &Contents,
    from: BuildFrom,
    base: &ImageName,
    names: &[String],
    job: &Job<'_>,
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> Result<String, ImageError> {
    let (files, base, programs) = (contents.clone(), base.clone(), job.programs.clone());
    let folder = blocking(move || {
        let folder = temporary_folder()?;
        folder::prepare(folder.path(), &files, from, &base, &programs)?;
        Ok(folder)
    })
    .await?;
    let request = BuildRequest {
        folder: folder.path(),
        names,
        platforms: contents.platforms(),
        extra_arguments: job.extra_arguments,
    };
    builder.build(&request, progress).await
}

/// Prepares a folder as a build would have it, and builds nothing. Answers the names.
pub async fn prepare(
    job: &Job<'_>,
    path: &Path,
    builder: &impl ImageBuilder,
    progress: &Progress,
) -> Result<Names, ImageError> {
    let names = names_of(job).await?;
    let (from, base) = match decide(job, &names, builder, progress).await? {
        // The folder is wanted, whether the image is there or not.
        Decision::Exists => (BuildFrom::Scratch, job.recipe.base.clone()),
        Decision::Build { from, base, .. } => (from, base.parse()?),
    };
    let contents = Contents::Sandbox(Box::new(job.recipe.clone()));
    let (path, programs): (PathBuf, _) = (path.into(), job.programs.clone());
    blocking(move || folder::prepare(&path, &contents, from, &base, &programs)).await?;
    Ok(names)
}

async fn names_of(job: &Job<'_>) -> Result<Names, ImageError> {
    let (naming, recipe, programs) = (job.naming.clone(), job.recipe.clone(), job.programs.clone());
    blocking(move || folder::names(&naming, &recipe, &programs)).await
}

fn temporary_folder() -> Result<tempfile::TempDir, ImageError> {
    tempfile::Builder::new()
        .prefix("gloveport-build-")
        .tempdir()
        .map_err(ImageError::folder("make a folder in", std::env::temp_dir()))
}
