//! Pages on paper.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gloveport_protocol::browser::PdfRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    browser::BrowserError,
    cdp::{CdpError, Session, understood},
    live::Live,
};

/// Longest document, in bytes.
const LONGEST: usize = 256 * 1024 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 1024 * 1024;
/// Time for the pages to be made.
const TIME: Duration = Duration::from_secs(100);

/// Refuses what no page can be printed with.
pub(super) fn check(request: &PdfRequest) -> Result<(), BrowserError> {
    match request.scale {
        Some(scale) if !(0.1..=2.0).contains(&scale) => {
            Err(BrowserError::Invalid(format!("the scale {scale} is not from 0.1 to 2")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Prints the active page.
pub(super) async fn print(live: &Live, request: &PdfRequest) -> Result<Vec<u8>, BrowserError> {
    let page = |error: CdpError| BrowserError::Page(error.to_string());
    let session = live.page_session(&live.active().await.map_err(page)?).map_err(page)?;
    let parameters = json!({
        "landscape": request.landscape, "printBackground": request.background, "scale": request.scale.unwrap_or(1.0),
        "pageRanges": request.pages.as_deref().unwrap_or_default(), "transferMode": "ReturnAsStream",
    });
    let printed = session.call_within("Page.printToPDF", parameters, TIME).await.map_err(|error| match error {
        CdpError::Refused { message, .. } if message.to_lowercase().contains("page range") => {
            let pages = request.pages.as_deref().unwrap_or_default();
            BrowserError::Invalid(format!("the pages {pages:?} cannot be printed: {message}"))
        }
        error => page(error),
    })?;
    let stream = printed.get("stream").cloned().unwrap_or_default();
    let bytes = read(&session, &stream).await;
    session.tell("IO.close", json!({ "handle": stream }));
    bytes
}

async fn read(session: &Session, stream: &Value) -> Result<Vec<u8>, BrowserError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Piece {
        #[serde(default)]
        base64_encoded: bool,
        data: String,
        eof: bool,
    }
    const METHOD: &str = "IO.read";
    let page = |error: CdpError| BrowserError::Page(error.to_string());
    let mut bytes = Vec::new();
    loop {
        let answer = session.call(METHOD, json!({ "handle": stream, "size": PIECE })).await.map_err(page)?;
        let Piece { base64_encoded, data, eof } = understood(METHOD, answer).map_err(page)?;
        if base64_encoded {
            let piece = BASE64_STANDARD
                .decode(data)
                .map_err(|error| page(CdpError::Unexpected { method: METHOD.to_owned(), reason: error.to_string() }))?;
            bytes.extend(piece);
        } else {
            bytes.extend(data.into_bytes());
        }
        if bytes.len() > LONGEST {
            return Err(BrowserError::Page(format!("the PDF is longer than {} MiB", LONGEST / 1024 / 1024)));
        }
        if eof {
            return Ok(bytes);
        }
    }
}
