//! Measures how fast trees go in and out over loopback, beside GNU tar over loopback, and what memory that takes.
//!
//! `cargo run --release -p gloveport-server --example transfers -- [MEGABYTES] [FILES]`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program that prints numbers, and stops at the first broken assumption"
)]

use std::{
    fs,
    io::{self, BufRead as _, BufReader, BufWriter, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gloveport_archive::{ArchiveLimits, tar, zip};
use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_server::ServerOptions;
use tokio_util::sync::CancellationToken;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (megabytes, files) = (arguments.next().unwrap_or(2000), arguments.next().unwrap_or(10_000));
    let root = tempfile::tempdir().unwrap();
    let (large, many) = (root.path().join("large"), root.path().join("many"));
    make_large(&large, megabytes);
    make_many(&many, files);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (address, stop) = runtime.block_on(async {
        let executor = Executor::start(ExecutorOptions::inherited(root.path().to_owned())).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = gloveport_server::serve(
            listener,
            Arc::clone(&executor),
            ServerOptions::default(),
            stop.clone(),
            Duration::from_secs(1),
        );
        tokio::spawn(serving);
        (address, stop)
    });
    peak();
    println!("{:<30} {:>9} {:>9} {:>12}", "", "seconds", "MB/s", "peak memory");
    for (name, from, bytes) in
        [("one large file", &large, megabytes * 1_000_000), ("many small files", &many, files * 1024)]
    {
        let to = root.path().join("to");
        let measure = |what: &str, work: &dyn Fn()| {
            let _nothing_there = fs::remove_dir_all(&to);
            fs::create_dir(&to).unwrap();
            let began = Instant::now();
            work();
            let seconds = began.elapsed().as_secs_f64();
            let memory = peak() / 1_000_000;
            println!(
                "{:<30} {seconds:>9.3} {:>9.0} {memory:>9} MB",
                format!("{name}, {what}"),
                bytes as f64 / 1e6 / seconds
            );
        };
        measure("GNU tar", &|| by_gnu_tar(from, &to));
        measure("GNU tar", &|| by_gnu_tar(from, &to));
        measure("tar in", &|| tar_in(address, from, &to));
        measure("tar out", &|| {
            let body = get(address, &format!("/v1/files/archive?path={}", from.display()));
            tar::unpack(body, &to, tar::Origin::Trusted, &ArchiveLimits::default()).unwrap();
        });
        measure("zip in", &|| zip_in(address, from, &to));
        measure("zip out, unpacked", &|| {
            let mut file = tempfile::tempfile_in(&to).unwrap();
            io::copy(&mut get(address, &format!("/download_files?path={}", from.display())), &mut file).unwrap();
            zip::unpack(&file, &to, &ArchiveLimits::default()).unwrap();
        });
        measure("zip out, only received", &|| {
            let path = format!("/download_files?path={}", from.display());
            io::copy(&mut get(address, &path), &mut io::sink()).unwrap();
        });
    }
    stop.cancel();
}

fn make_large(directory: &Path, megabytes: u64) {
    fs::create_dir(directory).unwrap();
    let mut file = fs::File::create(directory.join("file")).unwrap();
    let mut state = 1_u64;
    let piece: Vec<u8> = (0..1_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_le_bytes()[7]
        })
        .collect();
    for _ in 0..megabytes {
        file.write_all(&piece).unwrap();
    }
}

fn make_many(directory: &Path, files: u64) {
    for number in 0..files {
        let place = directory.join((number / 500).to_string());
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(number.to_string()), vec![number.to_le_bytes()[0]; 1024]).unwrap();
    }
}

/// `tar -c` at one end of a connection, and `tar -x` at the other.
fn by_gnu_tar(from: &Path, to: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    let mut pack =
        Command::new("tar").args(["-cf", "-", "-C"]).arg(from).arg(".").stdout(OwnedFd::from(sender)).spawn().unwrap();
    let mut unpack =
        Command::new("tar").args(["-xf", "-", "-C"]).arg(to).stdin(OwnedFd::from(receiver)).spawn().unwrap();
    assert!(pack.wait().unwrap().success());
    assert!(unpack.wait().unwrap().success());
}

fn tar_in(address: SocketAddr, from: &Path, to: &Path) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "PUT /v1/files/archive?path={} HTTP/1.1\r\nhost: bench\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        to.display()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut chunks = BufWriter::with_capacity(256 * 1024, Chunks(stream.try_clone().unwrap()));
    tar::pack(from, &mut chunks).unwrap();
    chunks.flush().unwrap();
    stream.write_all(b"0\r\n\r\n").unwrap();
    answered(&mut stream);
}

/// Writes each piece as a chunk of HTTP.
struct Chunks(TcpStream);

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write!(self.0, "{:x}\r\n", bytes.len())?;
        self.0.write_all(bytes)?;
        self.0.write_all(b"\r\n")?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn zip_in(address: SocketAddr, from: &Path, to: &Path) {
    const BEFORE: &str = "--limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"tree.zip\"\r\n\r\n";
    const BEHIND: &str = "\r\n--limit--\r\n";
    let plan = zip::Plan::of_contents(from).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /upload_file?recursive=true&destination={} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\
         content-type: multipart/form-data; boundary=limit\r\ncontent-length: {}\r\n\r\n{BEFORE}",
        to.display(),
        plan.length() + (BEFORE.len() + BEHIND.len()) as u64
    );
    stream.write_all(head.as_bytes()).unwrap();
    plan.write_to(&mut stream).unwrap();
    stream.write_all(BEHIND.as_bytes()).unwrap();
    answered(&mut stream);
}

fn answered(stream: &mut TcpStream) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// The body of an answer.
fn get(address: SocketAddr, path: &str) -> Box<dyn Read> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n").unwrap();
    let mut reader = BufReader::with_capacity(256 * 1024, stream);
    let (mut line, mut chunked) = (String::new(), false);
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 OK"), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        chunked |= line.to_ascii_lowercase().starts_with("transfer-encoding: chunked");
    }
    if chunked { Box::new(Dechunked { reader, left: 0, ended: false }) } else { Box::new(reader) }
}

struct Dechunked {
    reader: BufReader<TcpStream>,
    left: u64,
    ended: bool,
}

impl Read for Dechunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        if self.left == 0 {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                if self.reader.read_line(&mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.left = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            if self.left == 0 {
                self.ended = true;
                return Ok(0);
            }
        }
        let read = self.reader.by_ref().take(self.left).read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The most memory that this process had at once since it was asked before, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    // The pages are counted anew only when they are touched.
    thread::yield_now();
    kilobytes * 1024
}
