//! `gloveport image pull`, `ls` and `rm`: images that root directories of sandboxes of this machine are made from.

use std::{
    process::ExitCode,
    time::{Instant, UNIX_EPOCH},
};

use gloveport_config::{Config, LoadOptions};
use gloveport_oci_image::{Progress, Pull, Store, Stored};
use gloveport_provider_local::LocalOptions;
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::local;
use crate::{
    image::arguments::{LsArgs, PullArgs, RmArgs},
    output::{moving_line, print, print_json, print_painted, tell},
    paint::Paint,
    providers,
    session::table,
};

const HEADING: [&str; 5] = ["IMAGE", "DIGEST", "SIZE", "AGE", "IN USE"];
/// Characters of a digest that are shown.
const SHORT: usize = 19;

/// How the runtime works whose images they are, by the configuration of this process.
pub(super) fn options() -> anyhow::Result<LocalOptions> {
    Ok(local::options(&providers::context_of(&Config::load(&LoadOptions::from_process()?)?)?)?)
}

fn store() -> anyhow::Result<Store> {
    Ok(options()?.images()?)
}

pub(crate) async fn pull(arguments: &PullArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    // Elsewhere than on a terminal it says nothing.
    let bar = if arguments.quiet || arguments.json { None } else { moving_line() };
    let told = |step: Progress| {
        if let Some(bar) = &bar {
            bar.set_message(step.to_string());
        }
    };
    let pulled = store()?.get(&arguments.image, Pull::Always, &told).await;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let (image, took) = (pulled?, began.elapsed());
    if arguments.json {
        print_json(&json!({
            "image": arguments.image, "digest": image.digest, "left_out": image.left_out, "seconds": took.as_secs_f64(),
        }))?;
    } else {
        print(&format!("{}\n", image.digest))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(stored: &Stored) -> Value {
    let seconds = |time: std::time::SystemTime| time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64());
    json!({
        "images": stored.references, "digest": stored.digest, "bytes": stored.bytes, "in_use": stored.in_use,
        "created": seconds(stored.created), "last_used": seconds(stored.last_used),
    })
}

fn row(stored: &Stored) -> Vec<String> {
    vec![
        if stored.references.is_empty() { "-".to_owned() } else { stored.references.join(", ") },
        stored.digest.chars().take(SHORT).collect(),
        DecimalBytes(stored.bytes).to_string(),
        table::age(Some(stored.created)),
        if stored.in_use { "yes" } else { "no" }.to_owned(),
    ]
}

pub(crate) fn list_images(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let stored = store()?.list()?;
    if arguments.json {
        print_json(&stored.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        let rows: Vec<_> = stored.iter().map(row).collect();
        print_painted(&table::table(&HEADING, &rows, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn remove_images(arguments: &RmArgs) -> anyhow::Result<ExitCode> {
    let store = store()?;
    let mut told = Vec::new();
    for image in &arguments.images {
        match store.remove(image) {
            Ok(bytes) => {
                told.push(json!({"image": image, "ok": true, "bytes": bytes}));
                if !arguments.json {
                    print(&format!("{image}\n"))?;
                }
            }
            Err(error) => {
                tell(&format!("gloveport: {error}"));
                told.push(json!({"image": image, "ok": false, "error": error.to_string()}));
            }
        }
    }
    if arguments.json {
        print_json(&told)?;
    }
    let failed = told.iter().any(|told| told["ok"] == false);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
