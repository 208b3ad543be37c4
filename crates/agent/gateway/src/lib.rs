//! Any provider as the Remote Runtime API of OpenHands (`spec/remote-runtime-api.md`), and the way to its sandboxes.
//!
//! The engine is the database of sandboxes: a gateway that is started anew, or beside another one, knows the same ones. They
//! outlive it. Tenants, keys and quotas are in a database of their own, where there is one.
//!
//! | module | idea |
//! |---|---|
//! | [`Gateway`] | the whole |
//! | [`GatewayOptions`] | what can be set on it |
//! | [`TlsSource`] | the certificate, and how it is renewed |
//! | `listen` | connections by HTTP/1.1 and HTTP/2, how many, and how they end |
//! | `entry` | what is done for every request |
//! | `caller` | who asks and how, and which proxies are believed |
//! | `shared` | what all requests share |
//! | `labels` | labels of sandboxes |
//! | `identity` | who asks, and what is whose |
//! | [`Refusal`] | why a request to such a route is not answered as hoped |
//! | [`Tenant`] | the sandboxes of who asks as a provider, for routes beside the interface |
//! | `tenancy` | tenants of a gateway with a database, and the places of their sandboxes |
//! | `held` | such a place, until somebody was told of its sandbox |
//! | `policy` | what a tenant may ask for |
//! | `reconcile` | the database is compared with the engine |
//! | `audit` | the audit log on its way to the database |
//! | `api` | the requests of the interface |
//! | `images` | the requests about images |
//! | `builds` | images that are built, and those that wait |
//! | `upload` | a build folder as it is sent |
//! | `start` | from a request to the spec of a sandbox |
//! | `starting` | requests for sandboxes, and what is taken back because nobody has heard of it |
//! | `turns` | those of one session, one after another |
//! | `delivery` | an answer of which it is known whether somebody got it |
//! | [`WarmPool`] | sandboxes that are started ahead, and how many |
//! | `command` | commands that mean our own server |
//! | `view` | a sandbox as the interface tells it |
//! | `public` | the URLs of sandboxes, as they are told |
//! | `known` | where sandboxes are, remembered for a moment |
//! | `pages` | which pages of other origins may ask |
//! | `path` | which sandbox a path means, and what in it |
//! | `domain` | which sandbox a host means |
//! | `way` | a request on its way to a sandbox, and its answer |
//! | `heads` | what of the head of a message is passed on |
//! | `waking` | those that are being woken |
//! | `wake` | paused sandboxes that go on because somebody asks for them |
//! | `fault` | answers that are errors |
//! | `v1` | the native API |
//! | `openapi` | the document of the interface |
//! | `hub` | what has happened to sandboxes, kept for a while |
//! | `watch` | finds out what happens to sandboxes, for the hub |
//! | `streams` | how many answers may last |
//! | `e2b` | the API of E2B, and what it needs |
//! | `fork` | a sandbox that is made of another one |
//! | `snapshots` | what tenants keep of sandboxes |
//! | `engine` | whether the engine answers, and what it has |
//! | `metrics` | what is counted |
//! | `trace` | spans for traces |
//! | `traced` | a provider whose calls have spans |
//! | `operations` | what operators ask |

mod api;
mod audit;
mod builds;
mod caller;
mod command;
mod delivery;
mod domain;
mod e2b;
mod engine;
mod entry;
mod fault;
mod fork;
mod gateway;
mod heads;
mod held;
mod hub;
mod identity;
mod images;
mod known;
mod labels;
mod listen;
mod metrics;
mod openapi;
mod operations;
mod options;
mod pages;
mod path;
mod policy;
mod public;
mod reconcile;
mod shared;
mod snapshots;
mod start;
mod starting;
mod streams;
mod tenancy;
mod tenant;
mod tls;
mod trace;
mod traced;
mod turns;
mod upload;
mod v1;
mod view;
mod wake;
mod waking;
mod warm;
mod watch;
mod way;

pub use builds::ImageService;
pub use fault::Refusal;
pub use gateway::{Gateway, GatewayError};
pub use options::{GatewayOptions, Size};
pub use tenant::Tenant;
pub use tls::{TlsError, TlsFiles, TlsSource};
pub use trace::TRACE_TARGET;
pub use warm::WarmPool;
