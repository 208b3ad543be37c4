//! `GET /server_info` (`action-execution-api` 2.5).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{extract::State, response::Response};
use gloveport_protocol::{Resources, ServerInfo};
use http::StatusCode;

use crate::{answer, app::App, usage};

/// Length of the CPU sample.
const SAMPLE: Duration = Duration::from_millis(100);

#[utoipa::path(
    get,
    path = "/server_info",
    tag = "openhands-0.62",
    operation_id = "get_server_info",
    summary = "Tell what the server's process uses",
    description = "Takes a tenth of a second, the length of the CPU sample.",
    security(()),
    responses((status = 200, description = "The numbers.", body = ServerInfo)),
)]
pub(super) async fn server_info(State(app): State<Arc<App>>) -> Response {
    let (began, before) = (Instant::now(), usage::cpu_seconds());
    tokio::time::sleep(SAMPLE).await;
    let cpu = (usage::cpu_seconds() - before) / began.elapsed().as_secs_f64() * 100.0;
    // A file system can take its time.
    let disk = match tokio::task::spawn_blocking(usage::disk).await {
        Ok(Ok(disk)) => disk,
        Ok(Err(error)) => {
            tracing::warn!(%error, "/server_info: the root file system can not be asked for its size");
            return answer::unexpected();
        }
        Err(error) => {
            tracing::warn!(%error, "/server_info: the question for the disk's size did not end");
            return answer::unexpected();
        }
    };
    let resources = Resources { cpu_percent: usage::one_decimal(cpu), memory: usage::memory(), disk, io: usage::io() };
    let info = ServerInfo { uptime: app.uptime().as_secs_f64(), idle_time: app.idle_time().as_secs_f64(), resources };
    answer::json(StatusCode::OK, &info)
}
