//! `gloveport mcp login` and `logout`.

use std::{env, ffi::OsString, process::ExitCode};

use anyhow::Context as _;
use gloveport_mcp_client::{HttpServer, LoggedOut, LoginOptions, Revocation, TokenStore};
use gloveport_protocol::Secret;
use jiff::Timestamp;
use serde_json::json;

use super::arguments::{LoginArgs, LogoutArgs};
use crate::{
    key_file,
    output::{print, print_json, tell},
};

/// Where the tokens of this user are; none where there is no place for them.
pub(super) fn store() -> Option<TokenStore> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    TokenStore::of_user(&env::vars_os().filter_map(text).collect())
}

fn place() -> anyhow::Result<TokenStore> {
    store().context("there is no place for the tokens of logins: set HOME or XDG_DATA_HOME")
}

pub(super) async fn login(arguments: &LoginArgs) -> anyhow::Result<ExitCode> {
    let store = place()?;
    let options = LoginOptions {
        client_id: arguments.client_id.clone(),
        client_secret: arguments.client_secret_file.as_deref().map(key_file::given).transpose()?.map(Secret::new),
        scopes: arguments.scope.clone(),
        wait: arguments.timeout,
        ..LoginOptions::new(store)
    };
    let server = HttpServer::new(&arguments.url);
    let show = |page: &_| tell(&format!("Open this page in a browser of this machine to log in:\n\n    {page}\n"));
    let login = gloveport_mcp_client::login(&server, &options, show).await?;
    if arguments.json {
        let expires = login.expires.and_then(|expires| Timestamp::try_from(expires).ok());
        print_json(&json!({
            "server": login.server,
            "issuer": login.issuer,
            "scopes": login.scopes,
            "expires": expires.map(|expires| expires.to_string()),
            "can_refresh": login.can_refresh,
        }))?;
    } else {
        print(&format!("logged in at {} for {}\n", login.issuer, login.server))?;
        if !login.can_refresh {
            tell("note: the server does not renew this login; when it has expired you log in again");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn logout(arguments: &LogoutArgs) -> anyhow::Result<ExitCode> {
    let out = gloveport_mcp_client::logout(&HttpServer::new(&arguments.url), &place()?).await?;
    let (revoked, told) = match &out {
        LoggedOut::NothingKept => (None, "there was no login"),
        LoggedOut::Forgotten(Revocation::Done) => (Some(true), "logged out"),
        LoggedOut::Forgotten(Revocation::NotOffered) => {
            (Some(false), "logged out here; the server cannot revoke tokens, which end when they expire")
        }
        LoggedOut::Forgotten(Revocation::Failed(reason)) => {
            tracing::warn!("the tokens are forgotten here, but were not revoked: {reason}");
            (Some(false), "logged out here")
        }
    };
    if arguments.json {
        print_json(&json!({"forgotten": out != LoggedOut::NothingKept, "revoked": revoked}))?;
    } else {
        print(&format!("{told}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
