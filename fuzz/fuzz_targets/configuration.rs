//! Any configuration file and any variables: what is wrong is told, and nothing else happens.
#![no_main]

use std::{fs, sync::LazyLock};

use gloveport_config::{LoadOptions, check};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static ROOT: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory for the fuzzer"));

// The file ends at the first zero byte; a variable stands on each line behind it.
fuzz_target!(|data: &[u8]| {
    let (file, rest) = data.iter().position(|byte| *byte == 0).map_or((data, &[][..]), |at| data.split_at(at));
    let path = ROOT.path().join("config.toml");
    fs::write(&path, file).expect("room for the input");
    let rest = String::from_utf8_lossy(rest.get(1..).unwrap_or_default()).into_owned();
    let variables = rest.lines().filter_map(|line| line.split_once('='));
    let options = LoadOptions {
        file: Some(path),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        current_directory: ROOT.path().to_owned(),
        ..LoadOptions::default()
    };
    if let Ok(notes) = check(&options) {
        let words: usize = notes.iter().map(|note| note.message.len()).sum();
        assert!(words <= 1024 * 1024, "{words}");
    }
    assert_eq!(fs::read_dir(ROOT.path()).expect("it is there").count(), 1);
});
