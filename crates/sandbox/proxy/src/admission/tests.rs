//! Who is let in.

use super::*;

const TOKEN: &str = "0b5c1f8e-2d4a-4c57-9f0e-6a1f3b2c4d5e";

fn admission() -> Admission {
    Admission::new("code", Some(TOKEN.to_owned()))
}

/// What becomes of a request: `in` with the target, `->` with where it leads, or the status.
fn outcome(
    admission: &Admission,
    method: &Method,
    uri: &str,
    headers: &[(&'static str, &str)],
    trust: Trust,
) -> String {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    match admission.check(&mut request, &Mount::new("/plugins/code", ""), trust) {
        Ok(Admitted { cookie: None }) => format!("in {}", request.uri()),
        Ok(Admitted { cookie: Some(_) }) => format!("in with a cookie {}", request.uri()),
        Err(Turned(response)) => match response.headers().get(LOCATION) {
            Some(location) => format!("-> {}", location.to_str().unwrap()),
            None => response.status().as_str().to_owned(),
        },
    }
}

#[test]
fn the_token_in_a_url_becomes_a_cookie_and_leaves_the_url() {
    let right = |rest: &str| format!("/plugins/code{}", rest.replace("TOKEN", TOKEN));
    let encoded = TOKEN.replace('-', "%2D");
    for (uri, expected) in [
        (right("/?tkn=TOKEN"), "-> ./".to_owned()),
        (right("/?tkn=TOKEN&folder=/workspace"), "-> ./?folder=/workspace".to_owned()),
        (right("/?folder=/a%20b&tkn=TOKEN&x"), "-> ./?folder=/a%20b&x".to_owned()),
        (right(&format!("/?tkn={encoded}")), "-> ./".to_owned()),
        (right("/a:b/c:d?tkn=TOKEN"), "-> ./c:d".to_owned()),
        (right("?tkn=TOKEN&x=1"), "-> ./code/?x=1".to_owned()),
        (right("/?tkn=TOKENx"), "403".to_owned()),
        (right("/?tkn="), "403".to_owned()),
        (right("/?tkn"), "403".to_owned()),
        (right("/?Tkn=TOKEN"), "403".to_owned()),
    ] {
        assert_eq!(outcome(&admission(), &Method::GET, &uri, &[], Trust::Stranger), expected, "{uri}");
    }
    let mut request = Request::builder().uri(right("/?tkn=TOKEN")).header("x-forwarded-proto", "https");
    request = request.header("x-forwarded-prefix", "/box");
    let Err(Turned(response)) =
        admission().check(&mut request.body(()).unwrap(), &Mount::new("/plugins/code", ""), Trust::Stranger)
    else {
        panic!("it was let in with the token in its URL");
    };
    let value = |name: http::HeaderName| response.headers()[name].to_str().unwrap();
    let cookie = value(SET_COOKIE);
    let (name, rest) = cookie.split_once('=').unwrap();
    assert!(name.starts_with("gloveport-code-") && name.len() == "gloveport-code-".len() + 8, "{name}");
    assert_eq!(rest, format!("{TOKEN}; Path=/box/plugins/code/; HttpOnly; SameSite=Lax; Secure"));
    assert_eq!(
        (response.status().as_u16(), value(CACHE_CONTROL), value(REFERRER_POLICY)),
        (303, "no-store", "no-referrer")
    );
}

#[test]
fn what_opens_no_page_passes_with_the_token_and_loses_it() {
    let uri = format!("/plugins/code/x?a=1&tkn={TOKEN}");
    assert_eq!(outcome(&admission(), &Method::POST, &uri, &[], Trust::Stranger), "in /plugins/code/x?a=1");
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
    assert_eq!(outcome(&admission(), &Method::GET, &uri, &upgrade, Trust::Stranger), "in /plugins/code/x?a=1");
}

#[test]
fn a_cookie_lets_in_pages_of_the_same_origin_only() {
    let own = "http://box.example:8000";
    let good = format!("a=b; {}={TOKEN}", admission().cookie);
    let other = format!("{}={TOKEN}", Admission::new("code", Some("another".to_owned())).cookie);
    let wrong = format!("{}={}", admission().cookie, TOKEN.replace('0', "1"));
    let navigate = |site: &'static str, dest: &'static str| {
        vec![("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)]
    };
    for (method, cookie, headers, admitted) in [
        (Method::GET, &good, vec![], true),
        (Method::POST, &good, vec![("origin", own)], true),
        (Method::POST, &good, vec![("origin", "http://BOX.example:8000")], true),
        (Method::POST, &good, vec![("origin", "http://box.example:8001")], false),
        (Method::POST, &good, vec![("origin", "null")], false),
        (Method::GET, &good, vec![("origin", "https://evil.example"), ("upgrade", "websocket")], false),
        (Method::GET, &good, vec![("origin", "https://public.example"), ("x-forwarded-host", "public.example")], true),
        (Method::GET, &good, vec![("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors")], true),
        (Method::GET, &good, vec![("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")], true),
        (Method::GET, &good, vec![("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")], false),
        (Method::GET, &good, vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], false),
        (Method::GET, &good, navigate("cross-site", "document"), true),
        (Method::GET, &good, navigate("same-site", "iframe"), true),
        (Method::POST, &good, navigate("same-site", "document"), false),
        (Method::GET, &wrong, vec![], false),
        (Method::GET, &other, vec![], false),
        (Method::GET, &String::new(), vec![], false),
    ] {
        let mut all = vec![("host", "box.example:8000"), ("cookie", cookie.as_str())];
        all.extend(headers);
        let expected = if admitted { "in /plugins/code/x" } else { "403" };
        assert_eq!(
            outcome(&admission(), &method, "/plugins/code/x", &all, Trust::Stranger),
            expected,
            "{method} {all:?}"
        );
    }
}

#[test]
fn an_open_server_lets_in_programs_and_persons_and_no_page_that_nobody_has_opened() {
    const SITE: &str = "sec-fetch-site";
    let navigates = ("sec-fetch-mode", "navigate");
    let good = format!("{}={TOKEN}", admission().cookie);
    let cookie = ("cookie", good.as_str());
    let (inside, given, out) = ("in /plugins/code/x", "in with a cookie /plugins/code/x", "403");
    for (method, headers, expected) in [
        (Method::GET, vec![], inside),
        (Method::POST, vec![], inside),
        (Method::GET, vec![("accept-language", "*")], inside),
        (Method::GET, vec![("accept-language", "en")], out),
        (Method::GET, vec![("accept-language", "en"), cookie], inside),
        (Method::GET, vec![(SITE, "none"), navigates], given),
        (Method::GET, vec![(SITE, "none"), navigates, cookie], inside),
        // Which page of this origin it is nobody tells.
        (Method::GET, vec![(SITE, "same-origin")], out),
        (Method::GET, vec![(SITE, "same-origin"), navigates, ("sec-fetch-dest", "iframe")], out),
        (Method::GET, vec![(SITE, "same-origin"), cookie], inside),
        (Method::POST, vec![("origin", "http://localhost:8000")], out),
        (Method::POST, vec![("origin", "http://localhost:8000"), cookie], inside),
        (Method::GET, vec![("origin", "http://localhost:3000"), cookie], out),
        (Method::GET, vec![(SITE, "cross-site"), ("sec-fetch-mode", "no-cors"), cookie], out),
        (Method::GET, vec![(SITE, "cross-site"), navigates, ("sec-fetch-dest", "document")], out),
        (Method::GET, vec![(SITE, "cross-site"), navigates, ("sec-fetch-dest", "document"), cookie], inside),
        (Method::GET, vec![(SITE, "cross-site"), navigates, ("sec-fetch-dest", "iframe")], out),
    ] {
        let mut all = vec![("host", "localhost:8000")];
        all.extend(headers);
        assert_eq!(outcome(&admission(), &method, "/plugins/code/x", &all, Trust::Open), expected, "{method} {all:?}");
        let misnamed = if expected == inside && all.contains(&cookie) { inside } else { out };
        assert_eq!(
            outcome(&admission(), &method, "/plugins/code/x", &all, Trust::Misnamed),
            misnamed,
            "{method} {all:?}"
        );
    }
}

#[test]
fn whoever_has_the_key_passes_and_without_a_token_nobody_else_does() {
    for (admission, uri, trust, expected) in [
        (admission(), "/plugins/code/x?tkn=own", Trust::Known, "in /plugins/code/x?tkn=own"),
        (admission(), "/plugins/code/x", Trust::Known, "in /plugins/code/x"),
        (Admission::new("code", None), "/plugins/code/x", Trust::Known, "in /plugins/code/x"),
        (Admission::new("code", None), "/plugins/code/x", Trust::Stranger, "403"),
        (Admission::new("code", None), "/plugins/code/?tkn=", Trust::Stranger, "403"),
        (Admission::new("code", None), "/plugins/code/?tkn=own", Trust::Open, "in /plugins/code/?tkn=own"),
        (Admission::new("code", Some(String::new())), "/plugins/code/?tkn=", Trust::Stranger, "403"),
    ] {
        assert_eq!(outcome(&admission, &Method::GET, uri, &[], trust), expected, "{admission:?} {uri} {trust:?}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_do_and_nothing_shows_the_token() {
    use http_body_util::BodyExt as _;
    let first = "The URL must have a token when it is opened for the first time.";
    let framed = "A web page of another site shows this one, and browsers keep the cookie back there; open it in a \
                  window of its own.";
    for (uri, site, reason) in [
        ("/plugins/code/", "none", first),
        ("/plugins/code/", "cross-site", framed),
        (
            "/plugins/code/?tkn=x",
            "none",
            "The token in the URL is wrong; there is another one after each start of the sandbox.",
        ),
    ] {
        let request = Request::builder().uri(uri).header("sec-fetch-site", site).header("sec-fetch-mode", "navigate");
        let request = request.header("sec-fetch-dest", "iframe");
        let mount = Mount::new("/plugins/code", "");
        let Err(Turned(response)) = admission().check(&mut request.body(()).unwrap(), &mount, Trust::Stranger) else {
            panic!("a stranger was let in");
        };
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = format!(
            "{{\"detail\":\"code lets no one in without a proof. {reason} Open the URL that the sandbox gives for it, which \
             ends in ?tkn= and the token, or send the session's key as X-Session-API-Key.\"}}"
        );
        assert_eq!(body, expected);
    }
    assert_eq!(format!("{:?}", admission()), "Admission { name: \"code\", .. }");
}

#[test]
fn a_page_whose_path_was_cut_off_is_found_again_under_the_public_one() {
    let mount = Mount::new("/id/vscode", "").tolerant();
    for (uri, expected) in [
        ("/?tkn=TOKEN&folder=/workspace", "/id/vscode/?folder=/workspace"),
        ("/id/vscode?tkn=TOKEN&folder=/workspace", "./vscode/?folder=/workspace"),
        ("/id/vscode/?folder=/workspace&tkn=TOKEN", "./?folder=/workspace"),
    ] {
        let mut request = Request::builder().uri(uri.replace("TOKEN", TOKEN)).body(()).unwrap();
        let Err(Turned(response)) = admission().check(&mut request, &mount, Trust::Stranger) else {
            panic!("{uri} does not lead on");
        };
        assert_eq!(response.headers()[LOCATION], expected, "{uri}");
        assert!(response.headers()[SET_COOKIE].to_str().unwrap().contains("; Path=/id/vscode/; "), "{uri}");
    }
}
