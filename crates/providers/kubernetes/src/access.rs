//! How servers in pods are reached: by their service within the cluster, through the API server from outside.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener as StdListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_provider::{ProviderError, SandboxId};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    AccessMode, KubernetesOptions,
    fault::failed,
    names::{self, SERVER_PORT},
    place::Place,
    record::Record,
};

/// Connections at a time through one port of this machine.
const MOST: usize = 256;
/// Time for the way to a pod to open.
const OPEN: Duration = Duration::from_secs(20);
/// Ports of this machine that lead to pods.
const MOST_PORTS: usize = 8192;

/// The way that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Service,
    ClusterIp,
    Forward,
}

impl Way {
    pub(crate) fn of(options: &KubernetesOptions) -> Self {
        match options.access {
            AccessMode::Service => Self::Service,
            AccessMode::ClusterIp => Self::ClusterIp,
            AccessMode::Auto if Place::of(&options.environment) == Place::Inside => Self::Service,
            AccessMode::Auto | AccessMode::PortForward => Self::Forward,
        }
    }
}

/// Ports of this machine that lead to ports of pods.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    open: Mutex<HashMap<(SandboxId, u16), Forward>>,
}

#[derive(Debug)]
struct Forward {
    port: u16,
    /// The pod, which is another one after a pause.
    pod: Arc<Mutex<String>>,
    stop: CancellationToken,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Forwards {
    fn lock(&self) -> MutexGuard<'_, HashMap<(SandboxId, u16), Forward>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL of a port of a pod, if there is one already.
    pub(crate) fn known(&self, id: &SandboxId, port: u16) -> Option<String> {
        self.lock().get(&(id.clone(), port)).map(|forward| url(forward.port))
    }

    /// The URL of a port of a pod. It stays the same as long as this backend knows the sandbox.
    pub(crate) fn url(&self, api: &Api<Pod>, record: &Record, port: u16) -> Result<String, ProviderError> {
        let mut open = self.lock();
        let key = (record.id.clone(), port);
        if let Some(forward) = open.get(&key) {
            forward.pod.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&record.pod);
            return Ok(url(forward.port));
        }
        if open.len() >= MOST_PORTS {
            return Err(failed("be reached", format!("{MOST_PORTS} ports of this machine lead to it already")));
        }
        let bound = || -> io::Result<(TcpListener, u16)> {
            let listener = StdListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((TcpListener::from_std(listener)?, port))
        };
        let (listener, local) = bound().map_err(|error| failed("be reached by a port of this machine", error))?;
        let stop = CancellationToken::new();
        let pod = Arc::new(Mutex::new(record.pod.clone()));
        tokio::spawn(serve(listener, api.clone(), Arc::clone(&pod), port, stop.clone()));
        open.insert(key, Forward { port: local, pod, stop });
        Ok(url(local))
    }

    /// A sandbox is gone.
    pub(crate) fn close(&self, id: &SandboxId) {
        self.lock().retain(|(of, _), _| of != id);
    }

    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

async fn serve(listener: TcpListener, api: Api<Pod>, pod: Arc<Mutex<String>>, port: u16, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection to a pod was not accepted");
                // Out of descriptors, for a while.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let pod = pod.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(pod, port, "{MOST} connections lead there already; one more is closed");
            continue;
        };
        let (api, stop) = (api.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = forward(stream, &api, &pod, port) => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

/// Carries one connection to a pod and back.
async fn forward(mut stream: TcpStream, api: &Api<Pod>, pod: &str, port: u16) {
    let _without = stream.set_nodelay(true);
    let mut way = match timeout(OPEN, api.portforward(pod, &[port])).await {
        Ok(Ok(way)) => way,
        Ok(Err(error)) => return tracing::debug!(%error, pod, port, "the way to the pod cannot be opened"),
        Err(_) => return tracing::debug!(pod, port, "the way to the pod did not open in time"),
    };
    if let Some(mut inside) = way.take_stream(port) {
        // A broken connection is told to both ends by its end.
        let _broken = copy_bidirectional(&mut stream, &mut inside).await;
    }
    way.abort();
}

/// The URL of a port by the service of a sandbox.
pub(crate) fn by_service(record: &Record, options: &KubernetesOptions, way: Way, port: u16) -> Option<String> {
    if way == Way::ClusterIp {
        let address = record.address.as_deref().filter(|address| !address.is_empty() && *address != "None")?;
        let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        return Some(format!("http://{address}:{port}"));
    }
    let service = names::service(record.id.as_str());
    Some(format!("http://{service}.{}.svc.{}:{port}", options.namespace, options.cluster_domain))
}

/// The URL of the server of a sandbox, if its service is the way.
pub(crate) fn server(record: &Record, options: &KubernetesOptions, way: Way) -> Option<String> {
    by_service(record, options, way, SERVER_PORT)
}
