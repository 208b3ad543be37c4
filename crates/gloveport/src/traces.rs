//! Traces of what a gateway does, for a collector of OpenTelemetry. Where it is, and how it is spoken to, the variables of
//! OpenTelemetry say (`OTEL_EXPORTER_OTLP_ENDPOINT` and others); without one of them there are no traces.

use std::{fmt, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use gloveport_gateway::TRACE_TARGET;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::runtime::Runtime;
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

/// The name of the service, unless `OTEL_SERVICE_NAME` says another one.
const SERVICE: &str = "gloveport-gateway";
/// Time for what is left when the gateway ends.
const LAST: Duration = Duration::from_secs(5);
/// Time for one request to the collector.
const LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of its answer.
const LARGEST: usize = 64 * 1024;

/// Tells a collector what happens, until it ends.
pub(crate) struct Traces(SdkTracerProvider);

/// Whether the environment names a collector.
fn is_asked_for() -> bool {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let named = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].map(variable);
    let is_off =
        variable("OTEL_SDK_DISABLED").eq_ignore_ascii_case("true") || variable("OTEL_TRACES_EXPORTER") == "none";
    !is_off && named.iter().any(|endpoint| !endpoint.is_empty())
}

impl Traces {
    /// As the environment says.
    pub(crate) fn of_environment() -> anyhow::Result<Option<Self>> {
        if !is_asked_for() {
            return Ok(None);
        }
        let client = Client::new()?;
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.context("traces cannot be exported as the variables OTEL_EXPORTER_OTLP_… say")?;
        let is_named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let resource = Resource::builder();
        let resource = if is_named { resource } else { resource.with_service_name(SERVICE) };
        let provider =
            SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build();
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Some(Self(provider)))
    }

    /// What takes the spans from the program.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.0.tracer(SERVICE);
        let spans = Targets::new().with_target(TRACE_TARGET, tracing::Level::INFO);
        let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
        layer.with_target(false).with_tracked_inactivity(false).with_filter(spans)
    }

    /// Tells what is left.
    pub(crate) fn end(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            tracing::warn!(%error, "the last traces are lost");
        }
    }
}

/// Requests to the collector, by the HTTP client that everything here uses. They are made in a thread of their own.
struct Client {
    http: reqwest::Client,
    runtime: Runtime,
}

impl Client {
    fn new() -> anyhow::Result<Self> {
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(LIMIT).redirect(reqwest::redirect::Policy::none()).build()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { http, runtime })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(async {
            let mut answer = self.http.execute(request.try_into()?).await?;
            let mut response = Response::new(());
            (*response.status_mut(), *response.headers_mut()) = (answer.status(), std::mem::take(answer.headers_mut()));
            let mut whole = Vec::new();
            while let Some(part) = answer.chunk().await? {
                if whole.len() + part.len() > LARGEST {
                    return Err(format!("the answer of the collector has more than {LARGEST} bytes").into());
                }
                whole.extend_from_slice(&part);
            }
            Ok(response.map(|()| Bytes::from(whole)))
        })
    }
}
