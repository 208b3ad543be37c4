//! All stores against the same contract, and buckets and web hooks against servers that speak their APIs.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

mod buckets;
mod contract;
mod factory;
mod server;
mod signature;
mod webhook;

use std::time::Duration;

use gloveport_event_stream::store::HttpLimits;
use gloveport_testing::within;

/// StreamLimits that a test can wait for.
const SHORT: HttpLimits = HttpLimits {
    connect: Duration::from_secs(5),
    request: Duration::from_millis(300),
    all_attempts: Duration::from_secs(20),
};
