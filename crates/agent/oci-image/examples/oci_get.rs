//! Gets an image, and holds its lease until standard input ends; tests end such a process in the middle of its work.
//!
//! `oci_get STORE REFERENCE` prints how far it is, and at last the image's digest.

use std::{
    io::{self, Read as _, Write as _},
    path::Path,
};

use gloveport_oci_image::{Options, Progress, Pull, Store};

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, reference] = arguments.as_slice() else {
        return Err(io::Error::other("expected a directory and a reference"));
    };
    let options = Options::default();
    let store = Store::open_with(Path::new(directory), options).map_err(io::Error::other)?;
    let told = |progress: Progress| drop(writeln!(io::stdout(), "{progress:?}"));
    let image = store.get(reference, Pull::Missing, &told).await.map_err(io::Error::other)?;
    writeln!(io::stdout(), "{}", image.digest)?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(image);
    Ok(())
}
