//! Builds by a real Docker engine, which GLOVEPORT_TEST_DOCKER names. It has an image of BusyBox, which
//! GLOVEPORT_TEST_BUSYBOX names if it is not `gloveport-test/busybox:1`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first broken assumption"
)]

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bollard::{
    models::{ContainerCreateBody, ContainerSummary},
    query_parameters::{
        CreateContainerOptions, ListContainersOptionsBuilder, ListImagesOptionsBuilder, LogsOptionsBuilder,
        RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder, StartContainerOptions, WaitContainerOptions,
    },
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use gloveport_docker_engine::{Endpoint, Engine};
use gloveport_image::{
    BuildFrom, BuildLimits, BuildRequest, Built, Contents, DockerBuilder, DockerOptions, ImageBuilder as _, ImageError,
    Job, Lookup, Method, Naming, Programs, Progress, Recipe, Reuse, build, build_program,
};

struct Bench {
    engine: Arc<Engine>,
    naming: Naming,
    programs: Programs,
    repository: String,
}

impl Bench {
    fn new(name: &str) -> Self {
        let address = std::env::var("GLOVEPORT_TEST_DOCKER").expect("GLOVEPORT_TEST_DOCKER names the engine of tests");
        let endpoint = Endpoint::at(&address, "GLOVEPORT_TEST_DOCKER").unwrap();
        let repository = format!("gp-image-{name}-{}", std::process::id());
        Self {
            engine: Arc::new(Engine::new(endpoint)),
            naming: Naming::new(Some(&repository)).unwrap(),
            programs: Programs::new(&[std::env::current_exe().unwrap()]).unwrap(),
            repository,
        }
    }

    fn builder(&self, limit: Duration) -> DockerBuilder {
        let limits = BuildLimits { build: limit, ..BuildLimits::default() };
        let options = DockerOptions { method: Method::Engine, limits, ..DockerOptions::default() };
        DockerBuilder::new(Arc::clone(&self.engine), options)
    }

    async fn build(&self, recipe: &Recipe, reuse: Reuse, limit: Duration) -> Result<Built, ImageError> {
        let job = Job { naming: &self.naming, recipe, programs: &self.programs, reuse, extra_arguments: &[] };
        build(&job, &[], &self.builder(limit), &Progress::silent()).await
    }

    async fn id(&self, name: &str) -> Option<String> {
        let found = gloveport_docker_engine::images::inspect(&self.engine, name).await.unwrap();
        found.map(|image| image.id.unwrap())
    }

    /// What a container of the image says with these words, and how it ended.
    async fn run(&self, body: ContainerCreateBody) -> (String, i64) {
        let docker = self.engine.docker().await.unwrap();
        let made = docker.create_container(None::<CreateContainerOptions>, body).await.unwrap();
        docker.start_container(&made.id, None::<StartContainerOptions>).await.unwrap();
        let mut waited = docker.wait_container(&made.id, None::<WaitContainerOptions>);
        let code = match waited.next().await.unwrap() {
            Ok(ended) => ended.status_code,
            Err(bollard::errors::Error::DockerContainerWaitError { code, .. }) => code,
            Err(error) => panic!("{error}"),
        };
        let logs = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
        let said: Vec<_> = docker.logs(&made.id, Some(logs)).try_collect().await.unwrap();
        let removal = RemoveContainerOptionsBuilder::default().force(true).build();
        docker.remove_container(&made.id, Some(removal)).await.unwrap();
        (said.iter().map(ToString::to_string).collect(), code)
    }

    /// Containers of steps that run the script of extra commands.
    async fn steps(&self) -> Vec<ContainerSummary> {
        let docker = self.engine.docker().await.unwrap();
        let all =
            docker.list_containers(Some(ListContainersOptionsBuilder::default().all(true).build())).await.unwrap();
        let is_step = |container: &ContainerSummary| {
            container.command.as_deref().is_some_and(|command| command.contains("/openhands/setup/extra.sh"))
        };
        all.into_iter().filter(is_step).collect()
    }

    async fn clean(&self) {
        let docker = self.engine.docker().await.unwrap();
        let filters = HashMap::from([("reference", vec![self.repository.clone()])]);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        for image in docker.list_images(Some(options)).await.unwrap() {
            for tag in image.repo_tags {
                let options = RemoveImageOptionsBuilder::default().force(true).build();
                docker.remove_image(&tag, Some(options), None).await.unwrap();
            }
        }
    }
}

const LONG: Duration = Duration::from_mins(2);

fn busybox() -> gloveport_image::ImageName {
    std::env::var("GLOVEPORT_TEST_BUSYBOX").unwrap_or_else(|_| "gloveport-test/busybox:1".into()).parse().unwrap()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test]
async fn an_image_has_our_program_under_the_name_of_the_launcher_and_is_built_once() {
    let bench = Bench::new("plain");
    let recipe = Recipe::plain(busybox());
    let built = bench.build(&recipe, Reuse::Existing, LONG).await.unwrap();
    assert_eq!(built.from, Some(BuildFrom::Scratch));
    let id = bench.id(&built.names.source).await;
    assert!(id.is_some());
    for name in [&built.names.lock, &built.names.versioned] {
        assert_eq!(bench.id(name).await, id);
    }
    let body = ContainerCreateBody {
        image: Some(built.image.clone()),
        entrypoint: Some(Vec::new()),
        cmd: Some(words(&["/openhands/micromamba/bin/micromamba", "--list"])),
        working_dir: Some("/openhands/code/".into()),
        ..ContainerCreateBody::default()
    };
    let (said, code) = bench.run(body).await;
    assert!(code == 0 && said.contains("is_built_once: test"), "{code}: {said}");

    assert_eq!(bench.build(&recipe, Reuse::Existing, LONG).await.unwrap().from, None);
    let again = bench.build(&recipe, Reuse::Nothing, LONG).await.unwrap();
    assert_eq!((again.from, again.given.len()), (Some(BuildFrom::Scratch), 3));
    bench.clean().await;
}

#[tokio::test]
async fn an_image_of_the_program_alone_runs_as_any_user() {
    let bench = Bench::new("scratch");
    let recipe = Recipe::plain("scratch".parse().unwrap());
    let job = Job {
        naming: &bench.naming,
        recipe: &recipe,
        programs: &bench.programs,
        reuse: Reuse::Existing,
        extra_arguments: &[],
    };
    let contents = Contents::Program { user: Some(1000), platforms: Vec::new() };
    let names = [format!("{}:1", bench.repository), format!("{}:2", bench.repository)];
    let image = build_program(&contents, &names, &job, &bench.builder(LONG), &Progress::silent()).await.unwrap();
    assert_eq!((image.as_str(), bench.id(&names[0]).await), (names[0].as_str(), bench.id(&names[1]).await));
    let body =
        ContainerCreateBody { image: Some(image), cmd: Some(words(&["--list"])), ..ContainerCreateBody::default() };
    let (said, code) = bench.run(body).await;
    assert!(code == 0 && said.contains("runs_as_any_user: test"), "{code}: {said}");
    bench.clean().await;
}

#[tokio::test]
async fn a_build_that_fails_or_is_given_up_tells_why_and_leaves_no_container() {
    let bench = Bench::new("failed");
    let with = |extra: &str| Recipe { extra: Some(extra.parse().unwrap()), ..Recipe::plain(busybox()) };
    let error = bench.build(&with("echo the last words\nexit 7"), Reuse::Existing, LONG).await.unwrap_err();
    let ImageError::Build { reason, log, .. } = &error else { panic!("{error}") };
    assert!(reason.ends_with(" 7") && log.iter().any(|line| line == "the last words"), "{error}");

    let limit = Duration::from_secs(3);
    let error = bench.build(&with("echo begun\nsleep 300"), Reuse::Existing, limit).await.unwrap_err();
    let ImageError::TimedOut { log, .. } = &error else { panic!("{error}") };
    assert!(log.iter().any(|line| line == "begun"), "{error}");

    let recipe = with("sleep 301");
    let dropped = tokio::time::timeout(limit, bench.build(&recipe, Reuse::Existing, LONG)).await;
    assert!(dropped.is_err());
    // The engine notices that the connection is gone, and removes the container in its own time.
    let began = Instant::now();
    while !bench.steps().await.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", bench.steps().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for name in ["source", "lock"] {
        assert!(bench.id(&format!("{}:{name}", bench.repository)).await.is_none());
    }
    bench.clean().await;
}

#[tokio::test]
async fn images_that_are_nowhere_do_not_exist() {
    let bench = Bench::new("absent");
    let (builder, silent) = (bench.builder(LONG), Progress::silent());
    for (name, lookup, expected) in [
        ("", Lookup::Registry, false),
        ("localhost:1/no/such:image", Lookup::Here, false),
        ("localhost:1/no/such:image", Lookup::Registry, false),
        (busybox().as_str(), Lookup::Here, true),
    ] {
        assert_eq!(builder.image_exists(name, lookup, &silent).await.unwrap(), expected, "{name}");
    }
    let nowhere = Engine::new(Endpoint::at("unix:///no/engine.sock", "a test").unwrap());
    let builder = DockerBuilder::new(Arc::new(nowhere), DockerOptions::default());
    assert!(builder.image_exists("x", Lookup::Registry, &silent).await.is_err());
}

#[tokio::test]
async fn what_needs_buildkit_says_so_where_it_is_not() {
    let bench = Bench::new("buildkit");
    let program = Some(PathBuf::from("/no/docker"));
    let options = DockerOptions { method: Method::BuildKit, program, ..DockerOptions::default() };
    let builder = DockerBuilder::new(Arc::clone(&bench.engine), options);
    let (folder, names) = (tempfile::tempdir().unwrap(), ["x:1".to_owned()]);
    let request = BuildRequest { folder: folder.path(), names: &names, platforms: &[], extra_arguments: &[] };
    let error = builder.build(&request, &Progress::silent()).await.unwrap_err().to_string();
    assert!(error.contains("BuildKit was asked for") && error.contains("buildx"), "{error}");
}
