//! What a certificate says of itself.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

/// A certificate that is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    names: BTreeSet<String>,
    from: SystemTime,
    until: SystemTime,
}

impl Held {
    /// Reads the first certificate of a text in PEM form.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        let (_, certificate) = parse_x509_certificate(&certificate).ok()?;
        let time = |seconds: i64| Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).ok()?));
        let validity = certificate.validity();
        let names = certificate.subject_alternative_name().ok()??.value.general_names.iter();
        let names = names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        Some(Self {
            names: names.collect(),
            from: time(validity.not_before.timestamp())?,
            until: time(validity.not_after.timestamp())?,
        })
    }

    /// How long it still serves for these names before it is to be renewed: until a third of its life is left.
    pub(crate) fn serves(&self, names: &[String], now: SystemTime) -> Duration {
        if !names.iter().all(|name| self.names.contains(name)) {
            return Duration::ZERO;
        }
        let life = self.until.duration_since(self.from).unwrap_or_default();
        (self.until - life / 3).duration_since(now).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn it_serves_for_its_names_until_a_third_of_its_life_is_left() {
        let mut made = CertificateParams::new(vec!["example.org".to_owned(), "*.example.org".to_owned()]).unwrap();
        (made.not_before, made.not_after) = (date_time_ymd(2030, 1, 1), date_time_ymd(2030, 1, 31));
        let key = KeyPair::generate().unwrap();
        let text = format!("{}{}", key.serialize_pem(), made.self_signed(&key).unwrap().pem());
        let held = Held::of(&text).unwrap();
        let begin = UNIX_EPOCH + Duration::from_hours(525_960);
        let day = Duration::from_hours(24);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(held.serves(&names(&["example.org"]), begin), day * 20);
        assert_eq!(held.serves(&names(&["*.example.org", "example.org"]), begin + day * 19), day);
        assert_eq!(held.serves(&names(&["example.org"]), begin + day * 21), Duration::ZERO);
        assert_eq!(held.serves(&names(&["example.org", "a.example.org"]), begin), Duration::ZERO);
        assert_eq!(Held::of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), None);
        assert_eq!(Held::of(""), None);
    }
}
