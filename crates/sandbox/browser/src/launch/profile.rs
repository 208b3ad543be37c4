//! The directory of a browser: made for it, and removed with it.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::Surroundings;
use tempfile::TempDir;

use crate::options::BrowserOptions;

/// What a profile begins with: documents that are shown by plug-ins are downloaded instead, and nothing is offered to be
/// kept (spec/browser.md 1.1).
const PREFERENCES: &str = r#"{"plugins":{"always_open_pdf_externally":true},"credentials_enable_service":false,
"profile":{"password_manager_enabled":false,"default_content_setting_values":{"notifications":2}},
"autofill":{"profile_enabled":false,"credit_card_enabled":false},"safebrowsing":{"enabled":false},
"net":{"network_prediction_options":2}}"#;
/// Where it keeps what it needs for a moment.
const TEMPORARY: &str = "tmp";
/// Bytes of the longest address of a socket.
const LONGEST_SOCKET: usize = 107;
/// Bytes of the name of Chromium's socket below that.
const SOCKET: usize = "/org.chromium.Chromium.123456/SingletonSocket".len();
/// Certificates of authorities beside Chromium's own, from these variables.
const AUTHORITIES: [&str; 2] = ["GLOVEPORT_BROWSER_CA", "NODE_EXTRA_CA_CERTS"];
/// Where distributions have those that everybody trusts.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"];
/// Certificates of one file that are taken.
const MOST_AUTHORITIES: usize = 100;
/// Time to take one.
const TIME: Duration = Duration::from_secs(10);

/// The profile of a browser.
#[derive(Debug)]
pub(super) struct Profile(TempDir);

impl Profile {
    /// Makes a profile that belongs to the user of the sandbox.
    pub(super) async fn create(options: &BrowserOptions) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("gloveport-browser-").tempdir()?;
        let path = directory.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        fs::create_dir(path.join("Default"))?;
        fs::create_dir(path.join(TEMPORARY))?;
        fs::write(path.join("Default/Preferences"), PREFERENCES)?;
        fs::write(path.join("First Run"), "")?;
        if let Some(identity) = &options.surroundings.identity {
            // The directory comes last: after that its owner may put anything there.
            for name in ["Default/Preferences", "Default", "First Run", TEMPORARY, "."] {
                chown(path.join(name), Some(identity.uid), Some(identity.gid))?;
            }
        }
        let profile = Self(directory);
        for file in AUTHORITIES.iter().filter_map(|name| options.surroundings.variable(name)) {
            // The authorities of the distribution are Chromium's own.
            if SYSTEM.iter().any(|system| file == *system) {
                continue;
            }
            profile.trust(&options.surroundings, Path::new(file)).await;
        }
        Ok(profile)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Whatever the browser keeps at home, it keeps here.
    pub(super) fn prepare(&self, surroundings: &mut Surroundings) {
        for (name, place) in
            [("HOME", ""), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")]
        {
            surroundings.set(name, self.path().join(place));
        }
        // A browser that is killed leaves files for a moment behind, among them one with a socket.
        let temporary = self.path().join(TEMPORARY);
        if temporary.as_os_str().len() + SOCKET <= LONGEST_SOCKET {
            surroundings.set("TMPDIR", temporary);
        }
        for name in ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"] {
            surroundings.unset(name);
        }
    }

    /// Has the browser trust the authorities of a file, as the user who may read it.
    async fn trust(&self, surroundings: &Surroundings, file: &Path) {
        let mut surroundings = surroundings.clone();
        self.prepare(&mut surroundings);
        let database = self.path().join(".pki/nssdb");
        // A file has any number of certificates, and the tool takes the first one of its input.
        let script = format!(
            "mkdir -p \"$1\" && certutil -N -d sql:\"$1\" --empty-password && awk -v directory=\"$1\" -v most={MOST_AUTHORITIES} \
             '/-----BEGIN CERTIFICATE-----/ {{ count++ }} count && count <= most {{ print > (directory \"/\" count \".pem\") }}' \"$2\" && \
             for one in \"$1\"/*.pem; do certutil -A -d sql:\"$1\" -t C,, -n \"$one\" -i \"$one\" || exit 1; done"
        );
        let argv = ["sh", "-c", &script, "sh"].map(Into::into);
        let argv: Vec<_> = argv.into_iter().chain([database.into_os_string(), file.into()]).collect();
        let words = match surroundings.run(&argv, TIME, 1000).await {
            Ok(ended) if ended.succeeded() => return,
            Ok(ended) => ended.text(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(
            "the browser does not trust the authorities in {}: {words}; `certutil` (package `libnss3-tools`) is needed for that",
            file.display()
        );
    }

    /// Removes it. Its processes have ended.
    pub(super) async fn remove(self) {
        let path: PathBuf = self.0.path().to_owned();
        let removed = tokio::task::spawn_blocking(move || self.0.close()).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!("the profile of a browser in {} cannot be removed: {error}", path.display());
        }
    }
}
