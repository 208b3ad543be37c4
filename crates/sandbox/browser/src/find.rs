//! Which browser the image has.

use std::path::PathBuf;

use gloveport_sys::Surroundings;

use crate::options::BrowserOptions;

/// Names a browser that goes before all others.
pub const CHOSEN: &str = "GLOVEPORT_CHROMIUM";
/// Programs that are looked for, in this order: those without a window come up faster.
const NAMES: [&str; 7] = [
    "chromium-headless-shell",
    "chrome-headless-shell",
    "headless_shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];
/// Where Playwright puts browsers, below the home directory or where this variable says.
const PLAYWRIGHT: (&str, &str) = ("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright");
/// Programs in a directory of Playwright.
const IN_PLAYWRIGHT: [&str; 4] = [
    "chrome-linux/headless_shell",
    "chrome-headless-shell-linux64/chrome-headless-shell",
    "chrome-linux/chrome",
    "chrome-linux64/chrome",
];

/// Why there is none, and what can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoBrowser {
    /// What was looked for.
    pub reason: String,
    /// What can be done.
    pub remedy: String,
}

/// The program of these options.
pub(crate) fn program(options: &BrowserOptions) -> Result<PathBuf, NoBrowser> {
    match &options.program {
        Some(program) if options.surroundings.find(&program.to_string_lossy()).is_some() => Ok(program.clone()),
        Some(program) => Err(NoBrowser { reason: format!("{} is no program", program.display()), remedy: install() }),
        None => find(&options.surroundings),
    }
}

/// Looks for a browser.
pub fn find(surroundings: &Surroundings) -> Result<PathBuf, NoBrowser> {
    if let Some(chosen) = surroundings.variable(CHOSEN) {
        let word = chosen.to_string_lossy();
        return surroundings.find(&word).ok_or_else(|| NoBrowser {
            reason: format!("{CHOSEN} names {word}, which is no program"),
            remedy: format!("correct or remove {CHOSEN}"),
        });
    }
    if let Some(program) = NAMES.iter().find_map(|name| surroundings.find(name)) {
        return Ok(program);
    }
    of_playwright(surroundings)
        .ok_or_else(|| NoBrowser { reason: "there is no Chromium".to_owned(), remedy: install() })
}

fn install() -> String {
    format!("install the package `chromium` or `chromium-headless-shell` in the image, or name a browser with {CHOSEN}")
}

/// The newest browser that Playwright has installed.
fn of_playwright(surroundings: &Surroundings) -> Option<PathBuf> {
    let directory = match surroundings.variable(PLAYWRIGHT.0) {
        Some(directory) => PathBuf::from(directory),
        None => surroundings.home()?.join(PLAYWRIGHT.1),
    };
    let mut found: Vec<(u64, PathBuf)> = std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (kind, revision) = name.rsplit_once('-')?;
            kind.starts_with("chromium").then_some((revision.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
        .iter()
        .flat_map(|(_, directory)| IN_PLAYWRIGHT.iter().map(|program| directory.join(program)))
        .find_map(|program| surroundings.find(program.to_str()?))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    use super::*;

    fn make(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_browser_is_found_by_variable_then_path_then_where_playwright_puts_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let mut surroundings = Surroundings::inherited(root.path().to_owned());
        surroundings.environment = vec![("PATH".into(), at("bin").into()), ("HOME".into(), at("home").into())];
        assert!(find(&surroundings).unwrap_err().remedy.contains("chromium"));
        make(&at("home/.cache/ms-playwright/chromium-1000/chrome-linux/chrome"));
        make(&at("home/.cache/ms-playwright/chromium-999/chrome-linux/chrome"));
        assert_eq!(find(&surroundings), Ok(at("home/.cache/ms-playwright/chromium-1000/chrome-linux/chrome")));
        make(&at("home/.cache/ms-playwright/chromium_headless_shell-1001/chrome-linux/headless_shell"));
        assert_eq!(
            find(&surroundings),
            Ok(at("home/.cache/ms-playwright/chromium_headless_shell-1001/chrome-linux/headless_shell"))
        );
        make(&at("bin/chromium"));
        assert_eq!(find(&surroundings), Ok(at("bin/chromium")));
        make(&at("bin/chromium-headless-shell"));
        assert_eq!(find(&surroundings), Ok(at("bin/chromium-headless-shell")));
        surroundings.set(CHOSEN, "chromium");
        assert_eq!(find(&surroundings), Ok(at("bin/chromium")));
        surroundings.set(CHOSEN, "no-such");
        assert!(find(&surroundings).unwrap_err().reason.contains("no-such"));
    }
}
