//! From an order to a certificate.

use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeStatus, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};

use crate::{
    AcmeError, AcmeOptions,
    challenge::Shown,
    http::{self, accounts},
    store::Store,
};

/// How the authority is asked how far it is.
const POLL: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(500)).backoff(1.5).timeout(Duration::from_mins(5));

/// An account, and where it is one.
#[derive(Deserialize, Serialize)]
struct Kept {
    directory: String,
    email: Option<String>,
    credentials: AccountCredentials,
}

/// What the authority said, or why it could not be asked.
pub(crate) fn authority(what: &'static str) -> impl FnOnce(instant_acme::Error) -> AcmeError {
    move |error| AcmeError::Authority { what, reason: http::chain(&error) }
}

/// A new certificate: its key and its chain, in PEM form.
pub(crate) async fn order(options: &AcmeOptions, store: &Store) -> Result<String, AcmeError> {
    let account = account(options, store).await?;
    let names: Vec<Identifier> = options.names.iter().cloned().map(Identifier::Dns).collect();
    let ordered = account.new_order(&NewOrder::new(&names)).await;
    let mut order = ordered.map_err(authority("the authority takes no order"))?;
    let mut shown = Shown::new(store, options.dns_hook.as_deref());
    let proven = prove(&mut order, &mut shown).await;
    shown.remove().await;
    proven?;
    let key = KeyPair::generate().map_err(|source| AcmeError::Make { what: "a key", source })?;
    let request = request(&options.names, &key).map_err(|source| AcmeError::Make { what: "a request", source })?;
    order.finalize_csr(&request).await.map_err(authority("the authority refuses the request"))?;
    let chain = order.poll_certificate(&POLL).await.map_err(authority("the authority gives no certificate"))?;
    Ok(format!("{}{chain}", key.serialize_pem()))
}

fn request(names: &[String], key: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut made = CertificateParams::new(names)?;
    made.distinguished_name = DistinguishedName::new();
    Ok(made.serialize_request(key)?.der().to_vec())
}

/// The account that is kept, if it is one of this authority; otherwise a new one.
async fn account(options: &AcmeOptions, store: &Store) -> Result<Account, AcmeError> {
    let kept = store.account()?.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    if let Some(kept) = kept.filter(|kept| kept.directory == options.directory && kept.email == options.email) {
        let account = accounts(options.root.as_deref())?.from_credentials(kept.credentials).await;
        return account.map_err(authority("the authority does not answer"));
    }
    let contact: Vec<String> = options.email.iter().map(|email| format!("mailto:{email}")).collect();
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let asked = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let made = accounts(options.root.as_deref())?.create(&asked, options.directory.clone(), None).await;
    let (account, credentials) = made.map_err(authority("the authority makes no account"))?;
    let kept = Kept { directory: options.directory.clone(), email: options.email.clone(), credentials };
    let text = serde_json::to_string(&kept)
        .map_err(|error| AcmeError::Authority { what: "the account cannot be kept", reason: error.to_string() })?;
    store.set_account(&text)?;
    Ok(account)
}

/// Shows that all names are ours, and waits until the authority has seen it.
async fn prove(order: &mut Order, shown: &mut Shown<'_>) -> Result<(), AcmeError> {
    let failed = "the authority does not tell what it wants to see";
    let mut authorizations = order.authorizations();
    while let Some(next) = authorizations.next().await {
        let authorization = next.map_err(authority(failed))?;
        if authorization.status == AuthorizationStatus::Pending {
            shown.show(authorization).await?;
        }
    }
    let mut authorizations = order.authorizations();
    while let Some(next) = authorizations.next().await {
        let authorization = next.map_err(authority(failed))?;
        if authorization.status == AuthorizationStatus::Pending {
            shown.ready(authorization).await?;
        }
    }
    let what = "the authority did not come to a decision";
    let error = match order.poll_ready(&POLL).await {
        Ok(OrderStatus::Ready) => return Ok(()),
        Ok(status) => AcmeError::Authority { what, reason: format!("{status:?}") },
        Err(error) => authority(what)(error),
    };
    Err(refusal(order).await.unwrap_or(error))
}

/// What the authority has found wrong.
async fn refusal(order: &mut Order) -> Option<AcmeError> {
    let mut authorizations = order.authorizations();
    while let Some(next) = authorizations.next().await {
        let mut authorization = next.ok()?;
        authorization.refresh().await.ok()?;
        let found = authorization.challenges.iter().find(|challenge| challenge.status == ChallengeStatus::Invalid);
        if let Some(problem) = found.and_then(|challenge| challenge.error.as_ref()) {
            return Some(AcmeError::Refused {
                name: authorization.identifier().to_string(),
                reason: problem.to_string(),
            });
        }
    }
    None
}
