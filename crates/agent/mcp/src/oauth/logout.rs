//! The end of a login.

use std::time::Duration;

use gloveport_protocol::Secret;
use reqwest::StatusCode;
use tokio::time::timeout;

use super::{
    OAuthError, TokenStore,
    login::address,
    record::Record,
    requests::{Requests, told},
    store::key,
};
use crate::HttpServer;

/// How long the authorization server may take to revoke tokens.
pub const REVOCATION_LIMIT: Duration = Duration::from_secs(10);

/// What came of a logout. In any case the tokens are not kept here any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedOut {
    /// There were no tokens.
    NothingKept,
    /// There were tokens, which are forgotten.
    Forgotten(Revocation),
}

/// Whether tokens that are forgotten are still good for somebody who has a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The authorization server has revoked them.
    Done,
    /// The authorization server has no way to revoke them; they end when they expire.
    NotOffered,
    /// The authorization server did not revoke them, and why.
    Failed(String),
}

/// Forgets the tokens of a server, and has them revoked where they came from, within [`REVOCATION_LIMIT`] (RFC 7009).
pub async fn logout(server: &HttpServer, store: &TokenStore) -> Result<LoggedOut, OAuthError> {
    let server = address(&server.url)?;
    let key = key(&server);
    // A refresh in another process would keep new tokens after this.
    let lock = store.lock_server(&key).await?;
    let Some(record) = store.remove(&key).await? else { return Ok(LoggedOut::NothingKept) };
    drop(lock);
    let Some(endpoint) = &record.revocation_endpoint else {
        return Ok(LoggedOut::Forgotten(Revocation::NotOffered));
    };
    let requests = Requests::for_server(&server)?;
    let revoked = timeout(REVOCATION_LIMIT, revoke(&requests, endpoint, &record)).await;
    let slow = || Err(format!("no answer within {} seconds", REVOCATION_LIMIT.as_secs()));
    Ok(LoggedOut::Forgotten(match revoked.unwrap_or_else(|_| slow()) {
        Ok(()) => Revocation::Done,
        Err(reason) => Revocation::Failed(reason),
    }))
}

/// Revokes both tokens. The first failure is told, and the other token is revoked nevertheless.
async fn revoke(requests: &Requests, endpoint: &str, record: &Record) -> Result<(), String> {
    let tokens = [("refresh_token", record.tokens.refresh.as_ref()), ("access_token", Some(&record.tokens.access))];
    let mut revoked = Ok(());
    for (kind, token) in tokens {
        let Some(token) = token else { continue };
        let fields = [("token", token.expose()), ("token_type_hint", kind), ("client_secret", "")];
        let mut answered = requests.form(endpoint, &record.client, &fields[..2]).await;
        // Servers of the official SDK for Python want the field of a secret also where there is none.
        if record.client.secret.is_none() && matches!(&answered, Ok(answer) if answer.status == StatusCode::BAD_REQUEST)
        {
            answered = requests.form(endpoint, &record.client, &fields).await;
        }
        let failure = match answered {
            Ok(answer) if answer.status.is_success() => continue,
            Ok(answer) => {
                let mut secrets: Vec<&Secret> = vec![token];
                secrets.extend(&record.client.secret);
                told(&answer, &secrets).1
            }
            Err(error) => error.to_string(),
        };
        revoked = revoked.and(Err(failure));
    }
    revoked
}
