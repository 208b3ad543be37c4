//! Checks of the signatures that the services ask for: version 4 of AWS, and tokens of service accounts.

use base64::{Engine as _, engine::general_purpose};
use http::{HeaderMap, Method, Uri};
use ring::{digest, hmac, signature};

use crate::stores::server::decoded;

/// The access key that the server knows.
pub(crate) const ACCESS_KEY: &str = "AKIDTEST";
pub(crate) const SECRET_KEY: &str = "secret/of+the=key";

/// The service account that the server knows; its key is made for these tests.
pub(crate) const ACCOUNT: &str = "tester@example.iam.gserviceaccount.com";
const ACCOUNT_KEY: &str = include_str!("account-key.pem");

/// The credentials file of the service account.
pub(crate) fn account_file() -> String {
    serde_json::json!({
        "type": "service_account",
        "project_id": "example",
        "private_key_id": "1",
        "private_key": ACCOUNT_KEY,
        "client_email": ACCOUNT,
        "client_id": "1",
        "token_uri": "http://127.0.0.1:1/no-token-is-fetched",
    })
    .to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// A part of a query as it is signed, however the client has encoded it.
fn strict(part: &str) -> String {
    let text = decoded(&part.replace('+', " "));
    let encoded = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect::<Vec<_>>().concat()
}

/// Whether a request is signed with the access key (AWS signature version 4, with the path and the query as they arrive).
pub(crate) fn is_signed_for_aws(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    let Some(fields) = header("authorization").strip_prefix("AWS4-HMAC-SHA256 ") else { return false };
    let field = |name: &str| fields.split(", ").find_map(|field| field.strip_prefix(name)).unwrap_or_default();
    let scope: Vec<&str> = field("Credential=").split('/').collect();
    let [id, date, region, service, "aws4_request"] = scope[..] else { return false };
    if id != ACCESS_KEY || header("x-amz-content-sha256") != sha256(body) {
        return false;
    }
    let mut query: Vec<String> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| format!("{}={}", strict(name), strict(value)))
        .collect();
    query.sort_unstable();
    let names = field("SignedHeaders=");
    let signed: Vec<String> = names.split(';').map(|name| format!("{name}:{}\n", header(name))).collect();
    let canonical =
        format!("{method}\n{}\n{}\n{}\n{names}\n{}", uri.path(), query.join("&"), signed.concat(), sha256(body));
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{date}/{region}/{service}/aws4_request\n{}",
        header("x-amz-date"),
        sha256(canonical.as_bytes())
    );
    let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
    for part in [date, region, service, "aws4_request"] {
        key = sign(&key, part);
    }
    hex(&sign(&key, &text)) == field("Signature=")
}

/// Whether a request has a token that the service account made for itself.
pub(crate) fn is_from_account(headers: &HeaderMap) -> bool {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some((text, sign)) = token.and_then(|token| token.rsplit_once('.')) else { return false };
    let decode = |text: &str| general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    let claims: serde_json::Value =
        serde_json::from_slice(&decode(text.split('.').nth(1).unwrap_or_default())).unwrap_or_default();
    let pem: String = ACCOUNT_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let key = signature::RsaKeyPair::from_pkcs8(&general_purpose::STANDARD.decode(pem).unwrap()).unwrap();
    let public = signature::UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    claims["iss"] == ACCOUNT && public.verify(text.as_bytes(), &decode(sign)).is_ok()
}
