//! How long an image of 100 MB (unpacked) takes to be unpacked from a layout, and to be got once it is there.
//!
//! `oci_speed [DIRECTORY]`: where the image and the store are made, and removed again; otherwise below the current directory.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use flate2::{Compression, write::GzEncoder};
use gloveport_oci_image::{Options, Progress, Pull, Store};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Layers, and files in each; a file has 24 KB on average, as in images of Python.
const LAYERS: usize = 4;
const FILES: usize = 1042;
const TIMES: u32 = 3;

#[tokio::main]
async fn main() -> io::Result<()> {
    let below = std::env::args().nth(1).map_or_else(std::env::current_dir, |path| Ok(PathBuf::from(path)))?;
    let directory = tempfile::tempdir_in(below)?;
    for (name, packed) in [("tar", 0), ("gzip", 1), ("zstd", 2)] {
        let layout = directory.path().join(name);
        let (stored, unpacked) = write(&layout, packed)?;
        let mut times = Vec::new();
        for turn in 0..TIMES {
            let store = directory.path().join(format!("store-{name}-{turn}"));
            times.push(unpack(&store, &layout).await?);
        }
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let (stored, unpacked) = (stored / 1_000_000, unpacked / 1_000_000);
        writeln!(io::stdout(), "{name}: {unpacked} MB from {stored} MB in {median:.3} s (all: {times:.3?})")?;
    }
    let store = directory.path().join("store");
    let store = open(&store)?;
    let reference = format!("oci:{}", directory.path().join("gzip").display());
    drop(store.get(&reference, Pull::Missing, &quiet).await.map_err(io::Error::other)?);
    let begin = Instant::now();
    for _ in 0..1000 {
        drop(store.get(&reference, Pull::Missing, &quiet).await.map_err(io::Error::other)?);
    }
    writeln!(io::stdout(), "an image that is there: {:.3} ms", begin.elapsed().as_secs_f64())
}

fn quiet(_: Progress) {}

fn open(store: &Path) -> io::Result<Store> {
    Store::open_with(store, Options::default()).map_err(io::Error::other)
}

async fn unpack(store: &Path, layout: &Path) -> io::Result<f64> {
    let store = open(store)?;
    // What was written before is not measured.
    rustix::fs::syncfs(fs::File::open(layout)?)?;
    let begin = Instant::now();
    let got = store.get(&format!("oci:{}", layout.display()), Pull::Missing, &quiet).await.map_err(io::Error::other)?;
    let took = begin.elapsed().as_secs_f64();
    drop(got);
    Ok(took)
}

/// Writes a layout; returns the bytes of its layers, stored and unpacked.
fn write(layout: &Path, packed: usize) -> io::Result<(u64, u64)> {
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let blob = |bytes: &[u8]| -> io::Result<Value> {
        let digest = gloveport_ids::hex(&Sha256::digest(bytes));
        fs::write(layout.join("blobs/sha256").join(&digest), bytes)?;
        Ok(json!({"digest": format!("sha256:{digest}"), "size": bytes.len()}))
    };
    let (mut layers, mut ids, mut stored, mut unpacked) = (Vec::new(), Vec::new(), 0, 0);
    for number in 0..LAYERS {
        let tar = layer(number)?;
        let bytes = match packed {
            0 => tar.clone(),
            1 => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&tar)?;
                encoder.finish()?
            }
            _ => compress_to_vec(tar.as_slice(), CompressionLevel::Fastest),
        };
        stored += bytes.len() as u64;
        unpacked += tar.len() as u64;
        layers.push(blob(&bytes)?);
        ids.push(format!("sha256:{}", gloveport_ids::hex(&Sha256::digest(&tar))));
    }
    let config = json!({"rootfs": {"type": "layers", "diff_ids": ids}});
    let config = blob(config.to_string().as_bytes())?;
    let manifest = blob(json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string().as_bytes())?;
    fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())?;
    Ok((stored, unpacked))
}

/// Files of words: half of their bytes are gone when they are compressed.
fn layer(number: usize) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut state = number as u64 + 1;
    for file in 0..FILES {
        let mut content = Vec::new();
        while content.len() < 12_000 + (file % 13) * 2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            writeln!(content, "def function_{:x}(self): return {}", state >> 44, state >> 33)?;
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let name = format!("usr/lib/package-{number}/module-{}/file-{file}.py", file / 20);
        builder.append_data(&mut header, name, content.as_slice())?;
    }
    builder.into_inner()
}
