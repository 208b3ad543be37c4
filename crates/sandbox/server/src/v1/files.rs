//! The native file API.

mod archive;
mod content;
mod entries;
mod path;
mod watch;

use crate::route::Route;

pub(super) use archive::ArchiveRefusal;
pub(crate) use content::{file_answer, pieces as file_pieces};
pub(super) use path::PathError;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/files/stat", entries::stat),
        Route::get("/v1/files/list", entries::list),
        Route::get("/v1/files/content", content::get),
        Route::put("/v1/files/content", content::put),
        Route::post("/v1/files/glob", entries::glob),
        Route::post("/v1/files/grep", entries::grep),
        Route::post("/v1/files/move", entries::move_to),
        Route::post("/v1/files/remove", entries::remove),
        Route::post("/v1/files/mkdir", entries::mkdir),
        Route::get("/v1/files/watch", watch::watch),
        Route::get("/v1/files/archive", archive::pack),
        Route::put("/v1/files/archive", archive::unpack),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        entries::stat,
        entries::list,
        content::get,
        content::put::put,
        entries::glob,
        entries::grep,
        entries::move_to,
        entries::remove,
        entries::mkdir,
        watch::watch,
        archive::pack,
        archive::unpack
    ),
    components(schemas(gloveport_protocol::files::FileEvent))
)]
pub(super) struct Operations;
