//! Answers of the proxy itself: a page for a browser, JSON for everybody else.

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};

use crate::answer::Answer;

/// An answer that says what is wrong, in the form that the request asks for.
pub fn error_page(status: StatusCode, request: &HeaderMap, text: &str) -> Response<Answer> {
    let accepted = request.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let wants_page = accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/html"));
    let (kind, body) = if wants_page {
        ("text/html; charset=utf-8", page(status, text))
    } else {
        ("application/json", format!("{{\"detail\":{}}}", json_string(text)))
    };
    let mut response = Response::new(Answer::made(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

fn page(status: StatusCode, text: &str) -> String {
    let title = status.canonical_reason().unwrap_or("Error");
    format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px/1.5 sans-serif;margin:10vh auto;max-width:40em;padding:0 1em}}\
         pre{{white-space:pre-wrap;font:inherit}}</style>\
         <h1>{title}</h1><pre>{}</pre></html>\n",
        escape(text)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            control if u32::from(control) < 0x20 => quoted.extend(format!("\\u{:04x}", u32::from(control)).chars()),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn browsers_get_a_page_and_programs_get_json() {
        for (accept, kind, body) in [
            (None, "application/json", r#"{"detail":"<a> & \"b\"\n\u0001"}"#),
            (Some("*/*"), "application/json", r#"{"detail":"<a> & \"b\"\n\u0001"}"#),
            (
                Some("application/xhtml+xml, text/html;q=0.9"),
                "text/html; charset=utf-8",
                "&lt;a&gt; &amp; &quot;b&quot;\n\u{1}",
            ),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            let response = error_page(StatusCode::SERVICE_UNAVAILABLE, &headers, "<a> & \"b\"\n\u{1}");
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()[CONTENT_TYPE], kind);
            let text = response.into_body().collect().await.unwrap().to_bytes();
            let text = std::str::from_utf8(&text).unwrap();
            assert!(text == body || text.contains(&format!("<pre>{body}</pre>")), "{text}");
        }
    }
}
