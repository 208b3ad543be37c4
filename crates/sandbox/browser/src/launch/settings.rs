//! The command line of Chromium.

use std::{ffi::OsString, path::Path};

use gloveport_sys::Surroundings;

use crate::world::{PAGE_HEIGHT, PAGE_WIDTH};

/// What every browser gets: no window, nothing that talks to its maker, nothing that waits for a person, pages that go on
/// in the background, and looks that do not depend on the machine.
const ALWAYS: [&str; 38] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-quic",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--allow-pre-commit-input",
    "--enable-automation",
    "--export-tagged-pdf",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/// What is off, because it would change what a page looks like, or when.
const OFF: &str = "--disable-features=AcceptCHFrame,AutoExpandDetailsElement,AvoidUnnecessaryBeforeUnloadCheckSync,\
CertificateTransparencyComponentUpdater,DestroyProfileOnBrowserClose,DialMediaRouteProvider,GlobalMediaControls,\
HttpsUpgrades,ImprovedCookieControls,LazyFrameLoading,LensOverlay,MediaRouter,OptimizationHints,PaintHolding,\
ThirdPartyStoragePartitioning,Translate";

/// All arguments behind the program's name.
pub(super) fn arguments(surroundings: &Surroundings, profile: &Path, sandboxed: bool) -> Vec<OsString> {
    let mut all: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
    all.push(OFF.into());
    all.push(format!("--window-size={PAGE_WIDTH},{PAGE_HEIGHT}").into());
    let mut directory = OsString::from("--user-data-dir=");
    directory.push(profile);
    all.push(directory);
    if !sandboxed {
        all.push("--no-sandbox".into());
    }
    all.extend(proxies(surroundings).into_iter().map(OsString::from));
    all
}

/// The proxies that the environment names, without names and passwords: those would be for every process to read.
fn proxies(surroundings: &Surroundings) -> Vec<String> {
    let value = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| surroundings.variable(name))?;
        value.to_str().map(str::to_owned)
    };
    let mut servers = Vec::new();
    for (scheme, names) in [("http", ["http_proxy", "HTTP_PROXY"]), ("https", ["https_proxy", "HTTPS_PROXY"])] {
        if let Some(server) = value(names).or_else(|| value(["all_proxy", "ALL_PROXY"])) {
            servers.push(format!("{scheme}={}", without_password(&server)));
        }
    }
    if servers.is_empty() {
        return Vec::new();
    }
    let mut all = vec![format!("--proxy-server={}", servers.join(";"))];
    if let Some(exceptions) = value(["no_proxy", "NO_PROXY"]) {
        let exceptions: Vec<String> = exceptions
            .split(',')
            .map(str::trim)
            .filter(|exception| !exception.is_empty())
            // A name stands for all below it, too.
            .map(|exception| if exception.starts_with('.') { format!("*{exception}") } else { exception.to_owned() })
            .collect();
        all.push(format!("--proxy-bypass-list={}", exceptions.join(";")));
    }
    all
}

fn without_password(server: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("http", server));
    let rest = rest.split('/').next().unwrap_or_default();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if host.len() != rest.len() {
        tracing::warn!("the browser cannot log in at the proxy {host}: its name and password are left out");
    }
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies_of(variables: &[(&str, &str)]) -> Vec<String> {
        let mut surroundings = Surroundings::inherited("/".into());
        surroundings.environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        proxies(&surroundings)
    }

    #[test]
    fn proxies_of_the_environment_are_used_without_their_passwords() {
        assert_eq!(proxies_of(&[]), Vec::<String>::new());
        assert_eq!(
            proxies_of(&[
                ("HTTPS_PROXY", "http://me:secret@proxy.example:3128/"),
                ("no_proxy", "a.example, .b.example,")
            ]),
            ["--proxy-server=https=http://proxy.example:3128", "--proxy-bypass-list=a.example;*.b.example"]
        );
        assert_eq!(
            proxies_of(&[("all_proxy", "socks5://proxy.example:1080"), ("http_proxy", "proxy.example")]),
            ["--proxy-server=http=http://proxy.example;https=socks5://proxy.example:1080"]
        );
    }
}
