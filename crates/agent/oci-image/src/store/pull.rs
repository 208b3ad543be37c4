//! Layers fetched, a few at once, and unpacked one after the other meanwhile.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_platform as platform;
use tokio::{sync::mpsc, task::spawn_blocking};

use super::work::Work;
use crate::{
    digest::Digest,
    error::ImageError,
    image::Progress,
    limits::{Limits, Options},
    registry::Registry,
    source::{Layer, Place, Resolved},
    unpack::{self, Summary, Unpacking},
};

/// Layers that are downloaded at once.
const AT_ONCE: usize = 3;
/// Bytes that are kept free for what is noted beside the image.
const SPARE: u64 = 16 * 1024 * 1024;
/// Bytes between two reports of a download.
const REPORTED: u64 = 1024 * 1024;

/// Whom progress is told.
pub(crate) type Told<'a> = &'a (dyn Fn(Progress) + Sync);

/// A layer whose bytes are here.
struct Fetched {
    number: usize,
    input: Box<dyn Read + Send>,
    stored: Option<Digest>,
    unpacked: Digest,
    /// Removed when it is unpacked.
    temporary: Option<PathBuf>,
}

/// Tells the thread that unpacks that nobody waits for it any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Fetches and unpacks all layers into a directory of `work`, which is there and empty.
pub(crate) async fn pull(
    resolved: &mut Resolved,
    registry: Option<&Registry>,
    work: &Arc<Work>,
    root: &Path,
    options: &Options,
    told: Told<'_>,
) -> Result<Summary, ImageError> {
    let (limits, owners) = (&options.limits, options.owners.clone());
    let layers = std::mem::take(&mut resolved.layers);
    check_room(&layers, root, limits)?;
    let of = layers.len();
    let whole = layers.iter().map(|layer| there(&layer.place)).sum();
    let (done, reported) = (AtomicU64::new(0), AtomicU64::new(0));
    let passed = |bytes: u64| {
        let done = done.fetch_add(bytes, Relaxed) + bytes;
        if done >= reported.load(Relaxed) + REPORTED || done == whole {
            reported.store(done, Relaxed);
            told(Progress::Downloading { done, whole });
        }
    };
    let fetch = |(at, layer): (usize, Layer)| fetch(at + 1, layer, registry, work.path(), &passed);
    let (sender, mut receiver) = mpsc::channel(of.max(1));
    let fetching = async {
        let fetched = stream::iter(layers.into_iter().enumerate()).map(fetch).buffered(AT_ONCE);
        let sent = fetched.try_for_each(|layer| async {
            // Whoever unpacks has failed, and says why.
            let _unpacking_has_ended = sender.send(layer).await;
            Ok(())
        });
        let sent = sent.await;
        drop(sender);
        sent
    };
    let stop = Arc::new(AtomicBool::new(false));
    let _stop = Stop(Arc::clone(&stop));
    let unpacking = async {
        let mut unpacking = Unpacking::new(root, *limits, stop, owners.is_some())?;
        while let Some(layer) = receiver.recv().await {
            told(Progress::Unpacking { layer: layer.number, of });
            let work = Arc::clone(work);
            let unpacked = spawn_blocking(move || one(unpacking, layer, work)).await;
            unpacking = unpacked.map_err(|_| ImageError::Stopped)??;
        }
        Ok(unpacking)
    };
    let ((), unpacking) = futures_util::future::try_join(fetching, unpacking).await?;
    let (work, root) = (Arc::clone(work), root.to_owned());
    spawn_blocking(move || {
        let _work = work;
        let (summary, files) = unpacking.finish()?;
        if let Some(owners) = owners {
            owners
                .give(&root, files)
                .map_err(ImageError::store("give to the owners that the image names what is in", root))?;
        }
        Ok(summary)
    })
    .await
    .map_err(|_| ImageError::Stopped)?
}

/// Unpacks a layer; the directory stays as long as this takes, even if nobody waits for it.
fn one(mut unpacking: Unpacking, layer: Fetched, _work: Arc<Work>) -> Result<Unpacking, ImageError> {
    let Fetched { number, input, stored, unpacked, temporary } = layer;
    unpacking.layer(unpack::Layer { number, input, stored, unpacked })?;
    if let Some(path) = temporary {
        std::fs::remove_file(&path).map_err(ImageError::store("remove", path))?;
    }
    Ok(unpacking)
}

async fn fetch(
    number: usize,
    layer: Layer,
    registry: Option<&Registry>,
    directory: &Path,
    passed: &(impl Fn(u64) + Sync),
) -> Result<Fetched, ImageError> {
    let unpacked = layer.unpacked;
    match (layer.place, registry) {
        (Place::Here(part, stored), _) => {
            Ok(Fetched { number, input: Box::new(part), stored, unpacked, temporary: None })
        }
        (Place::There(descriptor, digest), Some(registry)) => {
            let path = directory.join(format!("layer-{number}"));
            registry.download(descriptor.size, digest, &path, passed).await?;
            let file = File::open(&path).map_err(ImageError::store("open", &path))?;
            // What was downloaded was checked meanwhile.
            Ok(Fetched { number, input: Box::new(file), stored: None, unpacked, temporary: Some(path) })
        }
        (Place::There(..), None) => Err(ImageError::Stopped),
    }
}

fn there(place: &Place) -> u64 {
    match place {
        Place::There(descriptor, _) => descriptor.size,
        Place::Here(..) => 0,
    }
}

/// Refuses what is larger than the bound, and what cannot have room even if nothing grows by being unpacked.
fn check_room(layers: &[Layer], root: &Path, limits: &Limits) -> Result<(), ImageError> {
    let sum = |of: fn(&Place) -> u64| layers.iter().fold(0_u64, |sum, layer| sum.saturating_add(of(&layer.place)));
    let (size, downloaded) = (sum(Place::size), sum(there));
    if size > limits.compressed {
        let what = "the image, as it is stored,".to_owned();
        return Err(ImageError::Bound { what, limit: limits.compressed, unit: "bytes" });
    }
    let needed = size.saturating_add(downloaded).saturating_add(SPARE);
    match platform::free_space(root) {
        Some(free) if free < needed => Err(ImageError::Full { path: root.to_owned(), needed: Some((needed, free)) }),
        _ => Ok(()),
    }
}
