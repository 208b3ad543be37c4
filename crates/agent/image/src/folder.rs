//! The folder that an image is built from (`docker-runtime` §14).
//!
//! | path | what |
//! |---|---|
//! | `Dockerfile` | the instructions |
//! | `code/openhands/bin/gloveport` | our program |
//! | `code/openhands/micromamba/bin/micromamba` | a link to it, where OpenHands 0.62 looks for its launcher |
//! | `code/openhands-ARCHITECTURE/` | the same, for each of several platforms |
//! | `links/` | our program by the names of other servers, for `/usr/local/bin` |
//! | `setup/` | what the steps run and read |

use std::{
    fs,
    path::{Path, PathBuf, absolute},
};

use gloveport_platform::{link_to_file, set_mode};

use crate::{
    base::ImageName,
    digest::Fingerprint,
    error::ImageError,
    naming::{Names, Naming},
    platform::{Platform, architecture_of},
    recipe::{BuildFrom, Recipe},
};

/// The programs that go into images: one, or one for each platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    files: Vec<(&'static str, PathBuf)>,
}

impl Programs {
    /// The programs in these files, each known by the architecture it is for.
    pub fn new(files: &[PathBuf]) -> Result<Self, ImageError> {
        let mut known: Vec<(&'static str, PathBuf)> = Vec::new();
        for file in files {
            let architecture = architecture_of(file)?;
            if let Some((_, other)) = known.iter().find(|(name, _)| *name == architecture) {
                let reason = format!("{} is also for {architecture}", other.display());
                return Err(ImageError::Program { path: file.clone(), reason });
            }
            known.push((architecture, file.clone()));
        }
        Ok(Self { files: known })
    }

    /// The program for a platform; the only one if none is named.
    fn for_platform(&self, platform: Option<&Platform>) -> Result<&Path, ImageError> {
        let found = match platform {
            None => self.files.first(),
            Some(platform) => self.files.iter().find(|(name, _)| *name == platform.architecture()),
        };
        found.map(|(_, file)| file.as_path()).ok_or_else(|| {
            let there = self.files.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            ImageError::Value {
                what: "the platform",
                value: platform.map(Platform::to_string).unwrap_or_default(),
                reason: format!("there are programs for {there} only; name one for it with --binary"),
            }
        })
    }
}

/// What is in an image.
#[derive(Debug, Clone)]
pub enum Contents {
    /// A sandbox.
    Sandbox(Box<Recipe>),
    /// Our program alone, without a base.
    Program {
        /// The user that it runs as; root if none is named.
        user: Option<u32>,
        /// What it is built for.
        platforms: Vec<Platform>,
    },
}

impl Contents {
    /// What it is built for; that of the engine if there are none.
    pub fn platforms(&self) -> &[Platform] {
        match self {
            Self::Sandbox(recipe) => &recipe.platforms,
            Self::Program { platforms, .. } => platforms,
        }
    }
}

/// The three names of a sandbox image (12.2). The source hash is that of the folder `code`.
pub fn names(naming: &Naming, recipe: &Recipe, programs: &Programs) -> Result<Names, ImageError> {
    recipe.check()?;
    let folder = tempfile::tempdir().map_err(ImageError::folder("make a folder in", std::env::temp_dir()))?;
    let code = folder.path().join("code");
    write_programs(&code, &recipe.platforms, programs, Put::Link)?;
    let source = Fingerprint::of_directory(&code).map_err(ImageError::folder("hash", &code))?;
    let inputs = recipe.lock_inputs();
    let inputs: Vec<&[u8]> = inputs.iter().map(String::as_bytes).collect();
    Ok(naming.names(&recipe.base, recipe.browser, &inputs, source))
}

/// Fills an empty folder.
pub fn prepare(
    folder: &Path,
    contents: &Contents,
    from: BuildFrom,
    base: &ImageName,
    programs: &Programs,
) -> Result<(), ImageError> {
    match contents {
        Contents::Sandbox(recipe) => {
            recipe.check()?;
            write(&folder.join("Dockerfile"), &recipe.dockerfile(from, base.as_str()))?;
            write_programs(&folder.join("code"), &recipe.platforms, programs, Put::Copy)?;
            write_links(&folder.join("links"))?;
            if from != BuildFrom::Lock {
                for (name, text) in recipe.setup_files() {
                    write(&folder.join("setup").join(name), &text)?;
                }
            }
        }
        Contents::Program { user, platforms } => {
            write(&folder.join("Dockerfile"), &program_dockerfile(*user, platforms))?;
            let temporary = folder.join("root/tmp");
            directory(&temporary)?;
            set_mode(&temporary, 0o1777).map_err(ImageError::folder("change", &temporary))?;
            write_programs(&folder.join("code"), platforms, programs, Put::Copy)?;
        }
    }
    Ok(())
}

fn program_dockerfile(user: Option<u32>, platforms: &[Platform]) -> String {
    let (argument, suffix) = if platforms.len() > 1 { ("ARG TARGETARCH\n", "-${TARGETARCH}") } else { ("", "") };
    let user = user.map(|user| format!("USER {user}:{user}\n")).unwrap_or_default();
    format!(
        "# gloveport, and nothing else.\nFROM scratch\n{argument}COPY root/ /\nCOPY code/openhands{suffix}/bin/gloveport \
         /gloveport\nENV HOME=/tmp\n{user}ENTRYPOINT [\"/gloveport\"]\nLABEL dev.gloveport.image.version=\"{}\"\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// How a program gets into the folder.
#[derive(Clone, Copy)]
enum Put {
    /// To be copied into an image.
    Copy,
    /// To be read.
    Link,
}

fn write_programs(code: &Path, platforms: &[Platform], programs: &Programs, put: Put) -> Result<(), ImageError> {
    match platforms {
        [] => write_program(&code.join("openhands"), programs.for_platform(None)?, put),
        [platform] => write_program(&code.join("openhands"), programs.for_platform(Some(platform))?, put),
        several => several.iter().try_for_each(|platform| {
            let root = code.join(format!("openhands-{}", platform.architecture()));
            write_program(&root, programs.for_platform(Some(platform))?, put)
        }),
    }
}

fn write_program(root: &Path, program: &Path, put: Put) -> Result<(), ImageError> {
    let ours = root.join("bin/gloveport");
    let launcher = root.join("micromamba/bin/micromamba");
    for file in [&ours, &launcher] {
        directory(file.parent().unwrap_or(root))?;
    }
    match put {
        Put::Copy => {
            fs::copy(program, &ours).map_err(ImageError::folder("copy the program to", &ours))?;
            set_mode(&ours, 0o755).map_err(ImageError::folder("change", &ours))?;
        }
        Put::Link => {
            let program = absolute(program).map_err(ImageError::folder("find", program))?;
            link_to_file(&program, &ours).map_err(ImageError::folder("link", &ours))?;
        }
    }
    link_to_file(Path::new("../../bin/gloveport"), &launcher).map_err(ImageError::folder("link", &launcher))
}

/// Names of other servers that our program answers to, and its own.
const NAMES: [&str; 4] = ["agent-server", "gloveport", "openhands-agent-server", "swerex-remote"];

fn write_links(folder: &Path) -> Result<(), ImageError> {
    directory(folder)?;
    NAMES.iter().try_for_each(|name| {
        let link = folder.join(name);
        link_to_file(Path::new("/openhands/bin/gloveport"), &link).map_err(ImageError::folder("link", &link))
    })
}

fn directory(path: &Path) -> Result<(), ImageError> {
    fs::create_dir_all(path).map_err(ImageError::folder("make the folder", path))
}

fn write(path: &Path, text: &str) -> Result<(), ImageError> {
    directory(path.parent().unwrap_or(Path::new("/")))?;
    fs::write(path, text).map_err(ImageError::folder("write", path))
}

/// A user id from a user's words; only numbers mean anything where there is no user database.
pub fn user_id(name: &str) -> Result<u32, ImageError> {
    name.parse().map_err(|_not_a_number| ImageError::Value {
        what: "the user",
        value: name.escape_debug().to_string(),
        reason: "an image with nothing but our program has no names of users; give a number".into(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn programs() -> Programs {
        Programs::new(&[std::env::current_exe().unwrap()]).unwrap()
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut rest = vec![folder.to_path_buf()];
        while let Some(directory) = rest.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    rest.push(path);
                } else {
                    found.push(path.strip_prefix(folder).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_folder_has_what_the_instructions_copy() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = Recipe { jupyter: true, ..Recipe::new("debian:12".parse().unwrap()) };
        let base = recipe.base.clone();
        prepare(folder.path(), &Contents::Sandbox(Box::new(recipe)), BuildFrom::Scratch, &base, &programs()).unwrap();
        let expected = [
            "Dockerfile",
            "code/openhands/bin/gloveport",
            "code/openhands/micromamba/bin/micromamba",
            "links/agent-server",
            "links/gloveport",
            "links/openhands-agent-server",
            "links/swerex-remote",
            "setup/requirements.txt",
            "setup/setup.sh",
        ];
        assert_eq!(files(folder.path()), expected);
        let launcher = fs::read_link(folder.path().join(expected[2])).unwrap();
        assert_eq!(launcher, Path::new("../../bin/gloveport"));
    }

    #[test]
    fn the_image_of_our_program_has_no_base_and_a_place_for_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::Program { user: Some(1000), platforms: Vec::new() };
        let base = "scratch".parse().unwrap();
        prepare(folder.path(), &contents, BuildFrom::Scratch, &base, &programs()).unwrap();
        let text = fs::read_to_string(folder.path().join("Dockerfile")).unwrap();
        assert!(text.contains("FROM scratch\n") && text.contains("USER 1000:1000\nENTRYPOINT [\"/gloveport\"]\n"));
        let mode = fs::metadata(folder.path().join("root/tmp")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
    }

    #[test]
    fn a_platform_without_a_program_is_an_error() {
        let platform: Platform = "linux/s390x".parse().unwrap();
        let error = programs().for_platform(Some(&platform)).unwrap_err().to_string();
        assert!(error.contains("--binary"), "{error}");
        let own = std::env::current_exe().unwrap();
        assert!(Programs::new(&[own.clone(), own]).is_err());
    }

    #[test]
    fn names_follow_recipe_and_program() {
        let naming = Naming::new(None).unwrap();
        let recipe = Recipe::new("debian:12".parse().unwrap());
        let first = names(&naming, &recipe, &programs()).unwrap();
        assert_eq!(first, names(&naming, &recipe, &programs()).unwrap());
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::copy(std::env::current_exe().unwrap(), other.path()).unwrap();
        std::io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(other.path()).unwrap(), b"x").unwrap();
        let second = names(&naming, &recipe, &Programs::new(&[other.path().to_path_buf()]).unwrap()).unwrap();
        assert_eq!((&first.lock, &first.versioned), (&second.lock, &second.versioned));
        assert_ne!(first.source, second.source);
        assert!(first.source.starts_with(&format!("{}_", first.lock)));
    }
}
