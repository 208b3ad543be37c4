//! Runs a stand-in of a hosted service for programs that are not ours: `gloveport-stand-in SERVICE [--apart]`.
//!
//! It prints the variables with which the service's own SDK comes here, one a line, and ends when its standard input does.
#![expect(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a program for tests")]

use std::{io, process::ExitCode};

use gloveport_stand_ins::{Face, Kind, StandIn, daytona::Daytona, modal::Modal, runloop::Runloop};
use tokio::{runtime::Runtime, sync::oneshot};

const USAGE: &str = "usage: gloveport-stand-in runloop|daytona|modal [--apart]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, kind) = match *words {
        [name] => (name, Kind::Plain),
        [name, "--apart"] => (name, Kind::Apart),
        _ => ("", Kind::Plain),
    };
    let runtime = Runtime::new().unwrap();
    match name {
        Daytona::NAME => runtime.block_on(serve::<Daytona>(kind)),
        Modal::NAME => runtime.block_on(serve::<Modal>(kind)),
        Runloop::NAME => runtime.block_on(serve::<Runloop>(kind)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    // Requests that wait for something are not waited for.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// Serves until standard input ends, which it also does when who has started this is killed.
async fn serve<F: Face>(kind: Kind) {
    let service = StandIn::<F>::start(kind).await;
    for (name, value) in F::variables(&service.url) {
        println!("{name}={value}");
    }
    println!();
    let (tell, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _unreadable = io::copy(&mut io::stdin(), &mut io::sink());
        let _nobody_waits = tell.send(());
    });
    let _told = ended.await;
}
