//! Snapshots of tenants: places that are reserved before a snapshot is made, so that a quota holds, and what the engine calls
//! them.

use std::time::Duration;

use serde::Serialize;
use sqlx::{Row as _, any::AnyRow};

use crate::{
    Quota, Refusal, StoreError,
    store::{MOST_ROWS, Store, count, millis},
    tenants::plain,
    text,
};

/// Most characters of a name.
const NAME: usize = 128;
/// When there may be room again.
const LATER: Duration = Duration::from_mins(1);

/// A snapshot. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptSnapshot {
    /// Whose it is.
    pub tenant: String,
    /// As the tenant calls it.
    pub name: String,
    /// The session whose files they are.
    pub session: String,
    /// What the engine calls it; `None` while it is made.
    pub image: Option<String>,
    /// When it was begun.
    pub created: i64,
}

impl KeptSnapshot {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.try_get("tenant")?,
            name: row.try_get("name")?,
            session: row.try_get("session")?,
            image: row.try_get("image")?,
            created: row.try_get("created")?,
        })
    }
}

/// What came of the wish for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotPlace {
    /// Its place is reserved.
    Made,
    /// The tenant has one of this name, or it is being made.
    There,
    /// There is no room for it.
    Refused(Refusal),
    /// The tenant is gone or disabled.
    NoTenant,
}

impl Store {
    /// Reserves a place for a snapshot, which is made within the time `hold`, if the quota has room and the tenant has none of
    /// this name.
    ///
    /// # Errors
    ///
    /// The name cannot be stored, or the database is away; nothing is reserved then.
    pub async fn reserve_snapshot(
        &self,
        tenant: &str,
        name: &str,
        session: &str,
        hold: Duration,
    ) -> Result<SnapshotPlace, StoreError> {
        let name = text::exact("the name of the snapshot", name, NAME)?;
        let reserved = async {
            let mut whole = self.begin().await?;
            let Some(known) = self.held(&mut whole, tenant).await?.filter(|tenant| !tenant.disabled) else {
                return Ok(SnapshotPlace::NoTenant);
            };
            let there = sqlx::query("SELECT name FROM snapshots WHERE tenant = $1 AND name = $2");
            if there.bind(tenant).bind(name).fetch_optional(&mut *whole).await?.is_some() {
                return Ok(SnapshotPlace::There);
            }
            let usage = sqlx::query("SELECT COUNT(*) AS kept FROM snapshots WHERE tenant = $1");
            let used = count(&usage.bind(tenant).fetch_one(&mut *whole).await?, "kept")?;
            if let Some(most) = known.limits.snapshots.filter(|most| used >= *most) {
                let refusal = Refusal { quota: Quota::Snapshots, used, wanted: 1, most, retry_after: LATER };
                return Ok(SnapshotPlace::Refused(refusal));
            }
            let sql = self.sql(
                "INSERT INTO snapshots (tenant, name, session, deadline, created) \
                 VALUES ($1, $2, $3, {now} + $4, {now})",
            );
            let query = sqlx::query(sql).bind(tenant).bind(name).bind(plain(session)).bind(millis(hold));
            query.execute(&mut *whole).await?;
            whole.commit().await?;
            Ok(SnapshotPlace::Made)
        };
        self.call("reserve a place for a snapshot", reserved).await
    }

    /// A snapshot is there, and this is what the engine calls it; `false` if it has no place any more.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn snapshot_made(&self, tenant: &str, name: &str, image: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE snapshots SET image = $3, deadline = NULL WHERE tenant = $1 AND name = $2 AND image IS NULL";
        let query = sqlx::query(sql).bind(plain(tenant)).bind(plain(name)).bind(plain(image));
        self.call("note a snapshot", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// A snapshot was not made, or is gone: its place is free.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn forget_snapshot(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let query = sqlx::query("DELETE FROM snapshots WHERE tenant = $1 AND name = $2");
        let query = query.bind(plain(tenant)).bind(plain(name));
        self.call("forget a snapshot", async { Ok(query.execute(self.pool()).await.map(drop)?) }).await
    }

    /// Whose snapshot an image is.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn snapshot_of(&self, image: &str) -> Result<Option<KeptSnapshot>, StoreError> {
        let sql = "SELECT tenant, name, session, image, created FROM snapshots WHERE image = $1";
        let found = async {
            let row = sqlx::query(sql).bind(plain(image)).fetch_optional(self.pool()).await?;
            Ok(row.as_ref().map(KeptSnapshot::of).transpose()?)
        };
        self.call("find a snapshot", found).await
    }

    /// The snapshots of a tenant by name, those behind `after`; at most [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn snapshots(&self, tenant: &str, after: &str) -> Result<Vec<KeptSnapshot>, StoreError> {
        let sql = "SELECT tenant, name, session, image, created FROM snapshots \
            WHERE tenant = $1 AND name > $2 AND image IS NOT NULL ORDER BY name LIMIT $3";
        let listed = async {
            let query = sqlx::query(sql).bind(plain(tenant)).bind(plain(after)).bind(i64::from(MOST_ROWS));
            let rows = query.fetch_all(self.pool()).await?;
            Ok(rows.iter().map(KeptSnapshot::of).collect::<Result<_, _>>()?)
        };
        self.call("list snapshots", listed).await
    }

    /// Snapshots that somebody must look after: those whose time to be made is over, and those of tenants that are no more. At
    /// most [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn abandoned_snapshots(&self) -> Result<Vec<KeptSnapshot>, StoreError> {
        let sql = self.sql(
            "SELECT tenant, name, session, image, created FROM snapshots \
             WHERE deadline < {now} OR tenant NOT IN (SELECT tenants.name FROM tenants) LIMIT $1",
        );
        let listed = async {
            let rows = sqlx::query(sql).bind(i64::from(MOST_ROWS)).fetch_all(self.pool()).await?;
            Ok(rows.iter().map(KeptSnapshot::of).collect::<Result<_, _>>()?)
        };
        self.call("list snapshots", listed).await
    }
}
