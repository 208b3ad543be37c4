//! Tenants, and what each of them may use.

use serde::Serialize;
use sqlx::{Row as _, any::AnyRow};

use crate::{
    StoreError,
    store::{Failure, MOST_ROWS, Store, number, some_count},
    text,
};

/// Most patterns of a list.
const PATTERNS: usize = 100;
/// Most characters of a pattern.
const PATTERN: usize = 256;

/// What a tenant may use. What is `None` has no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Sandboxes that run at a time. Paused ones do not count.
    pub running: Option<u64>,
    /// Processors of these together, in thousandths.
    pub cpu_millis: Option<u64>,
    /// Memory of these together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Starts within a minute.
    pub starts_per_minute: Option<u64>,
    /// Snapshots that are kept.
    pub snapshots: Option<u64>,
    /// Patterns of images, with `*` and `?`.
    pub images: Option<Vec<String>>,
    /// Runtime classes beside the usual one.
    pub classes: Option<Vec<String>>,
    /// Largest resource factor.
    pub largest_factor: Option<u64>,
    /// How long a sandbox may live, in seconds.
    pub longest_life: Option<u64>,
    /// How long a sandbox may be idle, in seconds.
    pub longest_idle: Option<u64>,
}

impl Limits {
    fn lists(&self) -> Result<[Option<String>; 2], StoreError> {
        let list = |field: &'static str, list: &Option<Vec<String>>| {
            let Some(list) = list else { return Ok(None) };
            if list.len() > PATTERNS {
                return Err(StoreError::Value { field, reason: format!("there are more than {PATTERNS}") });
            }
            for pattern in list {
                text::exact(field, pattern, PATTERN)?;
            }
            Ok(Some(serde_json::Value::from(list.clone()).to_string()))
        };
        Ok([list("images", &self.images)?, list("classes", &self.classes)?])
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Its name: 1 to 32 of `a-z`, `0-9` and `-`, a letter first.
    pub name: String,
    /// What it may use.
    #[serde(flatten)]
    pub limits: Limits,
    /// Its keys open nothing, though its sandboxes go on.
    pub disabled: bool,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
}

/// The columns of a tenant.
pub(crate) const COLUMNS: &str = "tenants.name, tenants.running, tenants.cpu_millis, tenants.memory_bytes, \
    tenants.starts_per_minute, tenants.snapshots, tenants.images, tenants.classes, tenants.largest_factor, tenants.longest_life, \
    tenants.longest_idle, tenants.disabled, tenants.created";

impl Tenant {
    pub(crate) fn of(row: &AnyRow) -> Result<Self, Failure> {
        let list = |column: &'static str| -> Result<Option<Vec<String>>, Failure> {
            let Some(json) = row.try_get::<Option<String>, _>(column)? else { return Ok(None) };
            let list = serde_json::from_str(&json).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            Ok(Some(list))
        };
        Ok(Self {
            name: row.try_get("name")?,
            limits: Limits {
                running: some_count(row, "running")?,
                cpu_millis: some_count(row, "cpu_millis")?,
                memory_bytes: some_count(row, "memory_bytes")?,
                starts_per_minute: some_count(row, "starts_per_minute")?,
                snapshots: some_count(row, "snapshots")?,
                images: list("images")?,
                classes: list("classes")?,
                largest_factor: some_count(row, "largest_factor")?,
                longest_life: some_count(row, "longest_life")?,
                longest_idle: some_count(row, "longest_idle")?,
            },
            disabled: row.try_get::<i64, _>("disabled")? != 0,
            created: row.try_get("created")?,
        })
    }
}

impl Store {
    /// Makes a tenant; `false` if there is one of this name, which stays as it is.
    ///
    /// # Errors
    ///
    /// The name or a limit cannot be stored, or the database is away.
    pub async fn add_tenant(&self, name: &str, limits: &Limits) -> Result<bool, StoreError> {
        let name = text::tenant(name)?;
        let [images, classes] = limits.lists()?;
        let sql = self.sql(
            "INSERT INTO tenants (name, running, cpu_millis, memory_bytes, starts_per_minute, images, classes, \
             largest_factor, longest_life, longest_idle, snapshots, created) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, {now}) ON CONFLICT DO NOTHING",
        );
        let query = bind_limits(sqlx::query(sql).bind(name), limits, images, classes);
        self.call("make a tenant", async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) }).await
    }

    /// Sets all limits of a tenant, and whether it is disabled.
    ///
    /// # Errors
    ///
    /// There is none, a limit cannot be stored, or the database is away.
    pub async fn set_tenant(&self, name: &str, limits: &Limits, disabled: bool) -> Result<(), StoreError> {
        let [images, classes] = limits.lists()?;
        let sql = "UPDATE tenants SET running = $2, cpu_millis = $3, memory_bytes = $4, starts_per_minute = $5, \
            images = $6, classes = $7, largest_factor = $8, longest_life = $9, longest_idle = $10, snapshots = $11, disabled = $12 \
            WHERE name = $1";
        let query = bind_limits(sqlx::query(sql).bind(name), limits, images, classes).bind(i64::from(disabled));
        let set = async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) };
        if self.call("change a tenant", set).await? { Ok(()) } else { Err(missing(name)) }
    }

    /// A tenant.
    ///
    /// # Errors
    ///
    /// There is none, or the database is away.
    pub async fn tenant(&self, name: &str) -> Result<Tenant, StoreError> {
        self.find_tenant(name).await?.ok_or_else(|| missing(name))
    }

    /// A tenant, if there is one of this name.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn find_tenant(&self, name: &str) -> Result<Option<Tenant>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM tenants WHERE name = $1"));
        let found = async {
            let row = sqlx::query(sql).bind(plain(name)).fetch_optional(self.pool()).await?;
            row.as_ref().map(Tenant::of).transpose()
        };
        self.call("find a tenant", found).await
    }

    /// Tenants by name, those behind `after`; at most [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn tenants(&self, after: &str) -> Result<Vec<Tenant>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM tenants WHERE name > $1 ORDER BY name LIMIT $2"));
        let listed = async {
            let rows = sqlx::query(sql).bind(plain(after)).bind(i64::from(MOST_ROWS)).fetch_all(self.pool()).await?;
            rows.iter().map(Tenant::of).collect()
        };
        self.call("list tenants", listed).await
    }

    /// Deletes a tenant and its keys. Its history and its lines in the audit log stay. With `force` also one that has
    /// sandboxes or snapshots, which go on until a gateway ends them.
    ///
    /// # Errors
    ///
    /// There is none, it has sandboxes or snapshots, or the database is away.
    pub async fn delete_tenant(&self, name: &str, force: bool) -> Result<(), StoreError> {
        let id = gloveport_ids::random::<16>().map_err(|error| StoreError::Random(error.to_string()))?;
        let deleted = async {
            let mut whole = self.begin().await?;
            let row = sqlx::query(self.sql("SELECT name FROM tenants WHERE name = $1 {lock}"));
            if row.bind(plain(name)).fetch_optional(&mut *whole).await?.is_none() {
                return Err(missing(name).into());
            }
            let row = sqlx::query("SELECT COUNT(*) AS live FROM sessions WHERE tenant = $1 AND state <> 'ended'");
            let live = crate::store::count(&row.bind(name).fetch_one(&mut *whole).await?, "live")?;
            let row = sqlx::query("SELECT COUNT(*) AS kept FROM snapshots WHERE tenant = $1");
            let kept = crate::store::count(&row.bind(name).fetch_one(&mut *whole).await?, "kept")?;
            if (live > 0 || kept > 0) && !force {
                return Err(StoreError::InUse { name: name.to_owned(), sandboxes: live, snapshots: kept }.into());
            }
            // A tenant that gets this name later has none of them.
            let gone = "UPDATE snapshots SET tenant = $2 WHERE tenant = $1";
            sqlx::query(gone).bind(name).bind(format!("#{id}")).execute(&mut *whole).await?;
            sqlx::query("DELETE FROM api_keys WHERE tenant = $1").bind(name).execute(&mut *whole).await?;
            sqlx::query("DELETE FROM tenants WHERE name = $1").bind(name).execute(&mut *whole).await?;
            whole.commit().await?;
            Ok(())
        };
        self.call("delete a tenant", deleted).await
    }
}

pub(crate) fn missing(name: &str) -> StoreError {
    StoreError::Missing { what: "tenant", name: text::bounded(name, 64) }
}

/// A text that nothing is named by if PostgreSQL cannot take it.
pub(crate) fn plain(text: &str) -> &str {
    if text.contains('\0') { "" } else { text }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

fn bind_limits<'q>(query: Query<'q>, limits: &Limits, images: Option<String>, classes: Option<String>) -> Query<'q> {
    query
        .bind(limits.running.map(number))
        .bind(limits.cpu_millis.map(number))
        .bind(limits.memory_bytes.map(number))
        .bind(limits.starts_per_minute.map(number))
        .bind(images)
        .bind(classes)
        .bind(limits.largest_factor.map(number))
        .bind(limits.longest_life.map(number))
        .bind(limits.longest_idle.map(number))
        .bind(limits.snapshots.map(number))
}
