//! The file that is put into sandboxes.

use std::{fs, io, path::PathBuf};

use gloveport_provider::{Check, ProviderError};
use sha2::{Digest as _, Sha256};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::fault::failed;

/// The file that is put into sandboxes.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    /// The digest of its content, once it was read.
    digest: OnceCell<String>,
}

impl Program {
    /// This file. It is not read yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, digest: OnceCell::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The SHA-256 of its content, in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn digest(&self) -> Result<&str, ProviderError> {
        let read = self.digest.get_or_try_init(async || {
            let digest = Sha256::digest(self.read().await?);
            Ok::<_, ProviderError>(gloveport_ids::hex(&digest))
        });
        read.await.map(String::as_str)
    }

    /// Its name in sandboxes. It follows from the content, so that no sandbox runs one of another build.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn name(&self) -> Result<String, ProviderError> {
        let digest = self.digest().await?;
        Ok(format!("gloveport-{}", digest.get(..16).unwrap_or(digest)))
    }

    /// Its content. It is read for each upload: it is large, and uploads are rare.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no program for Linux.
    pub async fn read(&self) -> Result<Vec<u8>, ProviderError> {
        let path = self.path.clone();
        let unreadable =
            |path: PathBuf, source| ProviderError::File { action: "read the program for sandboxes,", path, source };
        let read = spawn_blocking(move || {
            let is_elf = gloveport_provider::program::is_for_containers(&path);
            let wrong =
                || io::Error::new(io::ErrorKind::InvalidData, "it is no program for Linux, which sandboxes are");
            let content = is_elf.and_then(|is_elf| if is_elf { fs::read(&path) } else { Err(wrong()) });
            content.map_err(|source| unreadable(path, source))
        });
        read.await.map_err(|error| failed("this machine", "read the program for sandboxes", error))?
    }

    /// Whether it can be put into sandboxes, for people.
    pub fn check(&self) -> Check {
        let (path, name) = (&self.path, "program for sandboxes".to_owned());
        let is_for_linux = gloveport_provider::program::is_for_containers(path);
        let length = fs::metadata(path).map(|meta| meta.len());
        match is_for_linux.and_then(|is_for_linux| Ok((is_for_linux, length?))) {
            Ok((true, length)) => {
                let found = format!("{}, {} MB to upload", path.display(), length / 1_000_000);
                Check { name, works: true, found, remedy: None }
            }
            Ok((false, _)) => {
                let remedy = Some("put the program gloveport-sandbox for Linux beside this one".to_owned());
                Check { name, works: false, found: format!("{} is not for Linux", path.display()), remedy }
            }
            Err(error) => {
                let remedy = Some("install gloveport where it may be read".to_owned());
                Check { name, works: false, found: format!("{}: {error}", path.display()), remedy }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_name_of_the_program_follows_from_its_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let program = Program::new(file.path().to_owned());
        assert_eq!(program.name().await.unwrap(), "gloveport-ba7816bf8f01cfea");
        assert!(program.check().works && program.digest().await.unwrap().len() == 64);
        let missing = Program::new("/nonexistent/program".into());
        let error = missing.name().await.unwrap_err().to_string();
        assert!(error.contains("cannot read the program for sandboxes, /nonexistent/program"), "{error}");
        assert!(!missing.check().works);
    }
}
