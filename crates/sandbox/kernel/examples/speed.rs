//! Measures a kernel: start to first result, and how long `1+1` takes.
//!
//! ```sh
//! cargo run --release -p gloveport-kernel --example speed -- [INTERPRETER]
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::{error::Error, path::PathBuf, time::Instant};

use gloveport_kernel::{Cell, Kernel, KernelOptions};
use gloveport_sys::Surroundings;

const ROUNDS: usize = 300;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options = KernelOptions::new(Surroundings::inherited(std::env::current_dir()?));
    options.interpreter = std::env::args_os().nth(1).map(PathBuf::from);
    for _start in 0..3 {
        let begin = Instant::now();
        let kernel = Kernel::start(options.clone());
        let cell = |code: &str| Cell { code: code.to_owned(), ..Cell::default() };
        let report = kernel.execute(cell("1+1")).await?;
        println!("start to first result: {:.0} ms ({})", begin.elapsed().as_secs_f64() * 1e3, report.interpreter);
        let mut times = Vec::with_capacity(ROUNDS);
        for _round in 0..ROUNDS {
            let begin = Instant::now();
            kernel.execute(cell("1+1")).await?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times.get(ROUNDS * percent / 100).copied().unwrap_or_default();
        println!("1+1: p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
        let begin = Instant::now();
        kernel.execute(cell("print('x' * 100_000_000)")).await?;
        println!("100 MB in one call: {:.2} s", begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        kernel.execute(cell("for i in range(100_000): print(i)")).await?;
        println!("100,000 lines: {:.2} s", begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        kernel.close().await;
        println!("close: {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
