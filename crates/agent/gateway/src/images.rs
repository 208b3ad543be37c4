//! The requests about images (remote-runtime-api 2.7 to 2.10), and two of ours: what a build says, and its end.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, Multipart, Query, Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use gloveport_image::ImageName;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    builds::{Builds, Order, Told},
    caller::ClientAddress,
    fault::Fault,
    identity::Identity,
    shared::Shared,
    upload,
};

type Handle = State<Arc<Shared>>;
type Who = Extension<Identity>;

pub(crate) fn router(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    Router::new()
        .route("/registry_prefix", get(prefix))
        .route("/image_exists", get(exists))
        .route("/build", post(build))
        .route("/build_status", get(status))
        .route("/build_log", get(log))
        .route("/build_cancel", post(cancel))
        // A build folder has bounds of its own.
        .layer(DefaultBodyLimit::disable())
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), with_key))
}

/// Lets nobody pass without a key. Bodies are read as they come.
async fn with_key(State(shared): Handle, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ClientAddress>().map(|client| client.0);
    match shared.identify(request.headers(), address).await {
        Ok(who) => request.extensions_mut().insert(who),
        Err(fault) => return fault.into_response(),
    };
    next.run(request).await
}

impl Shared {
    fn builds(&self) -> Result<&Builds, Fault> {
        self.builds.as_ref().ok_or_else(|| {
            let detail = "this gateway builds no images; name one that is there (sandbox.runtime_container_image in \
                OpenHands), or start it with the runtime docker and --build-images";
            Fault::new(StatusCode::NOT_IMPLEMENTED, detail)
        })
    }
}

async fn prefix(State(shared): Handle, Extension(who): Who) -> Result<Json<Value>, Fault> {
    Ok(Json(json!({"registry_prefix": shared.builds()?.prefix(who.name())})))
}

#[derive(Deserialize)]
struct ImageQuery {
    image: String,
}

async fn exists(
    State(shared): Handle,
    Extension(who): Who,
    Query(ImageQuery { image }): Query<ImageQuery>,
) -> Result<Json<Value>, Fault> {
    let builds = shared.builds()?;
    let name: ImageName = image.parse().map_err(|error| Fault::wrong(format!("{error}")))?;
    let name = name.as_str();
    // What others have built is theirs.
    if builds.is_of_others(who.name(), name) {
        return Ok(Json(json!({"exists": false})));
    }
    Ok(Json(match builds.image(name).await? {
        Some((made, size)) => {
            json!({"exists": true, "image": {"upload_time": made, "image_size_bytes": size}})
        }
        None => json!({"exists": false}),
    }))
}

async fn build(State(shared): Handle, Extension(who): Who, form: Multipart) -> Result<Json<Value>, Fault> {
    let mut target = String::new();
    let begun = async {
        let builds = shared.builds()?;
        builds.check_room(who.name())?;
        let upload = upload::receive(form, &builds.service.directory).await?;
        target.clone_from(&upload.names[0]);
        for name in &upload.names {
            name.parse::<ImageName>().map_err(|error| Fault::wrong(format!("{error}")))?;
            if !builds.is_of(who.name(), name) {
                let name: String = name.chars().take(256).collect();
                let detail = format!(
                    "the image cannot be called `{name}`; its name must begin with {}/",
                    builds.prefix(who.name())
                );
                return Err(Fault::new(StatusCode::FORBIDDEN, detail));
            }
        }
        builds.begin(Order { tenant: who.name().to_owned(), names: upload.names, folder: upload.folder })
    };
    let begun = begun.await;
    shared.audit(&who, "image build", &target, &begun);
    Ok(Json(json!({"build_id": begun?})))
}

#[derive(Deserialize)]
struct BuildQuery {
    build_id: String,
}

async fn status(
    State(shared): Handle,
    Extension(who): Who,
    Query(BuildQuery { build_id }): Query<BuildQuery>,
) -> Result<Json<Told>, Fault> {
    let told = shared.builds()?.told(who.name(), &build_id);
    told.map(Json).ok_or_else(|| Fault::missing("build"))
}

async fn log(
    State(shared): Handle,
    Extension(who): Who,
    Query(BuildQuery { build_id }): Query<BuildQuery>,
) -> Result<(HeaderMap, String), Fault> {
    let log = shared.builds()?.log(who.name(), &build_id).ok_or_else(|| Fault::missing("build"))?;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    Ok(([(CONTENT_TYPE, plain)].into_iter().collect(), log))
}

async fn cancel(
    State(shared): Handle,
    Extension(who): Who,
    Json(BuildQuery { build_id }): Json<BuildQuery>,
) -> Result<Json<Value>, Fault> {
    let cancelled = async {
        let is_there = shared.builds()?.cancel(who.name(), &build_id);
        if is_there { Ok(()) } else { Err(Fault::missing("build")) }
    };
    let cancelled = cancelled.await;
    shared.audit(&who, "image build cancel", &build_id, &cancelled);
    cancelled?;
    Ok(Json(json!({"build_id": build_id})))
}
