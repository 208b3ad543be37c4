//! Keys: `gp_<id>_<secret>`. The secret has 256 random bits; what is stored is the SHA-256 of the whole key.

use std::time::Duration;

use gloveport_ids::hex;
use gloveport_protocol::Secret;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::{Row as _, any::AnyRow};
use subtle::ConstantTimeEq as _;

use crate::{
    StoreError, Tenant,
    store::{Failure, MOST_ROWS, Store, millis},
    tenants::{self, plain},
    text,
};

/// What all keys begin with.
const BEGIN: &str = "gp_";
/// Hexadecimal digits of the id of a key.
const ID: usize = 16;
/// Hexadecimal digits of its secret.
const SECRET: usize = 64;
/// Most characters of a label.
const LABEL: usize = 128;
/// How many characters of a key are kept for people.
const START: usize = BEGIN.len() + ID + 1 + 4;
/// How exactly it is told when a key was used last.
const USED: i64 = 60_000;

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// What it is for.
    pub label: String,
    /// Its first characters.
    pub start: String,
    /// When it was made, in milliseconds since 1970, as all times here.
    pub created: i64,
    /// When it opens nothing any more.
    pub expires: Option<i64>,
    /// Since when it opens nothing.
    pub revoked: Option<i64>,
    /// When it was used last, to a minute.
    pub used: Option<i64>,
}

impl Key {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            label: row.try_get("label")?,
            start: row.try_get("start")?,
            created: row.try_get("created")?,
            expires: row.try_get("expires")?,
            revoked: row.try_get("revoked")?,
            used: row.try_get("used")?,
        })
    }
}

/// A key that was just made: nobody can read it again.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// The key.
    pub key: Secret,
}

/// What is known of a key that somebody shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCheck {
    /// It is good.
    Good {
        /// Whose it is.
        tenant: Box<Tenant>,
        /// Its id.
        id: String,
    },
    /// It is none.
    Unknown,
    /// It was one.
    Revoked {
        /// Its id.
        id: String,
    },
    /// Its time is over.
    Expired {
        /// Its id.
        id: String,
    },
}

/// The id in a key, if it looks like one.
fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(BEGIN)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (id.len() == ID && secret.len() == SECRET && is_hex(id) && is_hex(secret)).then_some(id)
}

fn hash(key: &str) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

fn made(tenant: &str) -> Result<(NewKey, String, String), StoreError> {
    let failed = |error: gloveport_ids::Error| StoreError::Random(error.to_string());
    let id = gloveport_ids::random::<{ ID / 2 }>().map_err(failed)?;
    let key = format!("{BEGIN}{id}_{}", gloveport_ids::random::<{ SECRET / 2 }>().map_err(failed)?);
    let (hash, start) = (hash(&key), key.chars().take(START).collect());
    Ok((NewKey { id, tenant: tenant.to_owned(), key: Secret::new(key) }, hash, start))
}

impl Store {
    /// Makes a key of a tenant, which opens nothing any more after `life`.
    ///
    /// # Errors
    ///
    /// There is no such tenant, the label is too long, or the database is away.
    pub async fn add_key(&self, tenant: &str, label: &str, life: Option<Duration>) -> Result<NewKey, StoreError> {
        text::exact("the label", label, LABEL)?;
        let (new, hash, start) = made(tenant)?;
        // From the tenants, so that a tenant that is deleted meanwhile has none.
        let sql = self.sql(
            "INSERT INTO api_keys (id, tenant, label, hash, start, created, expires) \
             SELECT $1, name, $3, $4, $5, {now}, {now} + $6 FROM tenants WHERE name = $2",
        );
        let query = sqlx::query(sql).bind(new.id.clone()).bind(plain(tenant)).bind(label);
        let query = query.bind(hash).bind(start).bind(life.map(millis));
        let added = async { Ok(query.execute(self.pool()).await?.rows_affected() > 0) };
        if self.call("make a key", added).await? { Ok(new) } else { Err(tenants::missing(tenant)) }
    }

    /// Makes a key in place of another one: of the same tenant and label, with the same time to live. The old one is
    /// revoked after `grace`.
    ///
    /// # Errors
    ///
    /// There is no such key, or it opens nothing any more, or the database is away.
    pub async fn rotate_key(&self, id: &str, grace: Duration) -> Result<NewKey, StoreError> {
        let (new, hash, start) = made("")?;
        let rotated = async {
            let mut whole = self.begin().await?;
            let sql = self.sql(
                "INSERT INTO api_keys (id, tenant, label, hash, start, created, expires) \
                 SELECT $1, tenant, label, $3, $4, {now}, {now} + (expires - created) FROM api_keys \
                 WHERE id = $2 AND revoked IS NULL AND (expires IS NULL OR expires > {now})",
            );
            let query = sqlx::query(sql).bind(new.id.clone()).bind(plain(id)).bind(hash).bind(start);
            if query.execute(&mut *whole).await?.rows_affected() == 0 {
                return Err(missing(id).into());
            }
            // A key that is to end sooner does.
            let sql = self.sql(
                "UPDATE api_keys SET revoked = CASE WHEN $2 = 0 THEN {now} END, expires = CASE \
                 WHEN expires IS NULL OR expires > {now} + $2 THEN {now} + $2 ELSE expires END WHERE id = $1",
            );
            sqlx::query(sql).bind(id).bind(millis(grace)).execute(&mut *whole).await?;
            let row = sqlx::query("SELECT tenant FROM api_keys WHERE id = $1").bind(id).fetch_one(&mut *whole).await?;
            whole.commit().await?;
            Ok(row.try_get("tenant")?)
        };
        Ok(NewKey { tenant: self.call("rotate a key", rotated).await?, ..new })
    }

    /// Revokes a key at once and for ever, and gives whose it was.
    ///
    /// # Errors
    ///
    /// There is no such key, or the database is away.
    pub async fn revoke_key(&self, id: &str) -> Result<Key, StoreError> {
        let revoked = async {
            let mut whole = self.begin().await?;
            let sql = self.sql("UPDATE api_keys SET revoked = {now} WHERE id = $1 AND revoked IS NULL");
            sqlx::query(sql).bind(plain(id)).execute(&mut *whole).await?;
            let row = sqlx::query("SELECT * FROM api_keys WHERE id = $1").bind(plain(id));
            let row = row.fetch_optional(&mut *whole).await?.ok_or_else(|| missing(id))?;
            whole.commit().await?;
            Ok(Key::of(&row)?)
        };
        self.call("revoke a key", revoked).await
    }

    /// Keys, the oldest first, those behind the id `after`; at most [`MOST_ROWS`].
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn keys(&self, tenant: Option<&str>, after: Option<&Key>) -> Result<Vec<Key>, StoreError> {
        let sql = "SELECT * FROM api_keys WHERE ($1 IS NULL OR tenant = $1) AND (created > $2 OR (created = $2 AND id > $3)) \
            ORDER BY created, id LIMIT $4";
        let (created, id) = after.map_or((-1, ""), |key| (key.created, key.id.as_str()));
        let listed = async {
            let query = sqlx::query(sql).bind(tenant.map(plain)).bind(created).bind(id);
            let rows = query.bind(i64::from(MOST_ROWS)).fetch_all(self.pool()).await?;
            Ok(rows.iter().map(Key::of).collect::<Result<_, _>>()?)
        };
        self.call("list keys", listed).await
    }

    /// What a text that somebody shows as a key is. One that is unknown costs the same work.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn check_key(&self, shown: &str) -> Result<KeyCheck, StoreError> {
        let (id, shown_hash) = (id_of(shown).unwrap_or_default(), hash(shown));
        let sql = self.sql(
            "SELECT api_keys.hash, api_keys.expires, api_keys.revoked, api_keys.used, {now} AS now, {tenant} \
             FROM api_keys JOIN tenants ON tenants.name = api_keys.tenant WHERE api_keys.id = $1",
        );
        let sql = sqlx::AssertSqlSafe(sql.0.replace("{tenant}", tenants::COLUMNS));
        let checked = async {
            let row = sqlx::query(sql).bind(id).fetch_optional(self.pool()).await?;
            let stored: String = row.as_ref().map(|row| row.try_get("hash")).transpose()?.unwrap_or_default();
            // A hash of nobody's, of the same length.
            let stored = if stored.is_empty() { "0".repeat(SECRET) } else { stored };
            let is_same = bool::from(stored.as_bytes().ct_eq(shown_hash.as_bytes()));
            let Some(row) = row.filter(|_| is_same && !id.is_empty()) else { return Ok(KeyCheck::Unknown) };
            let (now, id) = (row.try_get::<i64, _>("now")?, id.to_owned());
            if row.try_get::<Option<i64>, _>("revoked")?.is_some() {
                return Ok(KeyCheck::Revoked { id });
            }
            if row.try_get::<Option<i64>, _>("expires")?.is_some_and(|expires| expires <= now) {
                return Ok(KeyCheck::Expired { id });
            }
            let tenant = Box::new(Tenant::of(&row)?);
            if row.try_get::<Option<i64>, _>("used")?.is_none_or(|used| used <= now - USED) {
                self.tell_used(&id, now).await?;
            }
            Ok::<_, Failure>(KeyCheck::Good { tenant, id })
        };
        self.call("check a key", checked).await
    }

    async fn tell_used(&self, id: &str, now: i64) -> Result<(), sqlx::Error> {
        let sql = "UPDATE api_keys SET used = $2 WHERE id = $1 AND (used IS NULL OR used <= $3)";
        sqlx::query(sql).bind(id).bind(now).bind(now - USED).execute(self.pool()).await?;
        Ok(())
    }
}

fn missing(id: &str) -> StoreError {
    StoreError::Missing { what: "key that is good", name: text::bounded(id, 64) }
}
