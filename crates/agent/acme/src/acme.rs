//! Renews when it is time.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use tokio::time::{sleep, timeout};

use crate::{AcmeError, AcmeOptions, held::Held, order, store::Store};

/// Time for one order.
const LIMIT: Duration = Duration::from_mins(30);
/// The pause after the first order that failed; each next one is twice as long.
const FIRST: Duration = Duration::from_mins(1);
/// The longest pause. Authorities bound how often one may fail in an hour.
const LONGEST: Duration = Duration::from_hours(6);
/// How often it is looked whether it is time: clocks jump, and machines sleep.
const LOOK: Duration = Duration::from_hours(1);
/// How often it is looked while another process renews.
const OTHER: Duration = Duration::from_secs(10);

/// A certificate that is kept and renewed.
#[derive(Debug)]
pub struct Acme {
    options: AcmeOptions,
    store: Store,
}

/// What is to be done.
enum Next {
    Nothing(Duration),
    Renewed,
}

impl Acme {
    /// Nothing is asked yet; the directory is made.
    ///
    /// # Errors
    ///
    /// A name cannot be in a certificate, or not without a program that changes the DNS; the directory cannot be made.
    pub fn new(mut options: AcmeOptions) -> Result<Self, AcmeError> {
        if !options.directory.starts_with("https://") {
            return Err(AcmeError::Directory(options.directory));
        }
        for name in &mut options.names {
            *name = name.trim_end_matches('.').to_ascii_lowercase();
            let plain = name.strip_prefix("*.").unwrap_or(name);
            if !is_name(plain) {
                return Err(AcmeError::Name(name.clone()));
            }
            if plain.len() < name.len() && options.dns_hook.is_none() {
                return Err(AcmeError::NeedsDns(name.clone()));
            }
        }
        if options.names.is_empty() {
            return Err(AcmeError::NoName);
        }
        options.names.sort();
        options.names.dedup();
        let store = Store::new(options.store.clone())?;
        Ok(Self { options, store })
    }

    /// The file with the key and the chain of the certificate, in PEM form; there is none before the first one.
    pub fn certificate(&self) -> PathBuf {
        self.store.certificate_file()
    }

    /// The certificate by which the challenge for a name is answered, if it is being asked for one.
    pub fn challenge(&self, name: &str) -> Option<CertifiedKey> {
        let name = name.to_ascii_lowercase();
        // Nothing else has a file.
        if !self.options.names.contains(&name) {
            return None;
        }
        let text = self.store.challenge(&name).inspect_err(|error| tracing::warn!(%error, "no answer")).ok()??;
        let chain = vec![CertificateDer::from_pem_slice(text.as_bytes()).ok()?];
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok()?;
        // Whether they are a pair is not asked: whoever reads certificates of servers refuses the extension that this one is for.
        let key = ring::default_provider().key_provider.load_private_key(key).ok()?;
        Some(CertifiedKey::new(chain, key))
    }

    /// Waits until there is a certificate that was not there before. One is made when there is none for the names, and when a
    /// third of its life is left. What fails is told in the log and tried again.
    pub async fn renewed(&self) {
        let mut pause = FIRST;
        loop {
            let wait = match timeout(LIMIT, self.look()).await {
                Ok(Ok(Next::Nothing(wait))) => wait,
                Ok(Ok(Next::Renewed)) => {
                    tracing::info!(names = self.options.names.join(", "), "there is a new certificate");
                    return;
                }
                Ok(Err(error)) => self.failed(&error, &mut pause),
                Err(_) => self.failed(&AcmeError::TimedOut(LIMIT.as_secs()), &mut pause),
            };
            sleep(wait).await;
        }
    }

    fn failed(&self, error: &AcmeError, pause: &mut Duration) -> Duration {
        let wait = *pause;
        let names = self.options.names.join(", ");
        tracing::error!(%error, names, again_in_seconds = wait.as_secs(), "there is no new certificate");
        *pause = (wait * 2).min(LONGEST);
        wait
    }

    async fn look(&self) -> Result<Next, AcmeError> {
        let serves = self.serves()?;
        if !serves.is_zero() {
            return Ok(Next::Nothing(serves.min(LOOK)));
        }
        let Some(_lock) = self.store.lock()? else { return Ok(Next::Nothing(OTHER)) };
        // Another one may have been faster.
        if self.serves()?.is_zero() {
            let made = order::order(&self.options, &self.store).await?;
            // It would be ordered again and again.
            if self.serves_as(&made).is_zero() {
                return Err(AcmeError::Authority {
                    what: "the certificate cannot be used",
                    reason: "it lacks a name, or its time is over".to_owned(),
                });
            }
            self.store.set_certificate(&made)?;
        }
        Ok(Next::Renewed)
    }

    /// How long the certificate that is kept still serves.
    fn serves(&self) -> Result<Duration, AcmeError> {
        Ok(self.store.certificate()?.map(|text| self.serves_as(&text)).unwrap_or_default())
    }

    fn serves_as(&self, text: &str) -> Duration {
        Held::of(text).map(|held| held.serves(&self.options.names, SystemTime::now())).unwrap_or_default()
    }
}

/// Whether this can be the name of a host that authorities know.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_address = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    name.len() <= 253 && !is_address && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenge;

    #[test]
    fn names_that_no_authority_knows_are_refused_before_it_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let new = |names: &[&str], hook: Option<&str>| {
            Acme::new(AcmeOptions {
                directory: "https://acme.example/directory".to_owned(),
                root: None,
                email: None,
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                dns_hook: hook.map(PathBuf::from),
                store: directory.path().join("acme"),
            })
        };
        for (names, expected) in [
            (&[][..], "there is no name"),
            (&["127.0.0.1"], "`127.0.0.1` cannot be"),
            (&["../x"], "`../x` cannot be"),
            (&["a..b"], "`a..b` cannot be"),
            (&["a.*.b"], "`a.*.b` cannot be"),
            (&["-a.org"], "`-a.org` cannot be"),
            (&["*.example.org"], "`*.example.org` needs a program"),
        ] {
            let error = new(names, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{names:?}: {error}");
        }
        let acme = new(&["*.Example.org.", "example.org", "example.org"], Some("/hook")).unwrap();
        assert_eq!(acme.options.names, ["*.example.org", "example.org"]);
        assert!(acme.challenge("example.org").is_none() && acme.challenge("../../etc/passwd").is_none());
        acme.store.set_challenge("example.org", &challenge::certificate("example.org", &[7; 32]).unwrap()).unwrap();
        assert!(acme.challenge("Example.org").is_some() && acme.challenge("*.example.org").is_none());
    }
}
