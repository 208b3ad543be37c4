//! Performs action texts, one argument each, and prints what is to be seen after each of them.

use std::{io::Write as _, time::Instant};

use gloveport_browser::{Browser, BrowserOptions};
use gloveport_browsergym::axtree;
use gloveport_sys::Surroundings;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::current_dir()?;
    let downloads = std::env::temp_dir().join("downloads-of-browse");
    std::fs::create_dir_all(&downloads)?;
    let browser = Browser::new(BrowserOptions::new(Surroundings::inherited(directory), downloads));
    let mut out = std::io::stdout();
    for text in std::env::args().skip(1) {
        let began = Instant::now();
        let result = browser.step(&text).await;
        writeln!(out, "== {text} ({:.0} ms)", began.elapsed().as_secs_f64() * 1000.0)?;
        match result {
            Ok(step) => {
                let seen = step.observation;
                writeln!(
                    out,
                    "{} of {:?}, focus {:?}, picture {} bytes",
                    seen.active_index,
                    seen.open_pages,
                    seen.focused,
                    seen.screenshot.len()
                )?;
                if let Some(error) = step.error {
                    writeln!(out, "error: {error}")?;
                }
                writeln!(out, "{}", axtree::flatten(&seen.axtree, &seen.properties)?)?;
            }
            Err(error) => writeln!(out, "no observation: {error}")?,
        }
    }
    browser.close().await;
    Ok(())
}
