//! One method of one path, and what answers it.

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::app::App;

/// One method of one path.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) handler: MethodRouter<Arc<App>>,
}

impl Route {
    /// A route for `GET`.
    pub(crate) fn get<H, T>(path: &'static str, handler: H) -> Self
    where
        H: axum::handler::Handler<T, Arc<App>>,
        T: 'static,
    {
        Self { method: "get", path, handler: axum::routing::get(handler) }
    }

    /// A route for `POST`.
    pub(crate) fn post<H, T>(path: &'static str, handler: H) -> Self
    where
        H: axum::handler::Handler<T, Arc<App>>,
        T: 'static,
    {
        Self { method: "post", path, handler: axum::routing::post(handler) }
    }

    /// A route for `DELETE`.
    pub(crate) fn delete<H, T>(path: &'static str, handler: H) -> Self
    where
        H: axum::handler::Handler<T, Arc<App>>,
        T: 'static,
    {
        Self { method: "delete", path, handler: axum::routing::delete(handler) }
    }

    /// A route for `PUT`.
    pub(crate) fn put<H, T>(path: &'static str, handler: H) -> Self
    where
        H: axum::handler::Handler<T, Arc<App>>,
        T: 'static,
    {
        Self { method: "put", path, handler: axum::routing::put(handler) }
    }
}
