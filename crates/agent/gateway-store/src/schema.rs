//! The tables. Whoever connects brings them up to date, one at a time.

use gloveport_protocol::Secret;
use sqlx::Row as _;

use crate::{
    StoreError,
    store::{Dialect, Failure, Store},
};

/// What each version adds, in the words of SQLite and PostgreSQL.
const VERSIONS: [(&str, &str); 2] = [
    (
        concat!(include_str!("schema/1.sql"), include_str!("schema/1.sqlite.sql")),
        concat!(include_str!("schema/1.sql"), include_str!("schema/1.postgres.sql")),
    ),
    (include_str!("schema/2.sql"), include_str!("schema/2.sql")),
];
/// Keeps two gateways from bringing one PostgreSQL up to date at once.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305512)";

/// The newest version.
pub(crate) fn newest() -> i64 {
    i64::try_from(VERSIONS.len()).unwrap_or(i64::MAX)
}

/// The version of a database; 0 without tables.
pub(crate) async fn version(store: &Store) -> Result<i64, Failure> {
    let table = match store.dialect {
        Dialect::Sqlite => "SELECT COUNT(*) AS found FROM sqlite_master WHERE name = 'gateway_schema'",
        Dialect::Postgres => {
            "SELECT COUNT(*) AS found FROM pg_tables WHERE tablename = 'gateway_schema' \
            AND schemaname = ANY (current_schemas(false))"
        }
    };
    if sqlx::query(table).fetch_one(store.pool()).await?.try_get::<i64, _>("found")? == 0 {
        return Ok(0);
    }
    let row = sqlx::query("SELECT COALESCE(MAX(version), 0) AS version FROM gateway_schema");
    Ok(row.fetch_one(store.pool()).await?.try_get("version")?)
}

/// The secret of a database, which is this one if it has none.
pub(crate) async fn secret(store: &Store, new: &str) -> Result<Secret, Failure> {
    let sql = "INSERT INTO gateway_secret (one, secret) VALUES (1, $1) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(new).execute(store.pool()).await?;
    let row = sqlx::query("SELECT secret FROM gateway_secret").fetch_one(store.pool()).await?;
    Ok(Secret::new(row.try_get::<String, _>("secret")?))
}

/// Brings the tables up to date in one transaction.
pub(crate) async fn migrate(store: &Store) -> Result<(), Failure> {
    // A user without the right to make tables can use those that are there.
    if version(store).await? == newest() {
        return Ok(());
    }
    let mut whole = store.begin().await?;
    if store.dialect == Dialect::Postgres {
        sqlx::raw_sql(LOCK).execute(&mut *whole).await?;
    }
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS gateway_schema (version BIGINT PRIMARY KEY)")
        .execute(&mut *whole)
        .await?;
    let row = sqlx::query("SELECT COALESCE(MAX(version), 0) AS version FROM gateway_schema");
    let found: i64 = row.fetch_one(&mut *whole).await?.try_get("version")?;
    if found > newest() {
        return Err(StoreError::Schema { found, known: newest() }.into());
    }
    for (version, (sqlite, postgres)) in (1_i64..).zip(VERSIONS).filter(|(version, _)| *version > found) {
        let text = match store.dialect {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        };
        sqlx::raw_sql(text).execute(&mut *whole).await?;
        sqlx::query("INSERT INTO gateway_schema (version) VALUES ($1)").bind(version).execute(&mut *whole).await?;
    }
    whole.commit().await?;
    Ok(())
}
