//! Names looked up by a library, never by the C library: a static program that asks the system's name service loads shared
//! objects of whatever system it runs in, and dies.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use hickory_resolver::TokioResolver;
use hyper_util::client::legacy::connect::dns::Name;

/// Names to addresses, for the connectors of HTTP clients. It reads the system's configuration at its first use.
#[derive(Clone, Default)]
pub struct Resolver(Arc<OnceLock<TokioResolver>>);

impl Resolver {
    fn get(&self) -> io::Result<&TokioResolver> {
        if let Some(made) = self.0.get() {
            return Ok(made);
        }
        let made = TokioResolver::builder_tokio().and_then(hickory_resolver::ResolverBuilder::build);
        let made = made.map_err(|error| io::Error::other(format!("names cannot be resolved: {error}")))?;
        Ok(self.0.get_or_init(|| made))
    }

    /// The addresses of a host.
    ///
    /// # Errors
    ///
    /// It has none, or nobody can be asked.
    pub async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = self.get()?.lookup_ip(host).await;
        Ok(found.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error.to_string()))?.iter().collect())
    }
}

impl tower::Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.addresses(name.as_str()).await?;
            Ok(found.into_iter().map(|address| SocketAddr::new(address, 0)).collect::<Vec<_>>().into_iter())
        })
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}
