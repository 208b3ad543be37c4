//! Buckets of Amazon S3, and of what speaks its API.

use gloveport_protocol::Secret;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};

use super::{
    BucketStore, HttpLimits, StoreError,
    bucket::{Connector, bucket_name, retries},
};

/// A bucket of S3.
pub type S3Store = BucketStore<AmazonS3>;

/// The kind of store in the configuration.
pub(super) const KIND: &str = "s3";
/// Names the bucket if the configuration does not.
const BUCKET: &str = "AWS_S3_BUCKET";

/// More of the environment that says who we are to AWS, with what it is for the library.
const MORE: [(&str, AmazonS3ConfigKey); 9] = [
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", AmazonS3ConfigKey::StsEndpoint),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
    ("AWS_EC2_METADATA_SERVICE_ENDPOINT", AmazonS3ConfigKey::MetadataEndpoint),
];

/// What is known about a bucket of S3.
#[derive(Debug)]
pub struct S3Options {
    /// The bucket.
    pub bucket: String,
    /// The URL of the service; none is that of Amazon.
    pub endpoint: Option<String>,
    /// The region; none is `us-east-1`.
    pub region: Option<String>,
    /// The access key.
    pub access_key_id: Option<String>,
    /// What belongs to the access key. Without both, the role of the machine, pod or task is asked for.
    pub secret_access_key: Option<Secret>,
    /// Time that requests may take.
    pub limits: HttpLimits,
    /// More settings, as the environment has them.
    more: Vec<(AmazonS3ConfigKey, Secret)>,
}

impl S3Options {
    /// The bucket from the configuration, or else from `AWS_S3_BUCKET`; all else from the environment: `AWS_S3_ENDPOINT`,
    /// `AWS_S3_SECURE` (event-stream 5), `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` or
    /// `AWS_DEFAULT_REGION`, `AWS_SESSION_TOKEN`, and what names the role of a machine, a pod or a task.
    pub fn from_environment(
        bucket: Option<String>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, StoreError> {
        let get = |name: &str| environment(name).filter(|value| !value.is_empty());
        let secure = get("AWS_S3_SECURE").is_none_or(|value| value.eq_ignore_ascii_case("true"));
        let more = MORE.into_iter().filter_map(|(name, key)| Some((key, Secret::from(get(name)?))));
        Ok(Self {
            bucket: bucket_name(KIND, bucket, BUCKET, &get)?,
            endpoint: get("AWS_S3_ENDPOINT").map(|url| with_scheme(&url, secure)),
            region: get("AWS_REGION").or_else(|| get("AWS_DEFAULT_REGION")),
            access_key_id: get("AWS_ACCESS_KEY_ID"),
            secret_access_key: get("AWS_SECRET_ACCESS_KEY").map(Secret::from),
            limits: HttpLimits::default(),
            more: more.collect(),
        })
    }

    /// Makes the store. Nothing is sent before it is used.
    pub fn open(self) -> Result<S3Store, StoreError> {
        let plain = self.endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&self.bucket)
            .with_http_connector(Connector::new(self.limits)?)
            .with_retry(retries(self.limits))
            .with_allow_http(plain);
        for (key, value) in &self.more {
            builder = builder.with_config(*key, value.expose());
        }
        if let Some(endpoint) = self.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = self.region {
            builder = builder.with_region(region);
        }
        if let Some(id) = self.access_key_id {
            builder = builder.with_access_key_id(id);
        }
        if let Some(key) = &self.secret_access_key {
            builder = builder.with_secret_access_key(key.expose());
        }
        let client =
            builder.build().map_err(|error| StoreError::Configuration { kind: KIND, reason: error.to_string() })?;
        Ok(BucketStore::new(self.bucket, client))
    }
}

/// The URL with the scheme that is asked for, whatever it has.
fn with_scheme(url: &str, secure: bool) -> String {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    format!("{}://{rest}", if secure { "https" } else { "http" })
}
