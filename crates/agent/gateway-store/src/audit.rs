//! The audit log: who did what, when, from where, with what result. The database refuses to change its lines, and to delete
//! those that are not old.

use std::time::Duration;

use serde::Serialize;
use sqlx::{Row as _, any::AnyRow};

use crate::{
    StoreError,
    store::{MOST_ROWS, Store, millis},
    tenants::plain,
    text::bounded,
};

/// How long a line is kept.
pub const AUDIT_KEPT: Duration = Duration::from_hours(400 * 24);
/// Most characters of the target.
const TARGET: usize = 256;
/// Most characters of the detail.
const DETAIL: usize = 1024;
/// Most characters of the other texts.
const SHORT: usize = 64;

/// What has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEvent {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// The tenant, as far as it is known.
    pub tenant: Option<String>,
    /// The key, by its id.
    pub key: Option<String>,
    /// What was tried: `start`, `key create`.
    pub action: String,
    /// With what: a session, a sandbox, a key, a tenant.
    pub target: Option<String>,
    /// The address that asked.
    pub address: Option<String>,
    /// `done`, or why not.
    pub result: String,
    /// More about it.
    pub detail: Option<String>,
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// Its number; later lines have larger ones.
    pub id: i64,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// The tenant.
    pub tenant: Option<String>,
    /// The key, by its id.
    pub key: Option<String>,
    /// What was tried.
    pub action: String,
    /// With what.
    pub target: Option<String>,
    /// The address that asked.
    pub address: Option<String>,
    /// `done`, or why not.
    pub result: String,
    /// More about it.
    pub detail: Option<String>,
}

impl AuditLine {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            time: row.try_get("time")?,
            tenant: row.try_get("tenant")?,
            key: row.try_get("key_id")?,
            action: row.try_get("action")?,
            target: row.try_get("target")?,
            address: row.try_get("address")?,
            result: row.try_get("result")?,
            detail: row.try_get("detail")?,
        })
    }
}

/// Which lines.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Of this tenant.
    pub tenant: Option<String>,
    /// With this action.
    pub action: Option<String>,
    /// Not older than this, in milliseconds since 1970.
    pub since: Option<i64>,
    /// With smaller numbers than this one.
    pub before: Option<i64>,
    /// At most so many, and at most [`MOST_ROWS`].
    pub most: Option<u32>,
}

impl Store {
    /// Appends lines, all or none.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn append_audit(&self, events: &[AuditEvent]) -> Result<(), StoreError> {
        let sql = "INSERT INTO audit (time, tenant, key_id, action, target, address, result, detail) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let cut = |text: &Option<String>, most| text.as_ref().map(|text| bounded(text, most));
        let appended = async {
            let mut whole = self.begin().await?;
            for event in events {
                sqlx::query(sql)
                    .bind(event.time)
                    .bind(cut(&event.tenant, SHORT))
                    .bind(cut(&event.key, SHORT))
                    .bind(bounded(&event.action, SHORT))
                    .bind(cut(&event.target, TARGET))
                    .bind(cut(&event.address, SHORT))
                    .bind(bounded(&event.result, SHORT))
                    .bind(cut(&event.detail, DETAIL))
                    .execute(&mut *whole)
                    .await?;
            }
            whole.commit().await?;
            Ok(())
        };
        self.call("append to the audit log", appended).await
    }

    /// Lines of the audit log, the newest first.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditLine>, StoreError> {
        let sql = "SELECT * FROM audit WHERE ($1 IS NULL OR tenant = $1) AND ($2 IS NULL OR action = $2) AND time >= $3 \
            AND id < $4 ORDER BY id DESC LIMIT $5";
        let text = |text: &Option<String>| text.as_deref().map(|text| plain(text).to_owned());
        let listed = async {
            let rows = sqlx::query(sql)
                .bind(text(&filter.tenant))
                .bind(text(&filter.action))
                .bind(filter.since.unwrap_or_default())
                .bind(filter.before.unwrap_or(i64::MAX))
                .bind(i64::from(filter.most.unwrap_or(MOST_ROWS).min(MOST_ROWS)))
                .fetch_all(self.pool())
                .await?;
            Ok(rows.iter().map(AuditLine::of).collect::<Result<_, _>>()?)
        };
        self.call("read the audit log", listed).await
    }

    /// Deletes what is older than it is kept: lines of the audit log, and sessions that have ended. Gives how many.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn prune(&self) -> Result<u64, StoreError> {
        // A little longer than the database guards them.
        let kept = millis(AUDIT_KEPT + Duration::from_mins(1));
        let pruned = async {
            let sql = self.sql("DELETE FROM audit WHERE time < {now} - $1");
            let lines = sqlx::query(sql).bind(kept).execute(self.pool()).await?.rows_affected();
            let sql = self.sql("DELETE FROM sessions WHERE state = 'ended' AND ended < {now} - $1");
            Ok(lines + sqlx::query(sql).bind(kept).execute(self.pool()).await?.rows_affected())
        };
        self.call("delete what is old", pruned).await
    }
}
