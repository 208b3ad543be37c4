//! What pages cannot reach, as whom a browser runs, which proxies it uses, and where downloads go.

use std::os::unix::fs::{PermissionsExt as _, chown};

use gloveport_browser::BrowserState;
use gloveport_sys::Identity;

use crate::{
    house::{House, bid, words},
    site::Site,
};

/// A user without rights.
const NOBODY: u32 = 65534;

#[tokio::test]
async fn pages_of_the_web_reach_no_files() {
    const PAGES: &[(&str, &str, &str)] = &[
        (
            "/fetch",
            "",
            "<h1>.</h1><script>fetch('file:///etc/passwd').then((answer) => answer.text())\
            .then((text) => { document.body.textContent = text }, () => { document.title = 'refused' })</script>",
        ),
        ("/frame", "", "<h1>.</h1><iframe src='file:///etc/passwd'></iframe><embed src='file:///etc/passwd'>"),
        ("/go", "", "<h1>.</h1><script>location = 'file:///etc/passwd'</script>"),
        ("/open", "", "<h1>.</h1><script>open('file:///etc/passwd')</script>"),
        ("/redirect", "Location: file:///etc/passwd\r\n", ""),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(PAGES).await;
    for (path, ..) in PAGES {
        let step = house.step(&format!("goto('{}')", site.url(path))).await;
        let (urls, tree) = (&step.observation.open_pages, step.observation.axtree.to_string());
        assert!(!urls.iter().any(|url| url.starts_with("file:")), "{path}: {urls:?}");
        assert!(!tree.contains("root:x"), "{path}: {tree}");
        assert!(!format!("{:?}", step.observation.snapshot).contains("root:x"), "{path}");
        assert_eq!(*path == "/fetch", tree.contains("refused"), "{path}: {tree}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn downloads_are_complete_files_with_names_that_nobody_chose() {
    const PAGES: &[(&str, &str, &str)] = &[
        ("/", "", "<a href='/file'>get</a>"),
        (
            "/file",
            "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=\"../../x.txt\"\r\n",
            "contents",
        ),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(PAGES).await;
    let seen = house.see(&format!("goto('{}')", site.url("/"))).await;
    house.see(&format!("click('{}')", bid(&seen, "link"))).await;
    let step = house.step(&format!("goto('{}')", site.url("/file"))).await;
    assert!(words(&step).starts_with("Error: Page.goto: Download is starting"), "{}", words(&step));
    assert_eq!(downloaded(&house).await, ["contents", "contents"]);
    house.browser.close().await;
}

/// What all downloads are, once they are complete.
async fn downloaded(house: &House) -> Vec<String> {
    let directory = house.directory.path().join("downloads");
    house.browser.downloads_ended(std::time::Duration::from_secs(5)).await;
    let mut contents = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let guid = entry.unwrap().file_name().into_string().unwrap();
        assert_eq!(guid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{guid}");
        contents.push(std::fs::read_to_string(directory.join(&guid)).unwrap());
    }
    contents
}

#[tokio::test]
async fn proxies_are_used_for_all_but_the_names_that_are_left_out() {
    let proxy = Site::of(&[("http://some.test/", "", "<h1>by proxy")]).await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let house = House::with(|options| {
        for name in ["HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY", "NO_PROXY"] {
            options.surroundings.unset(name);
        }
        options.surroundings.set("http_proxy", address);
        options.surroundings.set("no_proxy", "other.invalid,.below.invalid");
    });
    let Some(house) = house else { return };
    assert!(house.see("goto('http://some.test/')").await.contains("heading 'by proxy'"));
    let asked = proxy.requests.lock().unwrap().len();
    for host in ["other.invalid", "a.below.invalid"] {
        let step = house.step(&format!("goto('http://{host}/')")).await;
        assert!(words(&step).contains("net::ERR_"), "{}", words(&step));
    }
    let requests = proxy.requests.lock().unwrap().split_off(asked);
    assert!(!requests.iter().any(|head| head.contains("invalid")), "{requests:?}");
    house.browser.close().await;
}

#[tokio::test]
async fn a_browser_of_another_user_reads_what_that_user_may_read() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root starts programs as others");
        return;
    }
    let house = House::with(|options| {
        options.surroundings.identity = Some(Identity { uid: NOBODY, gid: NOBODY, groups: Vec::new() });
        options.surroundings.set("HOME", options.surroundings.directory.clone());
        for directory in [&options.surroundings.directory, &options.downloads] {
            chown(directory, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    });
    let Some(house) = house else { return };
    let site = Site::of(&[("/", "Content-Disposition: attachment\r\n", "contents")]).await;
    let secret = house.directory.path().join("secret.txt");
    std::fs::write(&secret, "of root").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let open = house.directory.path().join("open.txt");
    std::fs::write(&open, "for all").unwrap();
    assert!(house.see(&format!("goto('file://{}')", open.display())).await.contains("for all"));
    let step = house.step(&format!("goto('file://{}')", secret.display())).await;
    assert!(words(&step).contains("net::ERR_ACCESS_DENIED"), "{}", words(&step));
    assert!(!step.observation.axtree.to_string().contains("of root"));
    let BrowserState::Ready { pid, sandboxed, .. } = *house.browser.state().borrow() else { panic!("it is not up") };
    println!("pages are kept apart by Chromium itself: {sandboxed}");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    for name in ["Uid", "Gid"] {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), ["65534"; 4]);
    }
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(sandboxed, !line.contains("--no-sandbox"));
    house.step(&format!("goto('{}')", site.url("/"))).await;
    assert_eq!(downloaded(&house).await, ["contents"]);
    let family = house.family();
    house.browser.close().await;
    family.is_gone(&house);
}
