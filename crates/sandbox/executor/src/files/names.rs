//! The names in a directory, as `/list_files` gives them (`action-execution-api` 2.6).

use std::{fs, io, path::Path};

/// Names in a directory: directories first, with a trailing `/`, then everything else whose target exists.
pub fn names(directory: &Path) -> io::Result<Vec<String>> {
    let (mut directories, mut files) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Follows links, so that those without a target are left out.
        match fs::metadata(entry.path()) {
            Ok(metadata) if metadata.is_dir() => directories.push(name + "/"),
            Ok(_) => files.push(name),
            Err(_) => {}
        }
    }
    directories.sort_by_cached_key(|name| name.trim_end_matches('/').to_lowercase());
    files.sort_by_cached_key(|name| name.to_lowercase());
    directories.append(&mut files);
    Ok(directories)
}
