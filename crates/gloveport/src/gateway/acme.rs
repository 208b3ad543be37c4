//! A certificate from an authority, as the command line and the configuration file ask for it.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use gloveport_acme::{AcmeOptions, LETS_ENCRYPT};
use gloveport_platform::data_directory;

use super::settings::Settings;

/// Where certificates are kept, in the directory for what programs keep.
const STORE: &str = "acme";

#[derive(Debug, Args)]
pub(super) struct AcmeArgs {
    /// Have the certificate for TLS made by Let's Encrypt or another authority (ACME), and renewed. It is for the host of
    /// --public-url, and for --domain and its sub-domains, which need --acme-dns-hook. With this you agree to the authority's terms.
    #[arg(long)]
    acme: bool,
    /// Address to which the authority may write.
    #[arg(long, value_name = "ADDRESS", requires = "acme")]
    acme_email: Option<String>,
    /// URL of the authority's ACME directory. [default: Let's Encrypt's]
    #[arg(long, value_name = "URL", requires = "acme")]
    acme_directory: Option<String>,
    /// File with the certificate that vouches for this URL, where those of the system do not.
    #[arg(long, value_name = "FILE", requires = "acme")]
    acme_root: Option<PathBuf>,
    /// Program that changes the DNS, called as `PROGRAM add|remove _acme-challenge.example.org VALUE`.
    #[arg(long, value_name = "PROGRAM", requires = "acme")]
    acme_dns_hook: Option<PathBuf>,
    /// Directory for the account and the certificate; gateways may share one. [default: gloveport/acme in the directory for data]
    #[arg(long, value_name = "DIRECTORY", requires = "acme")]
    acme_store: Option<PathBuf>,
}

impl AcmeArgs {
    /// The same, with what the file says where the command line says nothing.
    pub(super) fn with(self, settings: &Settings) -> Self {
        let or = |given: Option<PathBuf>, set: &Option<PathBuf>| given.or_else(|| set.clone());
        Self {
            acme: self.acme || settings.acme,
            acme_email: self.acme_email.or_else(|| settings.acme_email.clone()),
            acme_directory: self.acme_directory.or_else(|| settings.acme_directory.clone()),
            acme_root: or(self.acme_root, &settings.acme_root),
            acme_dns_hook: or(self.acme_dns_hook, &settings.acme_dns_hook),
            acme_store: or(self.acme_store, &settings.acme_store),
        }
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.acme
    }

    /// What is to be had, for a gateway with this domain and this URL.
    pub(super) fn options(
        &self,
        domain: Option<&str>,
        url: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> anyhow::Result<Option<AcmeOptions>> {
        if !self.acme {
            return Ok(None);
        }
        let mut names: Vec<String> =
            domain.map(|domain| [domain.to_owned(), format!("*.{domain}")]).into_iter().flatten().collect();
        if let Some(url) = url {
            let uri: http::Uri = url.parse().with_context(|| format!("--public-url {url}"))?;
            let host = uri.host().with_context(|| format!("--public-url {url} has no host"))?;
            names.push(host.to_owned());
        }
        anyhow::ensure!(
            !names.is_empty(),
            "--acme needs the name that the certificate is for: give --public-url https://NAME, or --domain"
        );
        let store = if let Some(store) = &self.acme_store {
            store.clone()
        } else {
            let data = data_directory(environment).context("HOME is not set; set it, or give --acme-store")?;
            data.join("gloveport").join(STORE)
        };
        Ok(Some(AcmeOptions {
            directory: self.acme_directory.clone().unwrap_or_else(|| LETS_ENCRYPT.to_owned()),
            root: self.acme_root.clone(),
            email: self.acme_email.clone(),
            names,
            dns_hook: self.acme_dns_hook.clone(),
            store,
        }))
    }
}
