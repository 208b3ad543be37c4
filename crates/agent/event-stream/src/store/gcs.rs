//! Buckets of Google Cloud Storage.

use std::path::{Path, PathBuf};

use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};

use super::{
    BucketStore, HttpLimits, StoreError,
    bucket::{Connector, bucket_name, retries},
};

/// A bucket of Google Cloud Storage.
pub type GcsStore = BucketStore<GoogleCloudStorage>;

/// The kind of store in the configuration.
pub(super) const KIND: &str = "google_cloud";
/// Names the bucket if the configuration does not.
const BUCKET: &str = "GOOGLE_CLOUD_BUCKET_NAME";
/// Where the command line of Google Cloud keeps the credentials of its user, below the home directory.
const USER_CREDENTIALS: &str = ".config/gcloud/application_default_credentials.json";
/// The token that is sent to an emulator, which does not look at it. Without one the library asks the machine for its
/// service account before each write.
const ANONYMOUS: &str = "anonymous";

/// What is known about a bucket of Google Cloud Storage.
#[derive(Debug)]
pub struct GcsOptions {
    /// The bucket.
    pub bucket: String,
    /// The file with the credentials of a service account or a user; none is the service account of the machine.
    pub credentials: Option<PathBuf>,
    /// The URL of the service; none is that of Google.
    pub endpoint: Option<String>,
    /// Who we are to the service.
    pub access: GcsAccess,
    /// Time that requests may take.
    pub limits: HttpLimits,
}

/// Who we are to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcsAccess {
    /// Whom the credentials name.
    Credentials,
    /// Nobody: an emulator does not ask.
    Anonymous,
}

impl GcsOptions {
    /// The bucket from the configuration, or else from `GOOGLE_CLOUD_BUCKET_NAME`; the application default credentials
    /// (event-stream 5) from `GOOGLE_APPLICATION_CREDENTIALS`, or else the file of the user. `STORAGE_EMULATOR_HOST`
    /// names an emulator, which is used without credentials.
    pub fn from_environment(
        bucket: Option<String>,
        home: Option<&Path>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, StoreError> {
        let get = |name: &str| environment(name).filter(|value| !value.is_empty());
        let of_user = || home.map(|home| home.join(USER_CREDENTIALS)).filter(|file| file.is_file());
        let emulator = get("STORAGE_EMULATOR_HOST");
        Ok(Self {
            bucket: bucket_name(KIND, bucket, BUCKET, &get)?,
            credentials: get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from).or_else(of_user),
            access: if emulator.is_some() { GcsAccess::Anonymous } else { GcsAccess::Credentials },
            endpoint: emulator.map(|host| if host.contains("://") { host } else { format!("http://{host}") }),
            limits: HttpLimits::default(),
        })
    }

    /// Makes the store. Nothing is sent before it is used.
    pub fn open(self) -> Result<GcsStore, StoreError> {
        let refuse = |reason| StoreError::Configuration { kind: KIND, reason };
        let mut builder = GoogleCloudStorageBuilder::new()
            .with_bucket_name(&self.bucket)
            .with_http_connector(Connector::new(self.limits)?)
            .with_retry(retries(self.limits));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_base_url(endpoint.trim_end_matches('/'));
        }
        builder = match (self.access, &self.credentials) {
            (GcsAccess::Anonymous, _) => builder.with_bearer_token(ANONYMOUS),
            (GcsAccess::Credentials, Some(file)) => {
                let file = file.to_str().ok_or_else(|| refuse(format!("'{}' is not UTF-8", file.display())))?;
                builder.with_application_credentials(file)
            }
            (GcsAccess::Credentials, None) => builder,
        };
        let client = builder.build().map_err(|error| refuse(error.to_string()))?;
        Ok(BucketStore::new(self.bucket, client))
    }
}
