//! Images that are built for tenants: who waits, how far each build is, and what became of it. It is kept in memory: builds end
//! with their gateway, and ask another one in vain.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gloveport_docker_engine::{Engine, images};
use gloveport_image::{
    BuildLimits, BuildRequest, DockerBuilder, DockerOptions, ImageBuilder as _, ImageError, Progress,
};
use http::StatusCode;
use serde::Serialize;
use tempfile::TempDir;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;

/// Time for a build, from when it begins.
const LIMIT: Duration = Duration::from_mins(30);
/// How long it is told what became of a build.
const TOLD: Duration = Duration::from_hours(1);
/// Builds of one tenant that wait or run.
const MOST_OF_TENANT: usize = 8;
/// Builds that are remembered.
const MOST: usize = 1024;
/// Lines of a log that are kept, the last ones.
const LINES: usize = 1000;
/// Longest line.
const LINE: usize = 2000;
/// When there may be room for another build.
const AGAIN: Duration = Duration::from_secs(30);

/// Who builds images for the tenants of a gateway.
#[derive(Clone, Debug)]
pub struct ImageService {
    /// The engine that builds and keeps them: that of the sandboxes.
    pub engine: Arc<Engine>,
    /// What the names of all of them begin with, such as `gloveport` or `registry.example.org/sandboxes`. The tenant follows.
    pub prefix: String,
    /// Builds at a time; others wait.
    pub at_once: usize,
    /// Where build folders are put; they are gone when their builds are over.
    pub directory: PathBuf,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    Queued,
    Working,
    Success,
    Failure,
    Timeout,
    Cancelled,
}

impl Status {
    const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Working)
    }
}

/// What is told of a build.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Told {
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A build.
#[derive(Debug)]
struct Build {
    tenant: String,
    told: Told,
    over: Option<Instant>,
    log: VecDeque<String>,
    cancel: CancellationToken,
}

/// What is to be built.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) tenant: String,
    /// The first one is the main one.
    pub(crate) names: Vec<String>,
    pub(crate) folder: TempDir,
}

/// All builds of a gateway.
#[derive(Debug)]
pub(crate) struct Builds {
    pub(crate) service: ImageService,
    builder: Arc<DockerBuilder>,
    places: Arc<Semaphore>,
    all: Arc<Mutex<HashMap<String, Build>>>,
    /// Ends all of them.
    stop: CancellationToken,
}

fn lock(all: &Mutex<HashMap<String, Build>>) -> MutexGuard<'_, HashMap<String, Build>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the name of an image begins with these components. The registry that is meant when none is named may be named.
fn is_below(prefix: &str, image: &str) -> bool {
    let plain = |name: &str| -> String {
        let rest = ["docker.io/", "index.docker.io/"].iter().find_map(|host| name.strip_prefix(host));
        rest.unwrap_or(name).to_owned()
    };
    plain(image).strip_prefix(&plain(prefix)).is_some_and(|rest| rest.starts_with('/'))
}

impl Builds {
    pub(crate) fn new(service: ImageService, stop: CancellationToken) -> Self {
        let limits = BuildLimits { build: LIMIT, ..BuildLimits::default() };
        let options = DockerOptions { limits, ..DockerOptions::default() };
        let builder = Arc::new(DockerBuilder::new(Arc::clone(&service.engine), options));
        let places = Arc::new(Semaphore::new(service.at_once.max(1)));
        Self { service, builder, places, all: Arc::default(), stop }
    }

    /// What the names of a tenant's images begin with.
    pub(crate) fn prefix(&self, tenant: &str) -> String {
        format!("{}/{tenant}", self.service.prefix)
    }

    /// Whether an image is one of this tenant's.
    pub(crate) fn is_of(&self, tenant: &str, image: &str) -> bool {
        is_below(&self.prefix(tenant), image)
    }

    /// Whether an image is one of another tenant's.
    pub(crate) fn is_of_others(&self, tenant: &str, image: &str) -> bool {
        is_below(&self.service.prefix, image) && !self.is_of(tenant, image)
    }

    /// Whether a tenant may have one more build.
    pub(crate) fn check_room(&self, tenant: &str) -> Result<(), Fault> {
        let mut all = lock(&self.all);
        all.retain(|_, build| build.over.is_none_or(|over| over.elapsed() < TOLD));
        let theirs = all.values().filter(|build| build.tenant == tenant && !build.told.status.is_over()).count();
        if theirs >= MOST_OF_TENANT || all.len() >= MOST {
            let detail =
                format!("{theirs} images of the tenant are being built; {MOST_OF_TENANT} are possible at a time");
            return Err(Fault::new(StatusCode::TOO_MANY_REQUESTS, detail).after(AGAIN));
        }
        Ok(())
    }

    /// Builds an image when there is a place. Gives the id of the build.
    pub(crate) fn begin(&self, order: Order) -> Result<String, Fault> {
        self.check_room(&order.tenant)?;
        let unknown = |error: gloveport_ids::Error| {
            tracing::error!(%error, "there are no random numbers");
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the gateway could not make an id for the build")
        };
        let id = gloveport_ids::random::<16>().map_err(unknown)?;
        let cancel = self.stop.child_token();
        let build = Build {
            tenant: order.tenant.clone(),
            told: Told { status: Status::Queued, image: None, error: None },
            over: None,
            log: VecDeque::new(),
            cancel: cancel.clone(),
        };
        lock(&self.all).insert(id.clone(), build);
        let (all, builder, places, name) =
            (Arc::clone(&self.all), Arc::clone(&self.builder), Arc::clone(&self.places), id.clone());
        // It ends by its limit, by whoever cancels it, and with the gateway.
        drop(tokio::spawn(async move {
            let told = tokio::select! {
                told = run(&all, &builder, &places, &name, &order) => told,
                () = cancel.cancelled() => {
                    Told { status: Status::Cancelled, image: None, error: Some("the build was cancelled".to_owned()) }
                }
            };
            tracing::info!(id = name, tenant = order.tenant, status = ?told.status, "a build is over");
            if let Some(build) = lock(&all).get_mut(&name) {
                (build.told, build.over) = (told, Some(Instant::now()));
            }
        }));
        Ok(id)
    }

    /// What is told of a build of this tenant.
    pub(crate) fn told(&self, tenant: &str, id: &str) -> Option<Told> {
        lock(&self.all).get(id).filter(|build| build.tenant == tenant).map(|build| build.told.clone())
    }

    /// What a build of this tenant has said last.
    pub(crate) fn log(&self, tenant: &str, id: &str) -> Option<String> {
        let all = lock(&self.all);
        let build = all.get(id).filter(|build| build.tenant == tenant)?;
        Some(build.log.iter().flat_map(|line| [line.as_str(), "\n"]).collect())
    }

    /// Ends a build of this tenant; whether there is one.
    pub(crate) fn cancel(&self, tenant: &str, id: &str) -> bool {
        let all = lock(&self.all);
        let build = all.get(id).filter(|build| build.tenant == tenant);
        build.inspect(|build| build.cancel.cancel()).is_some()
    }

    /// When an image was made and how large it is, if the engine has it.
    pub(crate) async fn image(&self, name: &str) -> Result<Option<(String, i64)>, Fault> {
        let found = images::inspect(&self.service.engine, name).await.map_err(|error| {
            tracing::warn!(%error, "the engine did not tell of an image");
            Fault::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).passes()
        })?;
        Ok(found.map(|image| {
            let made = image.created.unwrap_or_default();
            (made, image.size.unwrap_or_default())
        }))
    }
}

/// Waits for a place, and builds.
async fn run(
    all: &Arc<Mutex<HashMap<String, Build>>>,
    builder: &DockerBuilder,
    places: &Semaphore,
    id: &str,
    order: &Order,
) -> Told {
    let over = |status: Status, error: String| Told { status, image: None, error: Some(error) };
    // It is never closed.
    let Ok(_place) = places.acquire().await else { return over(Status::Cancelled, "the gateway ends".to_owned()) };
    if let Some(build) = lock(all).get_mut(id) {
        build.told.status = Status::Working;
    }
    let progress = {
        let (all, id) = (Arc::clone(all), id.to_owned());
        Progress::to(move |line| {
            if let Some(build) = lock(&all).get_mut(&id) {
                if build.log.len() >= LINES {
                    build.log.pop_front();
                }
                build.log.push_back(line.chars().take(LINE).collect());
            }
        })
    };
    let request =
        BuildRequest { folder: order.folder.path(), names: &order.names, platforms: &[], extra_arguments: &[] };
    match timeout(LIMIT, builder.build(&request, &progress)).await {
        Ok(Ok(image)) => Told { status: Status::Success, image: Some(image), error: None },
        Ok(Err(error @ ImageError::TimedOut { .. })) => over(Status::Timeout, error.to_string()),
        Ok(Err(error)) => over(Status::Failure, error.to_string()),
        Err(_) => over(Status::Timeout, format!("the build took longer than {} s", LIMIT.as_secs())),
    }
}
