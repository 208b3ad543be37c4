//! Sessions: places for sandboxes that are reserved before they are made, and what has become of them.
//!
//! A place is `reserved` until somebody was told of its sandbox, then `running`, `paused` and `ended`. Those that are reserved or running
//! count for the quotas. All changes of one tenant's places that count more are made one after another.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};
use sqlx::{Any, Row as _, Transaction, any::AnyRow};

use crate::{
    Limits, StoreError, Tenant,
    store::{Failure, MOST_ROWS, Store, count, millis, number},
    tenants::{self, plain},
    text::bounded,
};

/// Most characters of an image or a reason.
const TEXT: usize = 512;
/// The time in which starts are counted.
const MINUTE: i64 = 60_000;
/// When a place may be free again that others hold.
const LATER: Duration = Duration::from_secs(15);

/// What a session has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Its sandbox is being made, or nobody was told of it yet.
    Reserved,
    /// It has a sandbox.
    Running,
    /// Its sandbox rests.
    Paused,
    /// Its sandbox is gone.
    Ended,
}

impl SessionState {
    const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }

    fn of(name: &str) -> Result<Self, sqlx::Error> {
        let all = [Self::Reserved, Self::Running, Self::Paused, Self::Ended];
        let unknown = || sqlx::Error::Decode(format!("a session is `{name}`").into());
        all.into_iter().find(|state| state.name() == name).ok_or_else(unknown)
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for SessionState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A session. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    /// The id of its place.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// Its id as the tenant knows it.
    pub session: String,
    /// Its sandbox.
    pub runtime: Option<String>,
    /// The image that was asked for.
    pub image: Option<String>,
    /// Processors that count for it, in thousandths.
    pub cpu_millis: u64,
    /// Memory that counts for it, in bytes.
    pub memory_bytes: u64,
    /// What it has become.
    pub state: SessionState,
    /// The gateway that reserved its place.
    pub gateway: String,
    /// When its reservation is over, unless it is renewed.
    pub deadline: Option<i64>,
    /// When its place was reserved.
    pub created: i64,
    /// When its sandbox was there.
    pub started: Option<i64>,
    /// When it ended.
    pub ended: Option<i64>,
    /// When something of this changed last.
    pub changed: i64,
    /// Why it ended.
    pub reason: Option<String>,
}

impl Session {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            session: row.try_get("session")?,
            runtime: row.try_get("runtime")?,
            image: row.try_get("image")?,
            cpu_millis: count(row, "cpu_millis")?,
            memory_bytes: count(row, "memory_bytes")?,
            state: SessionState::of(&row.try_get::<String, _>("state")?)?,
            gateway: row.try_get("gateway")?,
            deadline: row.try_get("deadline")?,
            created: row.try_get("created")?,
            started: row.try_get("started")?,
            ended: row.try_get("ended")?,
            changed: row.try_get("changed")?,
            reason: row.try_get("reason")?,
        })
    }
}

/// What a sandbox that is to be made will use.
#[derive(Clone, Debug)]
pub struct Wants<'a> {
    /// The session, as the tenant knows it.
    pub session: &'a str,
    /// The image.
    pub image: Option<&'a str>,
    /// Processors, in thousandths.
    pub cpu_millis: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// A place that was reserved, by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub String);

/// What came of the wish for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is reserved.
    Made(Place),
    /// The session has one.
    There(Box<Session>),
    /// There is none left.
    Refused(Refusal),
    /// The tenant is gone or disabled.
    NoTenant,
}

/// A quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// Running sandboxes.
    Running,
    /// Their processors, in thousandths.
    Cpu,
    /// Their memory, in bytes.
    Memory,
    /// Starts within a minute.
    Starts,
    /// Snapshots that are kept.
    Snapshots,
}

/// Why there is no place left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which quota.
    pub quota: Quota,
    /// How much of it is used.
    pub used: u64,
    /// How much more was asked for.
    pub wanted: u64,
    /// How much there is.
    pub most: u64,
    /// When it is worth trying again.
    pub retry_after: Duration,
}

impl Refusal {
    /// Whether it will never be possible, however little others use.
    pub const fn is_final(&self) -> bool {
        self.wanted > self.most
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { used, wanted, most, .. } = *self;
        match self.quota {
            Quota::Running => write!(f, "{used} of {most} sandboxes of the tenant are running"),
            Quota::Cpu => {
                let [used, wanted, most] = [used, wanted, most].map(thousandths);
                write!(f, "{used} of {most} processors of the tenant are in use, and {wanted} more were asked for")
            }
            Quota::Memory => {
                let [used, wanted, most] = [used, wanted, most].map(|bytes| bytes / (1024 * 1024));
                write!(f, "{used} of {most} MiB of memory of the tenant are in use, and {wanted} more were asked for")
            }
            Quota::Snapshots => write!(f, "{used} of {most} snapshots of the tenant are kept"),
            Quota::Starts => write!(f, "{used} of {most} sandboxes of the tenant were started within a minute"),
        }
    }
}

fn thousandths(number: u64) -> String {
    if number.is_multiple_of(1000) {
        (number / 1000).to_string()
    } else {
        format!("{}.{:03}", number / 1000, number % 1000)
    }
}

/// What a tenant uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Sandboxes that run or are being made.
    pub running: u64,
    /// Sandboxes that rest.
    pub paused: u64,
    /// Processors of those that run, in thousandths.
    pub cpu_millis: u64,
    /// Memory of those that run, in bytes.
    pub memory_bytes: u64,
    /// Starts within the last minute.
    pub starts: u64,
    /// Snapshots that are kept or being made.
    pub snapshots: u64,
}

/// What a tenant uses, with the time of its oldest start within a minute.
const USAGE: &str = "SELECT \
    COALESCE(SUM(CASE WHEN state IN ('reserved', 'running') THEN 1 ELSE 0 END), 0) AS running_now, \
    COALESCE(SUM(CASE WHEN state = 'paused' THEN 1 ELSE 0 END), 0) AS paused_now, \
    CAST(COALESCE(SUM(CASE WHEN state IN ('reserved', 'running') THEN cpu_millis ELSE 0 END), 0) AS BIGINT) AS cpu_now, \
    CAST(COALESCE(SUM(CASE WHEN state IN ('reserved', 'running') THEN memory_bytes ELSE 0 END), 0) AS BIGINT) \
        AS memory_now, \
    COALESCE(SUM(CASE WHEN created > {now} - 60000 THEN 1 ELSE 0 END), 0) AS starts_now, \
    MIN(CASE WHEN created > {now} - 60000 THEN created END) AS first_start, \
    (SELECT COUNT(*) FROM snapshots WHERE snapshots.tenant = $1) AS snapshots_now, \
    {now} AS now \
    FROM sessions WHERE tenant = $1 AND (state <> 'ended' OR created > {now} - 60000)";

/// Refuses what a quota has no room for.
fn refuse(row: &AnyRow, limits: &Limits, wants: [u64; 4]) -> Result<Option<Refusal>, sqlx::Error> {
    let first: Option<i64> = row.try_get("first_start")?;
    let passed = row.try_get::<i64, _>("now")? - first.unwrap_or_default();
    let rest = Duration::from_millis(u64::try_from(MINUTE - passed).unwrap_or_default()) + Duration::from_millis(1);
    let quotas = [
        (Quota::Running, "running_now", limits.running, LATER),
        (Quota::Cpu, "cpu_now", limits.cpu_millis, LATER),
        (Quota::Memory, "memory_now", limits.memory_bytes, LATER),
        (Quota::Starts, "starts_now", limits.starts_per_minute, rest),
    ];
    for ((quota, column, most, retry_after), wanted) in quotas.into_iter().zip(wants) {
        let (used, Some(most)) = (count(row, column)?, most) else { continue };
        if wanted > 0 && used.saturating_add(wanted) > most {
            return Ok(Some(Refusal { quota, used, wanted, most, retry_after }));
        }
    }
    Ok(None)
}

impl Store {
    /// The tenant, whose places nobody else changes until the transaction ends.
    pub(crate) async fn held(
        &self,
        whole: &mut Transaction<'static, Any>,
        tenant: &str,
    ) -> Result<Option<Tenant>, Failure> {
        let sql = self.sql("SELECT {tenant} FROM tenants WHERE name = $1 {lock}");
        let sql = sqlx::AssertSqlSafe(sql.0.replace("{tenant}", tenants::COLUMNS));
        let row = sqlx::query(sql).bind(plain(tenant)).fetch_optional(&mut **whole).await?;
        row.as_ref().map(Tenant::of).transpose()
    }

    /// Reserves a place for a session for the time `hold`, if the quotas have room and the session has none.
    ///
    /// # Errors
    ///
    /// The database is away; nothing is reserved then.
    pub async fn reserve(
        &self,
        tenant: &str,
        wants: &Wants<'_>,
        gateway: &str,
        hold: Duration,
    ) -> Result<Reserved, StoreError> {
        let id = gloveport_ids::random::<16>().map_err(|error| StoreError::Random(error.to_string()))?;
        let reserved = async {
            let mut whole = self.begin().await?;
            let Some(known) = self.held(&mut whole, tenant).await?.filter(|tenant| !tenant.disabled) else {
                return Ok(Reserved::NoTenant);
            };
            // A reservation that nobody has renewed is over.
            let sql = self.sql(
                "UPDATE sessions SET state = 'ended', ended = {now}, changed = {now}, reason = 'its gateway has died' \
                 WHERE tenant = $1 AND session = $2 AND state = 'reserved' AND deadline < {now}",
            );
            sqlx::query(sql).bind(tenant).bind(plain(wants.session)).execute(&mut *whole).await?;
            let there = sqlx::query("SELECT * FROM sessions WHERE tenant = $1 AND session = $2 AND state <> 'ended'");
            let there = there.bind(tenant).bind(plain(wants.session)).fetch_optional(&mut *whole).await?;
            if let Some(row) = there {
                let there = Session::of(&row)?;
                whole.commit().await?;
                return Ok(Reserved::There(Box::new(there)));
            }
            let usage = sqlx::query(self.sql(USAGE)).bind(tenant).fetch_one(&mut *whole).await?;
            let wanted = [1, wants.cpu_millis, wants.memory_bytes, 1];
            if let Some(refusal) = refuse(&usage, &known.limits, wanted)? {
                whole.commit().await?;
                return Ok(Reserved::Refused(refusal));
            }
            let sql = self.sql(
                "INSERT INTO sessions (id, tenant, session, image, cpu_millis, memory_bytes, state, gateway, deadline, \
                 created, changed) VALUES ($1, $2, $3, $4, $5, $6, 'reserved', $7, {now} + $8, {now}, {now})",
            );
            sqlx::query(sql)
                .bind(id.clone())
                .bind(tenant)
                .bind(wants.session)
                .bind(wants.image.map(|image| bounded(image, TEXT)))
                .bind(number(wants.cpu_millis))
                .bind(number(wants.memory_bytes))
                .bind(gateway)
                .bind(millis(hold))
                .execute(&mut *whole)
                .await?;
            whole.commit().await?;
            Ok(Reserved::Made(Place(id.clone())))
        };
        self.call("reserve a place", reserved).await
    }

    /// Holds a place for longer; `false` for one that is no longer reserved.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn renew(&self, place: &Place, hold: Duration) -> Result<bool, StoreError> {
        let sql = self.sql("UPDATE sessions SET deadline = {now} + $2 WHERE id = $1 AND state = 'reserved'");
        let query = sqlx::query(sql).bind(place.0.clone()).bind(millis(hold));
        self.call("renew a place", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// The sandbox of a place is there, and nobody was told of it yet: the place stays reserved. `false` for a place that is no
    /// longer reserved.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn made(&self, place: &Place, runtime: &str) -> Result<bool, StoreError> {
        let sql = self.sql("UPDATE sessions SET runtime = $2, changed = {now} WHERE id = $1 AND state = 'reserved'");
        let query = sqlx::query(sql).bind(place.0.clone()).bind(runtime);
        self.call("note a sandbox", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// The sandbox of a place is there, and its client knows; `false` for a place that is no longer reserved.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn started(&self, place: &Place, runtime: &str) -> Result<bool, StoreError> {
        let sql = self.sql(
            "UPDATE sessions SET state = 'running', runtime = $2, started = {now}, changed = {now}, deadline = NULL \
             WHERE id = $1 AND state = 'reserved'",
        );
        let query = sqlx::query(sql).bind(place.0.clone()).bind(runtime);
        self.call("note a sandbox", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// The sandbox of a place is to be deleted because nobody was told of it: the place is reserved for the time `hold`, without
    /// a sandbox. `false` if it is somebody's by now.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn withdrawn(&self, place: &Place, runtime: &str, hold: Duration) -> Result<bool, StoreError> {
        let sql = self.sql(
            "UPDATE sessions SET runtime = NULL, changed = {now}, deadline = {now} + $3 \
             WHERE id = $1 AND state = 'reserved' AND runtime = $2",
        );
        let query = sqlx::query(sql).bind(place.0.clone()).bind(plain(runtime)).bind(millis(hold));
        self.call("withdraw a sandbox", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// No sandbox was made in a place.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn released(&self, place: &Place, reason: &str) -> Result<(), StoreError> {
        let sql = self.sql(
            "UPDATE sessions SET state = 'ended', ended = {now}, changed = {now}, reason = $2 \
             WHERE id = $1 AND state = 'reserved'",
        );
        let query = sqlx::query(sql).bind(place.0.clone()).bind(bounded(reason, TEXT));
        self.call("release a place", async { Ok(query.execute(self.pool()).await.map(drop)?) }).await
    }

    /// Lets a paused sandbox count as running, if the quotas have room; `None` if it does.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn resuming(&self, tenant: &str, runtime: &str) -> Result<Option<Refusal>, StoreError> {
        let resumed = async {
            let mut whole = self.begin().await?;
            let Some(known) = self.held(&mut whole, tenant).await? else { return Ok(None) };
            let row = sqlx::query("SELECT * FROM sessions WHERE tenant = $1 AND runtime = $2 AND state = 'paused'");
            let row = row.bind(tenant).bind(plain(runtime)).fetch_optional(&mut *whole).await?;
            let Some(session) = row.as_ref().map(Session::of).transpose()? else { return Ok(None) };
            let usage = sqlx::query(self.sql(USAGE)).bind(tenant).fetch_one(&mut *whole).await?;
            let wanted = [1, session.cpu_millis, session.memory_bytes, 0];
            if let Some(refusal) = refuse(&usage, &known.limits, wanted)? {
                return Ok(Some(refusal));
            }
            let sql = self.sql("UPDATE sessions SET state = 'running', changed = {now} WHERE id = $1");
            sqlx::query(sql).bind(session.id).execute(&mut *whole).await?;
            whole.commit().await?;
            Ok(None)
        };
        self.call("reserve a place", resumed).await
    }

    /// A sandbox rests.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn paused(&self, runtime: &str) -> Result<(), StoreError> {
        // Whoever lets it rest knows of it, so that a reservation is over.
        self.turn(
            "UPDATE sessions SET state = 'paused', changed = {now}, deadline = NULL \
             WHERE runtime = $1 AND state IN ('running', 'reserved')",
            runtime,
        )
        .await
    }

    /// A sandbox goes on, whether the quotas have room or not: it does already.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn goes_on(&self, runtime: &str) -> Result<(), StoreError> {
        let sql = "UPDATE sessions SET state = 'running', changed = {now} WHERE runtime = $1 AND state = 'paused'";
        self.turn(sql, runtime).await
    }

    async fn turn(&self, sql: &'static str, runtime: &str) -> Result<(), StoreError> {
        let query = sqlx::query(self.sql(sql)).bind(plain(runtime));
        self.call("note a sandbox", async { Ok(query.execute(self.pool()).await.map(drop)?) }).await
    }

    /// A sandbox is gone.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn ended(&self, runtime: &str, reason: &str) -> Result<(), StoreError> {
        let sql = self.sql(
            "UPDATE sessions SET state = 'ended', ended = {now}, changed = {now}, reason = $2 \
             WHERE runtime = $1 AND state <> 'ended'",
        );
        let query = sqlx::query(sql).bind(plain(runtime)).bind(bounded(reason, TEXT));
        self.call("note an end", async { Ok(query.execute(self.pool()).await.map(drop)?) }).await
    }

    /// A sandbox is there without a place of its own: it gets one, unless its session has one.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn adopt(
        &self,
        tenant: &str,
        wants: &Wants<'_>,
        runtime: &str,
        is_paused: bool,
        gateway: &str,
    ) -> Result<bool, StoreError> {
        let id = gloveport_ids::random::<16>().map_err(|error| StoreError::Random(error.to_string()))?;
        let sql = self.sql(
            "INSERT INTO sessions (id, tenant, session, runtime, image, cpu_millis, memory_bytes, state, gateway, created, \
             started, changed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now} - 60000, {now}, {now}) \
             ON CONFLICT DO NOTHING",
        );
        let query = sqlx::query(sql)
            .bind(id)
            .bind(plain(tenant))
            .bind(plain(wants.session))
            .bind(plain(runtime))
            .bind(wants.image.map(|image| bounded(image, TEXT)))
            .bind(number(wants.cpu_millis))
            .bind(number(wants.memory_bytes))
            .bind(if is_paused { "paused" } else { "running" })
            .bind(gateway);
        self.call("note a sandbox", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// The session of a sandbox that is not gone.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn of_runtime(&self, runtime: &str) -> Result<Option<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE runtime = $1 AND state <> 'ended'";
        let found = async {
            let row = sqlx::query(sql).bind(plain(runtime)).fetch_optional(self.pool()).await?;
            Ok(row.as_ref().map(Session::of).transpose()?)
        };
        self.call("find a session", found).await
    }

    /// The live session of a tenant.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn of_session(&self, tenant: &str, session: &str) -> Result<Option<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE tenant = $1 AND session = $2 AND state <> 'ended'";
        let found = async {
            let query = sqlx::query(sql).bind(plain(tenant)).bind(plain(session));
            Ok(query.fetch_optional(self.pool()).await?.as_ref().map(Session::of).transpose()?)
        };
        self.call("find a session", found).await
    }

    /// Sessions that have not ended, of one tenant or of all, by the id of their place, those behind `after`; at most
    /// [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn live(&self, tenant: Option<&str>, after: &str) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE state <> 'ended' AND ($1 IS NULL OR tenant = $1) AND id > $2 ORDER BY id LIMIT $3";
        let listed = async {
            let query = sqlx::query(sql).bind(tenant.map(plain)).bind(plain(after));
            let rows = query.bind(i64::from(MOST_ROWS)).fetch_all(self.pool()).await?;
            Ok(rows.iter().map(Session::of).collect::<Result<_, _>>()?)
        };
        self.call("list sessions", listed).await
    }

    /// Sessions, the newest first, those made before `before`; at most `most`, and [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn history(
        &self,
        tenant: Option<&str>,
        before: Option<i64>,
        most: u32,
    ) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE ($1 IS NULL OR tenant = $1) AND created < $2 ORDER BY created DESC, id LIMIT $3";
        let listed = async {
            let query = sqlx::query(sql).bind(tenant.map(plain)).bind(before.unwrap_or(i64::MAX));
            let rows = query.bind(i64::from(most.min(MOST_ROWS))).fetch_all(self.pool()).await?;
            Ok(rows.iter().map(Session::of).collect::<Result<_, _>>()?)
        };
        self.call("list sessions", listed).await
    }

    /// What a tenant uses.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn usage(&self, tenant: &str) -> Result<Usage, StoreError> {
        let used = async {
            let row = sqlx::query(self.sql(USAGE)).bind(plain(tenant)).fetch_one(self.pool()).await?;
            Ok(Usage {
                running: count(&row, "running_now")?,
                paused: count(&row, "paused_now")?,
                cpu_millis: count(&row, "cpu_now")?,
                memory_bytes: count(&row, "memory_now")?,
                starts: count(&row, "starts_now")?,
                snapshots: count(&row, "snapshots_now")?,
            })
        };
        self.call("tell what a tenant uses", used).await
    }

    /// The time of the database, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn now(&self) -> Result<i64, StoreError> {
        let sql = self.sql("SELECT {now} AS now");
        self.call("tell the time", async { Ok(sqlx::query(sql).fetch_one(self.pool()).await?.try_get("now")?) }).await
    }
}
