//! Images of a registry, on good days and on bad ones.

use std::{fs, sync::Mutex, time::Duration};

use gloveport_oci_image::{ImageError, Limits, Progress, Pull};
use serde_json::json;

use crate::{
    server::{Door, Fault, Server},
    support::{Made, Place, file, image, made, names, quiet, tar, text},
};

/// Bytes that cannot be compressed.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn large() -> Made {
    let layer = tar(&[file("a", noise(300_000))]);
    made(&[(layer.clone(), layer)])
}

fn short() -> Limits {
    Limits { silence: Duration::from_millis(400), connect: Duration::from_secs(2), ..Limits::default() }
}

fn log_in(place: &Place, server: &Server, password: &str) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let host = server.address.to_string();
    let auths = json!({"auths": {host: {"auth": STANDARD.encode(format!("user:{password}"))}}});
    fs::write(place.path("config.json"), auths.to_string()).unwrap();
}

#[tokio::test]
async fn an_image_is_pulled_once_and_again_when_its_tag_has_moved() {
    let (place, server) = (Place::new(), Server::new(image(&[vec![file("a", "1")], vec![file("b", "2")]])).await);
    let told = Mutex::new(Vec::new());
    let tell = |progress| told.lock().unwrap().push(progress);
    let first = place.store.get(&server.reference(), Pull::Missing, &tell).await.unwrap();
    assert_eq!(names(&first.root), ["a", "b"]);
    let told = told.into_inner().unwrap();
    assert_eq!((told[0], told[told.len() - 1]), (Progress::Resolving, Progress::Done));
    let size = server.served.image.lock().unwrap().layers.iter().map(|layer| layer.bytes.len() as u64).sum();
    assert!(told.contains(&Progress::Downloading { done: size, whole: size }), "{told:?}");
    let count = server.seen().len();
    assert_eq!(count, 4);
    place.get(&server.reference()).await.unwrap();
    assert_eq!(server.seen().len(), count);
    // Manifest and configuration are read again, layers are not.
    place.store.get(&server.reference(), Pull::Always, &quiet).await.unwrap();
    assert_eq!((server.seen().len(), server.layers().len()), (count + 2, 2));
    let pinned = format!(
        "{}/team/image@{}",
        server.address,
        crate::support::digest(&server.served.image.lock().unwrap().manifest.bytes)
    );
    assert_eq!(place.get(&pinned).await.unwrap().root, first.root);
    *server.served.image.lock().unwrap() = image(&[vec![file("a", "new")]]);
    assert_eq!(place.get(&server.reference()).await.unwrap().root, first.root);
    let second = place.store.get(&server.reference(), Pull::Always, &quiet).await.unwrap();
    assert_eq!((text(first.root.join("a")), text(second.root.join("a"))), ("1".into(), "new".into()));
    // A digest never stands for something else, and is not asked for again.
    let count = server.seen().len();
    assert_eq!(place.store.get(&pinned, Pull::Always, &quiet).await.unwrap().root, first.root);
    assert_eq!(server.seen().len(), count);
}

#[tokio::test]
async fn registries_that_want_a_token_or_a_password_get_it() {
    for (door, password, expected) in [
        (Door::Token, None, Ok(())),
        (Door::Token, Some("password"), Ok(())),
        (Door::TokenForUser, Some("password"), Ok(())),
        (Door::Basic, Some("password"), Ok(())),
        (Door::TokenForUser, None, Err("or it wants a login")),
        (Door::Basic, None, Err("or it wants a login")),
        (Door::TokenForUser, Some("s3cret"), Err("were refused")),
        (Door::Basic, Some("s3cret"), Err("were refused")),
    ] {
        let (place, server) = (Place::new(), Server::new(image(&[vec![file("a", "1")]])).await);
        *server.served.door.lock().unwrap() = door;
        if let Some(password) = password {
            log_in(&place, &server, password);
        }
        match (place.get(&server.reference()).await, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{door:?}: {error}");
                assert!(!format!("{error:?} {error}").contains("s3cret"), "{error:?}");
                place.assert_empty();
            }
            (got, expected) => panic!("{door:?}, {password:?}: {got:?}, and not {expected:?}"),
        }
        let tokens = server.seen().into_iter().filter(|seen| seen.path.starts_with("/token")).collect::<Vec<_>>();
        if let Some(first) = tokens.first() {
            assert_eq!(tokens.len(), 1);
            assert_eq!(first.path, "/token?scope=repository%3Ateam%2Fimage%3Apull&service=the+registry");
        }
    }
    let (place, server) = (Place::new(), Server::new(image(&[])).await);
    *server.served.door.lock().unwrap() = Door::Basic;
    fs::write(place.path("config.json"), r#"{"credsStore": "desktop"}"#).unwrap();
    let error = place.get(&server.reference()).await.unwrap_err().to_string();
    assert!(error.contains("the program `docker-credential-desktop`, which is not run"), "{error}");
}

#[tokio::test]
async fn redirections_are_followed_without_what_lets_requests_in() {
    let (place, server) = (Place::new(), Server::new(large()).await);
    let store = Server::new(large()).await;
    *server.served.door.lock().unwrap() = Door::Token;
    let blob = crate::support::digest(&large().layers[0].bytes);
    server.layer_faults([Fault::Redirect(format!("http://{}/elsewhere/{blob}?key=s3cret", store.address))]);
    place.get(&server.reference()).await.unwrap();
    assert_eq!(store.seen().len(), 1);
    assert_eq!(store.seen()[0].authorization, None);
    for to in [
        "http://registry.example/x",
        "http://169.254.169.254/x",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
    ] {
        let (place, server) = (Place::new(), Server::new(large()).await);
        server.layer_faults([Fault::Redirect(to.into())]);
        let error = place.get(&server.reference()).await.unwrap_err().to_string();
        assert!(error.contains("an address without encryption, or to none"), "{to}: {error}");
        place.assert_empty();
    }
    let (place, server) = (Place::new(), Server::new(large()).await);
    server.layer_faults(vec![Fault::Redirect(format!("/v2/team/image/blobs/{blob}")); 10]);
    let error = place.get(&server.reference()).await.unwrap_err().to_string();
    assert!(error.contains("without an end"), "{error}");
}

#[tokio::test]
async fn broken_downloads_go_on_where_they_broke_or_begin_anew_three_times_at_most() {
    for (what, faults, ranges) in [
        (
            "twice",
            vec![Fault::Break(100_000), Fault::Break(50_000)],
            vec![None, Some("bytes=100000-"), Some("bytes=150000-")],
        ),
        ("no parts", vec![Fault::Break(100_000), Fault::Whole], vec![None, Some("bytes=100000-")]),
        ("busy", vec![Fault::Status(503), Fault::Status(429)], vec![None, None, None]),
        ("silence", vec![Fault::Silence(1000)], vec![None, Some("bytes=1000-")]),
        ("late", vec![Fault::Late(Duration::from_secs(5))], vec![None, None]),
    ] {
        let (place, server) = (Place::with(short()), Server::new(large()).await);
        server.layer_faults(faults);
        let got = place.get(&server.reference()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(fs::read(got.root.join("a")).unwrap(), noise(300_000), "{what}");
        let seen = server.layers();
        assert_eq!(seen.iter().map(|seen| seen.range.as_deref()).collect::<Vec<_>>(), ranges, "{what}");
    }
    for (faults, part) in [
        (vec![Fault::Break(10); 3], "it was tried 3 times"),
        (vec![Fault::Silence(10); 3], "it was tried 3 times"),
        (vec![Fault::Status(500); 3], "(it says: the registry's words); it was tried 3 times"),
        (vec![Fault::Status(403)], "access was denied"),
        (vec![Fault::Status(404)], "it has no such thing"),
        (vec![Fault::Status(400)], "it answered 400"),
    ] {
        let (place, server) = (Place::with(short()), Server::new(large()).await);
        let count = faults.len();
        server.layer_faults(faults);
        let error = place.get(&server.reference()).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(server.layers().len(), count);
        place.assert_empty();
    }
}

#[tokio::test]
async fn wrong_bytes_are_refused() {
    let right = large().layers[0].bytes.clone();
    let mut other = right.clone();
    other[600] ^= 1;
    let longer = [right.clone(), vec![0; 512]].concat();
    for (what, fault, part) in [
        ("other bytes", Fault::Other(other), "is damaged or was exchanged"),
        ("fewer bytes", Fault::Other(right[..1000].to_vec()), "and the manifest says"),
        ("more bytes", Fault::Other(longer), "and the manifest says"),
        ("no end", Fault::Endless(right), "more bytes than"),
    ] {
        let (place, server) = (Place::new(), Server::new(large()).await);
        server.layer_faults([fault]);
        let error = place.get(&server.reference()).await.unwrap_err();
        assert!(error.to_string().contains(part), "{what}: {error}");
        place.assert_empty();
    }
    let (place, server) = (Place::new(), Server::new(large()).await);
    let manifest = server.served.image.lock().unwrap().manifest.bytes.clone();
    server.served.manifest.lock().unwrap().push_back(Fault::Other(b"{}".to_vec()));
    let pinned = format!("{}/team/image@{}", server.address, crate::support::digest(&manifest));
    let error = place.get(&pinned).await.unwrap_err();
    assert!(matches!(error, ImageError::Digest { .. }), "{error}");
    server.served.manifest.lock().unwrap().extend([Fault::Whole, Fault::Other(b"{}".to_vec())]);
    let error = place.get(&server.reference()).await.unwrap_err();
    assert!(error.to_string().contains("the configuration of"), "{error}");
}

#[tokio::test]
async fn documents_that_are_huge_or_garbage_are_refused() {
    for (fault, part) in [
        (Fault::Other(b"<html>".to_vec()), "its manifest is none"),
        (Fault::Other(br#"{"schemaVersion": 1, "fsLayers": []}"#.to_vec()), "schema version 1, which is not supported"),
        (Fault::Other(vec![b' '; 5 << 20]), "more than 4194304 bytes"),
        (Fault::Endless(vec![b' '; 65_536]), "more than 4194304 bytes"),
        (Fault::Other(vec![b'['; 1 << 20]), "its manifest is none"),
        (Fault::Status(401), "a kind of login that is not known"),
    ] {
        let (place, server) = (Place::with(short()), Server::new(large()).await);
        server.served.manifest.lock().unwrap().push_back(fault);
        let error = place.get(&server.reference()).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    for fault in [
        Fault::Endless(vec![b' '; 65_536]),
        Fault::Other(b"{}".to_vec()),
        Fault::Other(b"{\"token\": \"a\\nb\"}".to_vec()),
    ] {
        let (place, server) = (Place::with(short()), Server::new(large()).await);
        *server.served.door.lock().unwrap() = Door::Token;
        server.served.token.lock().unwrap().push_back(fault);
        assert!(matches!(place.get(&server.reference()).await.unwrap_err(), ImageError::Registry { .. }));
    }
    let place = Place::with(short());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = place.get(&format!("{free}/x")).await.unwrap_err().to_string();
    assert!(error.contains("tried 3 times") && error.contains(&free.to_string()), "{error}");
}

#[tokio::test]
async fn no_more_than_three_layers_are_downloaded_at_once() {
    let layers: Vec<_> = (0..8).map(|number| vec![file(format!("{number}"), noise(1000))]).collect();
    let (place, server) = (Place::new(), Server::new(image(&layers)).await);
    let got = place.get(&server.reference()).await.unwrap();
    assert_eq!(names(&got.root).len(), 8);
    assert_eq!(server.served.most_at_once.load(std::sync::atomic::Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_pull_that_nobody_waits_for_ends_and_leaves_nothing() {
    let (place, server) = (Place::new(), Server::new(large()).await);
    server.layer_faults([Fault::Silence(1000)]);
    let got = tokio::time::timeout(Duration::from_millis(300), place.get(&server.reference())).await;
    assert!(got.is_err());
    place.assert_empty();
    place.get(&server.reference()).await.unwrap();
}
