//! The program that changes the DNS: `PROGRAM add|remove NAME VALUE`. It returns when the record can be seen everywhere.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, copy, sink},
    process::Command,
    time::timeout,
};

use crate::AcmeError;

/// Time for one change.
const LIMIT: Duration = Duration::from_mins(5);
/// What of its standard error is shown at most, from its begin.
const SHOWN: u64 = 2000;

/// A record that is, or was, in the DNS.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Has a record added to those of its name, or removed.
pub(crate) async fn change(program: &Path, verb: &'static str, record: &Record) -> Result<(), AcmeError> {
    let failed =
        |reason: String| AcmeError::Hook { program: program.to_owned(), verb, name: record.name.clone(), reason };
    let mut child = Command::new(program)
        .args([verb, &record.name, &record.value])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let errors = child.stderr.take();
    let work = async {
        let mut said = Vec::new();
        if let Some(mut errors) = errors {
            (&mut errors).take(SHOWN).read_to_end(&mut said).await?;
            // What is more must not make it wait.
            copy(&mut errors, &mut sink()).await?;
        }
        Ok::<_, std::io::Error>((child.wait().await?, said))
    };
    let (status, said) = timeout(LIMIT, work)
        .await
        .map_err(|_| failed(format!("took longer than {} s", LIMIT.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(format!("failed, {status}: {}", String::from_utf8_lossy(&said).trim())))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[tokio::test]
    async fn the_program_gets_the_record_and_what_it_says_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("hook");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = add ] || {{ echo no such zone >&2; exit 3; }}\necho \"$2 $3\" > {}/seen\n",
            directory.path().display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let record = Record { name: "_acme-challenge.example.org".to_owned(), value: "abc".to_owned() };
        change(&program, "add", &record).await.unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("seen")).unwrap(), "_acme-challenge.example.org abc\n");
        let error = change(&program, "remove", &record).await.unwrap_err().to_string();
        assert!(error.ends_with("exit status: 3: no such zone"), "{error}");
        let error = change(Path::new("/no/such"), "add", &record).await.unwrap_err().to_string();
        assert!(error.starts_with("`/no/such add _acme-challenge.example.org` cannot be started"), "{error}");
    }
}
