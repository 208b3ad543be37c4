//! The connection to a database, with time limits for all that is asked of it.

use std::{future::Future, net::IpAddr, sync::Once, time::Duration};

use gloveport_platform::private_file;
use gloveport_protocol::Secret;
use gloveport_resolver::Resolver;
use sha2::{Digest as _, Sha256};
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, Connection as _, Row as _, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions, AnyRow},
};
use tokio::time::timeout;

use crate::{Location, StoreError, schema};

/// Most rows that are given at once.
pub const MOST_ROWS: u32 = 1000;
/// Time for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Time for one call, whatever it asks.
const CALL: Duration = Duration::from_secs(5);
/// Most connections of a gateway.
const CONNECTIONS: u32 = 8;
/// What each connection to SQLite begins with. A writer waits for another one less than the limit of its call.
const SQLITE: &str = "PRAGMA busy_timeout = 4000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
/// What each connection to PostgreSQL begins with.
const POSTGRES: &str = "SET statement_timeout = 5000; SET lock_timeout = 4000; SET \
    idle_in_transaction_session_timeout = 10000;";

static DRIVERS: Once = Once::new();

/// The kinds of databases, as far as they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The time of the database in milliseconds since 1970, which is one for all gateways.
    const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// How a transaction begins that will write.
    const fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Holds the rows of a question until the transaction ends. SQLite has one writer at a time.
    const fn lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }
}

/// A database of gateways. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    pub(crate) dialect: Dialect,
    location: Location,
    /// What [`Store::open`] has found or made.
    secret: Secret,
}

impl Store {
    /// Connects, and brings the tables up to date.
    ///
    /// # Errors
    ///
    /// The database is not there, cannot be written, or has been brought up to date by a newer version.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let mut store = Self::connect(location).await?;
        store.call("be brought up to date", schema::migrate(&store)).await?;
        let new = gloveport_ids::random::<32>().map_err(|error| StoreError::Random(error.to_string()))?;
        store.secret = store.call("tell its secret", schema::secret(&store, &new)).await?;
        Ok(store)
    }

    /// Connects and changes nothing, but for a file that is made.
    ///
    /// # Errors
    ///
    /// The database is not there.
    pub async fn connect(location: &Location) -> Result<Self, StoreError> {
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let (dialect, first) = match location {
            Location::File(path) => {
                let failed = |source| StoreError::File { path: path.clone(), source };
                // It has keys' hashes and everybody's history, so nobody else gets to read it.
                drop(private_file().create(true).truncate(false).read(true).write(true).open(path).map_err(failed)?);
                (Dialect::Sqlite, SQLITE)
            }
            Location::Postgres(_) => (Dialect::Postgres, POSTGRES),
        };
        let place = location.to_string();
        let away = |error: sqlx::Error| StoreError::Away {
            place: place.clone(),
            action: "be reached",
            reason: reason(location, &error),
        };
        // A pool tries again and again, and does not tell why.
        let tried = async {
            let mut last = None;
            for options in all_options(location).await? {
                match try_once(&options, first).await {
                    Ok(()) => return Ok(options),
                    Err(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or_else(|| sqlx::Error::Configuration("its host has no address".into())))
        };
        let late = |_| StoreError::Timeout { place: place.clone(), action: "be reached", limit: CONNECT };
        let good = timeout(CONNECT, tried).await.map_err(late)?.map_err(away)?;
        let options = AnyPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT).after_connect(
            move |connection, _| Box::pin(async move { sqlx::raw_sql(first).execute(connection).await.map(drop) }),
        );
        let pool = options.connect_lazy_with(good);
        Ok(Self { pool, dialect, location: location.clone(), secret: Secret::new("") })
    }

    /// Digits for the name that a text gets at the engine: the same from all gateways over this database, and nobody without it
    /// can find them.
    pub fn digest(&self, text: &str) -> String {
        // The secret has a fixed length, and what the digits say is cut short, so that nobody can go on from them.
        let digest = Sha256::new().chain_update(self.secret.expose()).chain_update(text).finalize();
        gloveport_ids::hex(&digest[..20])
    }

    /// Which database it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The version of the tables in the database, and that which this program knows.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn schema(&self) -> Result<(i64, i64), StoreError> {
        Ok((self.call("tell its schema", schema::version(self)).await?, schema::newest()))
    }

    /// Closes the connections.
    pub async fn close(&self) {
        let _late = timeout(CALL, self.pool.close()).await;
    }

    pub(crate) fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// A statement in the words of this database.
    pub(crate) fn sql(&self, text: &'static str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("{now}", self.dialect.now()).replace("{lock}", self.dialect.lock()))
    }

    /// A transaction that will write.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        self.pool.begin_with(self.dialect.begin()).await
    }

    /// One call, which ends in time. What was not committed has not happened.
    pub(crate) async fn call<T>(
        &self,
        action: &'static str,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, StoreError> {
        let place = || self.location.to_string();
        match timeout(CALL, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Failure::Told(error))) => Err(error),
            Ok(Err(Failure::Database(error))) => {
                Err(StoreError::Away { place: place(), action, reason: reason(&self.location, &error) })
            }
            Err(_) => Err(StoreError::Timeout { place: place(), action, limit: CALL }),
        }
    }
}

async fn try_once(options: &AnyConnectOptions, first: &'static str) -> Result<(), sqlx::Error> {
    let mut connection = AnyConnection::connect_with(options).await?;
    sqlx::raw_sql(first).execute(&mut connection).await?;
    connection.close().await
}

/// How a database is reached: one way for each address of its host. The driver would ask the C library for these, which a
/// static program must not do.
async fn all_options(location: &Location) -> Result<Vec<AnyConnectOptions>, sqlx::Error> {
    let options: AnyConnectOptions = location.url().parse()?;
    let Location::Postgres(_) = location else { return Ok(vec![options]) };
    let is_name = |host: &str| !host.is_empty() && !host.starts_with(['/', '%']) && host.parse::<IpAddr>().is_err();
    if options.database_url.query_pairs().any(|(key, value)| key == "host" && is_name(&value)) {
        return Err(sqlx::Error::Configuration("write the host before the path, and not as a parameter".into()));
    }
    let host = options.database_url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let addresses = match host.parse() {
        Ok(address) => vec![address],
        Err(_) if is_name(&host) => Resolver::default().addresses(&host).await?,
        Err(_) => return Ok(vec![options]),
    };
    let with = |address: IpAddr| {
        let mut options = options.clone();
        options.database_url.query_pairs_mut().append_pair("hostaddr", &address.to_string());
        options
    };
    Ok(addresses.into_iter().map(with).collect())
}

/// What the database says, without the password.
fn reason(location: &Location, error: &sqlx::Error) -> String {
    location.without_password(&match error {
        sqlx::Error::PoolTimedOut => "it does not answer".to_owned(),
        error => error.to_string(),
    })
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Database(sqlx::Error),
    Told(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

/// A number of the database that is never negative.
pub(crate) fn count(row: &AnyRow, column: &str) -> Result<u64, sqlx::Error> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default())
}

/// As [`count`], where there may be none.
pub(crate) fn some_count(row: &AnyRow, column: &str) -> Result<Option<u64>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(|number| u64::try_from(number).unwrap_or_default()))
}

/// A number for the database, which has no larger ones.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time in milliseconds for the database.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}
