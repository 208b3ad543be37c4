//! Builds by BuildKit, through Docker's command line.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime},
};

use gloveport_docker_engine::{Address, Engine};
use gloveport_platform::group;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
    time::timeout,
};

use super::DockerOptions;
use crate::{
    arguments,
    builder::{BuildRequest, Progress},
    error::ImageError,
    lines::Lines,
};

/// For the question whether the plugin is there.
const QUESTION: Duration = Duration::from_secs(20);
/// For the end of a program that has closed its output.
const END: Duration = Duration::from_secs(30);
/// Parts of the cache that are older are removed.
const OLDEST_CACHE: Duration = Duration::from_hours(7 * 24);
/// Size of a piece of its output.
const PIECE: usize = 8192;
/// Where BuildKit keeps them, below the directory of the cache.
const BLOBS: &str = "blobs/sha256";

/// Why BuildKit cannot be used; nothing if it can.
pub(super) async fn missing(options: &DockerOptions) -> Option<String> {
    let program = program(options);
    let mut command = Command::new(&program);
    command
        .args(["buildx", "version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let name = program.display();
    match timeout(QUESTION, command.status()).await {
        Ok(Ok(status)) if status.success() => None,
        Ok(Ok(_)) => Some(format!("`{name} buildx version` fails: the plugin buildx is not installed")),
        Ok(Err(error)) => Some(format!("{name} cannot be started: {error}")),
        Err(_elapsed) => Some(format!("`{name} buildx version` did not end within {} s", QUESTION.as_secs())),
    }
}

/// Builds, and gives all names.
pub(super) async fn build(
    engine: &Engine,
    options: &DockerOptions,
    request: &BuildRequest<'_>,
    progress: &Progress,
) -> Result<(), ImageError> {
    let image = request.image()?;
    if let Some(cache) = &options.cache {
        tidy(cache)?;
    }
    let mut command = Command::new(program(options));
    command.args(words(request, options.cache.as_deref()));
    if let address @ (Address::Unix(_) | Address::Pipe(_)) = &engine.endpoint().address {
        command.env("DOCKER_HOST", address.to_string()).env_remove("DOCKER_CONTEXT");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group::lead(&mut command);
    let failed = |reason: String, log| ImageError::Build { image: image.into(), reason, log };
    let mut running = Running(command.spawn().map_err(|error| failed(error.to_string(), Vec::new()))?);
    let mut lines = Lines::new(progress);
    let limit = options.limits.build;
    let ended = timeout(limit, running.follow(&mut lines)).await;
    let log = lines.into_last();
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(failed(format!("docker buildx build ended with {status}"), log)),
        Ok(Err(error)) => Err(failed(format!("docker buildx build: {error}"), log)),
        Err(_elapsed) => Err(ImageError::TimedOut { what: format!("the build of {image}"), limit, log }),
    }
}

fn program(options: &DockerOptions) -> PathBuf {
    options.program.clone().unwrap_or_else(|| "docker".into())
}

/// The arguments of the program; the folder is the last one.
fn words(request: &BuildRequest<'_>, cache: Option<&Path>) -> Vec<String> {
    let mut words = vec!["buildx".to_owned(), "build".into(), "--progress=plain".into()];
    words.extend(request.names.iter().map(|name| format!("--tag={name}")));
    if !arguments::goes_elsewhere(request.extra_arguments) {
        words.push("--load".into());
    }
    if !request.platforms.is_empty() {
        let platforms: Vec<String> = request.platforms.iter().map(ToString::to_string).collect();
        words.push(format!("--platform={}", platforms.join(",")));
    }
    if let Some(cache) = cache {
        words.push(format!("--cache-from=type=local,src={}", cache.display()));
        words.push(format!("--cache-to=type=local,dest={},mode=max", cache.display()));
    }
    words.extend(request.extra_arguments.iter().cloned());
    words.push(request.folder.display().to_string());
    words
}

/// Makes the directory of the cache, and removes old parts of it. Nothing but what BuildKit has put there is touched.
fn tidy(cache: &Path) -> Result<(), ImageError> {
    if cache.to_string_lossy().contains([',', '"', '\n']) {
        return Err(ImageError::Value {
            what: "the directory for the cache",
            value: cache.display().to_string(),
            reason: "its name has a comma, a quote or a newline, which buildx cannot be told".into(),
        });
    }
    fs::create_dir_all(cache).map_err(ImageError::folder("make the directory for the cache", cache))?;
    tempfile::tempfile_in(cache).map_err(ImageError::folder("write into the directory for the cache", cache))?;
    let Ok(entries) = fs::read_dir(cache.join(BLOBS)) else { return Ok(()) };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        let is_old = entry
            .metadata()
            .and_then(|facts| facts.modified())
            .is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > OLDEST_CACHE));
        if is_old && let Err(error) = fs::remove_file(entry.path()) {
            tracing::debug!(path = %entry.path().display(), %error, "an old part of the cache stays");
        }
    }
    Ok(())
}

/// The program with all that it has started. It ends with this value; BuildKit gives up a build whose client is gone.
struct Running(Child);

impl Running {
    async fn follow(&mut self, lines: &mut Lines<'_>) -> std::io::Result<std::process::ExitStatus> {
        let missing = || std::io::Error::other("its output cannot be read");
        let mut output = self.0.stdout.take().ok_or_else(missing)?;
        let mut errors = self.0.stderr.take().ok_or_else(missing)?;
        let (mut first, mut second) = (vec![0; PIECE], vec![0; PIECE]);
        let (mut output_open, mut errors_open) = (true, true);
        while output_open || errors_open {
            tokio::select! {
                read = output.read(&mut first), if output_open => match read? {
                    0 => output_open = false,
                    read => lines.push(first.get(..read).unwrap_or_default()),
                },
                read = errors.read(&mut second), if errors_open => match read? {
                    0 => errors_open = false,
                    read => lines.push(second.get(..read).unwrap_or_default()),
                },
            }
        }
        match timeout(END, self.0.wait()).await {
            Ok(status) => status,
            Err(_elapsed) => Err(std::io::Error::other(format!("it did not end within {} s", END.as_secs()))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        group::kill(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::PermissionsExt as _,
        sync::{Arc, Mutex},
    };

    use gloveport_docker_engine::Endpoint;

    use super::*;

    #[test]
    fn a_build_has_all_names_and_the_folder_last() {
        let names = ["r:source".to_owned(), "r:lock".into(), "r:versioned".into()];
        let platforms = ["linux/amd64".parse().unwrap(), "linux/arm64".parse().unwrap()];
        let request = BuildRequest {
            folder: Path::new("/folder"),
            names: &names,
            platforms: &platforms,
            extra_arguments: &["--network=host".into()],
        };
        let line = words(&request, Some(Path::new("/cache"))).join(" ");
        assert_eq!(
            line,
            "buildx build --progress=plain --tag=r:source --tag=r:lock --tag=r:versioned --load \
             --platform=linux/amd64,linux/arm64 --cache-from=type=local,src=/cache \
             --cache-to=type=local,dest=/cache,mode=max --network=host /folder"
        );
        let request = BuildRequest { platforms: &[], extra_arguments: &["--push".into()], ..request };
        assert!(!words(&request, None).contains(&"--load".to_owned()));
    }

    /// A program in place of Docker's command line.
    fn played(script: &str) -> (tempfile::TempDir, DockerOptions) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, DockerOptions { program: Some(program), ..DockerOptions::default() })
    }

    async fn build_with(options: &DockerOptions, folder: &Path) -> (Result<(), ImageError>, Vec<String>) {
        let engine = Engine::new(Endpoint::at("unix:///no/engine.sock", "a test").unwrap());
        let names = ["r:1".to_owned()];
        let request = BuildRequest { folder, names: &names, platforms: &[], extra_arguments: &[] };
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let progress = Progress::to(move |line| sink.lock().unwrap().push(line.to_owned()));
        let built = build(&engine, options, &request, &progress).await;
        let told = told.lock().unwrap().clone();
        (built, told)
    }

    #[tokio::test]
    async fn lines_of_both_outputs_are_told_and_the_last_ones_explain_a_failure() {
        let (folder, options) = played("echo \"$DOCKER_HOST\"; echo wrong >&2; echo \"$@\"; exit 3");
        assert_eq!(missing(&options).await.as_deref().map(|reason| reason.contains("plugin")), Some(true));
        let (built, told) = build_with(&options, folder.path()).await;
        assert!(told.contains(&"unix:///no/engine.sock".to_owned()) && told.contains(&"wrong".to_owned()), "{told:?}");
        let error = built.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("buildx build --progress=plain"), "{error}");
        let (folder, options) = played("exit 0");
        assert_eq!(missing(&options).await, None);
        build_with(&options, folder.path()).await.0.unwrap();
    }

    #[tokio::test]
    async fn a_build_that_is_given_up_leaves_no_process() {
        let (folder, mut options) = played("sleep 300 & echo $! >\"$(dirname \"$0\")/pid\"; echo begun; wait");
        options.limits.build = Duration::from_secs(2);
        let (built, told) = build_with(&options, folder.path()).await;
        assert!(matches!(built, Err(ImageError::TimedOut { .. })), "{built:?}");
        assert_eq!(told, ["begun"]);
        let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
        let state = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let began = std::time::Instant::now();
        // Whoever takes over orphans reaps it in its own time.
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(began.elapsed() < Duration::from_secs(10), "{}", state());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[test]
    fn only_old_parts_of_the_cache_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir_all(cache.path().join(BLOBS)).unwrap();
        let old = SystemTime::now() - OLDEST_CACHE - Duration::from_mins(1);
        for name in ["mine.txt", "blobs/sha256/old", "blobs/sha256/new"] {
            let file = fs::File::create(cache.path().join(name)).unwrap();
            if !name.ends_with("new") {
                file.set_modified(old).unwrap();
            }
        }
        tidy(cache.path()).unwrap();
        let there = |name: &str| cache.path().join(name).exists();
        assert!(there("mine.txt") && there("blobs/sha256/new") && !there("blobs/sha256/old"));
        assert!(tidy(Path::new("/proc/no/such")).is_err());
    }
}
