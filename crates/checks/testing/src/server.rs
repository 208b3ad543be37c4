//! A real server with a real shell, in directories of its own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_server::{DrainEnd, ServerError, ServerOptions, serve};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// A server on loopback.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its tools start.
    pub directory: TempDir,
    /// The home of its shell, so that no start-up file of whoever runs the tests has a say.
    pub home: TempDir,
    /// Its tools.
    pub executor: Arc<Executor>,
    stop: CancellationToken,
    serving: JoinHandle<Result<DrainEnd, ServerError>>,
}

impl Server {
    /// A server on a free port.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub async fn start(options: ServerOptions) -> Self {
        Self::start_at("127.0.0.1:0", options, |options| options).await
    }

    /// A server at this address, whose tools have options of their own.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub async fn start_at(
        address: &str,
        options: ServerOptions,
        change: impl FnOnce(ExecutorOptions) -> ExecutorOptions,
    ) -> Self {
        let (directory, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut tools = ExecutorOptions::inherited(directory.path().to_owned());
        tools.environment.retain(|(name, _)| name != "HOME");
        tools.environment.push(("HOME".into(), home.path().into()));
        let executor = Box::pin(Executor::start(change(tools))).await.unwrap();
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = serve(listener, Arc::clone(&executor), options, stop.clone(), Duration::from_secs(1));
        Self { address, directory, home, executor, stop, serving: tokio::spawn(serving) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Tells it to end.
    pub fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    /// Ends it, and gives how that went.
    ///
    /// # Panics
    ///
    /// It has failed.
    pub async fn stop(self) -> DrainEnd {
        self.begin_to_stop();
        let end = self.serving.await.unwrap().unwrap();
        self.executor.close().await;
        end
    }
}
