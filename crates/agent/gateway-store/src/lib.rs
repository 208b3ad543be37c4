//! What gateways remember beside their engine: tenants and their limits, keys, sessions, and the audit log, in SQLite or
//! PostgreSQL.
//!
//! Several gateways over one PostgreSQL behave as one: a place is reserved in one transaction that holds the row of the tenant,
//! so that no session is made twice and no quota is exceeded. A reservation whose gateway has died is over after its time.
//!
//! | module | idea |
//! |---|---|
//! | [`Store`] | the connection, its time limits |
//! | [`Location`] | which database |
//! | `schema` | its tables, made and brought up to date by whoever connects |
//! | `tenants`, `keys` | who may do how much |
//! | `sessions` | places for sandboxes, and what has become of them |
//! | `snapshots` | what tenants keep of sandboxes |
//! | `audit` | who did what; append-only |
//! | `text` | bounds of texts |

mod audit;
mod error;
mod keys;
mod location;
mod schema;
mod sessions;
mod snapshots;
mod store;
mod tenants;
mod text;

pub use audit::{AUDIT_KEPT, AuditEvent, AuditFilter, AuditLine};
pub use error::StoreError;
pub use keys::{Key, KeyCheck, NewKey};
pub use location::Location;
pub use sessions::{Place, Quota, Refusal, Reserved, Session, SessionState, Usage, Wants};
pub use snapshots::{KeptSnapshot, SnapshotPlace};
pub use store::{MOST_ROWS, Store};
pub use tenants::{Limits, Tenant};
