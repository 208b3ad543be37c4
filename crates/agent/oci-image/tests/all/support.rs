//! Images that tests make: layers as tar streams, layouts, and stores for them.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use gloveport_oci_image::{Image, ImageError, Limits, Options, Progress, Pull, Store};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", gloveport_ids::hex(&Sha256::digest(bytes)))
}

/// An entry of a layer.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) owner: (u64, u64),
    pub(crate) time: u64,
    /// Raw fields that overwrite the header.
    pub(crate) fields: Vec<(usize, Vec<u8>)>,
}

pub(crate) fn entry(kind: u8, name: impl AsRef<[u8]>, link: impl AsRef<[u8]>, content: &[u8]) -> Entry {
    Entry {
        name: name.as_ref().to_vec(),
        link: link.as_ref().to_vec(),
        kind,
        content: content.to_vec(),
        mode: if kind == b'5' { 0o755 } else { 0o644 },
        owner: (0, 0),
        time: 1_000_000_000,
        fields: Vec::new(),
    }
}

pub(crate) fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Entry {
    entry(b'0', name, "", content.as_ref())
}

pub(crate) fn directory(name: impl AsRef<[u8]>) -> Entry {
    entry(b'5', name, "", b"")
}

pub(crate) fn link(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Entry {
    entry(b'2', name, target, b"")
}

pub(crate) fn hard(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Entry {
    entry(b'1', name, target, b"")
}

fn put(header: &mut [u8], at: usize, bytes: &[u8]) {
    header[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Entry {
    pub(crate) fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn owner(mut self, user: u64, group: u64) -> Self {
        self.owner = (user, group);
        self
    }

    pub(crate) fn field(mut self, at: usize, bytes: &[u8]) -> Self {
        self.fields.push((at, bytes.to_vec()));
        self
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (kind, text) in [(b'K', &self.link), (b'L', &self.name)] {
            if text.len() > 100 {
                let content = [text.as_slice(), b"\0"].concat();
                entry(kind, "././@LongLink", "", &content).write(out);
            }
        }
        let mut header = [0; 512];
        put(&mut header, 0, &self.name[..self.name.len().min(100)]);
        put(&mut header, 100, format!("{:07o}\0", self.mode).as_bytes());
        put(&mut header, 108, format!("{:07o}\0", self.owner.0).as_bytes());
        put(&mut header, 116, format!("{:07o}\0", self.owner.1).as_bytes());
        put(&mut header, 124, format!("{:011o}\0", self.content.len()).as_bytes());
        put(&mut header, 136, format!("{:011o}\0", self.time).as_bytes());
        header[156] = self.kind;
        put(&mut header, 157, &self.link[..self.link.len().min(100)]);
        put(&mut header, 257, b"ustar\x0000");
        for (at, bytes) in &self.fields {
            put(&mut header, *at, bytes);
        }
        put(&mut header, 148, b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(&self.content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
}

/// A layer of these entries.
pub(crate) fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        entry.write(&mut out);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// An extended header with these lines.
pub(crate) fn extended(lines: &[(&str, &[u8])]) -> Entry {
    let mut content = Vec::new();
    for (key, value) in lines {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let mut length = rest.len() + 1;
        while length.to_string().len() + rest.len() != length {
            length = length.to_string().len() + rest.len();
        }
        content.extend_from_slice(length.to_string().as_bytes());
        content.extend_from_slice(&rest);
    }
    entry(b'x', "extended", "", &content)
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

pub(crate) fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A blob with its media type.
#[derive(Clone)]
pub(crate) struct Blob {
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl Blob {
    pub(crate) fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        Self { media_type: format!("application/vnd.oci.image.{media_type}"), bytes }
    }

    pub(crate) fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": digest(&self.bytes), "size": self.bytes.len()})
    }
}

/// An image: manifest, configuration, layers.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) manifest: Blob,
    pub(crate) config: Blob,
    pub(crate) layers: Vec<Blob>,
}

/// An image of these unpacked layers, stored as they are packed.
pub(crate) fn made(layers: &[(Vec<u8>, Vec<u8>)]) -> Made {
    let diff_ids: Vec<String> = layers.iter().map(|(unpacked, _)| digest(unpacked)).collect();
    let config = json!({
        "os": "linux", "architecture": own_architecture(),
        "config": {"Env": ["PATH=/usr/bin:/bin", "A=b=c"], "WorkingDir": "/work", "User": "1000:1000",
            "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["true"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    });
    let layers = layers.iter().map(|(_, packed)| Blob::new("layer.v1.tar+gzip", packed.clone())).collect();
    of_parts(Blob::new("config.v1+json", config.to_string().into_bytes()), layers)
}

pub(crate) fn of_parts(config: Blob, layers: Vec<Blob>) -> Made {
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor(), "layers": layers.iter().map(Blob::descriptor).collect::<Vec<_>>(),
    });
    Made { manifest: Blob::new("manifest.v1+json", manifest.to_string().into_bytes()), config, layers }
}

/// An image of these layers, compressed with gzip.
pub(crate) fn image(layers: &[Vec<Entry>]) -> Made {
    let layers: Vec<_> = layers.iter().map(|layer| tar(layer)).map(|tar| (tar.clone(), gzip(&tar))).collect();
    made(&layers)
}

impl Made {
    pub(crate) fn blobs(&self) -> Vec<&Blob> {
        [&self.manifest, &self.config].into_iter().chain(&self.layers).collect()
    }

    pub(crate) fn index(&self, tag: Option<&str>) -> Value {
        let mut descriptor = self.manifest.descriptor();
        if let Some(tag) = tag {
            descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        }
        json!({"schemaVersion": 2, "manifests": [descriptor]})
    }

    /// Writes a layout.
    pub(crate) fn write(&self, layout: &Path) {
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
        for blob in self.blobs() {
            fs::write(blob_path(layout, &blob.bytes), &blob.bytes).unwrap();
        }
        fs::write(layout.join("index.json"), self.index(Some("1")).to_string()).unwrap();
    }
}

pub(crate) fn blob_path(layout: &Path, bytes: &[u8]) -> PathBuf {
    layout.join("blobs").join(digest(bytes).replace(':', "/"))
}

/// A store and a layout in a directory of their own.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { limits, docker_config: Some(directory.path().join("config.json")), owners: None };
        let store = Store::open_with(&directory.path().join("store"), options).unwrap();
        Self { directory, store }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn layout(&self) -> String {
        format!("oci:{}", self.path("layout").display())
    }

    pub(crate) async fn get(&self, reference: &str) -> Result<Image, ImageError> {
        self.store.get(reference, Pull::Missing, &quiet).await
    }

    /// What an image of these layers becomes.
    pub(crate) async fn unpacked(&self, layers: &[Vec<Entry>]) -> Result<Image, ImageError> {
        image(layers).write(&self.path("layout"));
        self.get(&self.layout()).await
    }

    /// Asserts that nothing that is not finished was left, and no image.
    pub(crate) fn assert_empty(&self) {
        for name in ["work", "images"] {
            assert_eq!(names(&self.path("store").join(name)), Vec::<String>::new(), "{name}");
        }
    }
}

pub(crate) fn quiet(_: Progress) {}

/// What is in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
