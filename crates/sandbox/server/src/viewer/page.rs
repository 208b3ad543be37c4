//! The page that shows a file. It is written while it is sent, so a large file is never in memory as a whole page.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek as _, Write},
    time::Duration,
};

use axum::{body::Body, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, stream};
use gloveport_documents as documents;
use gloveport_documents::{DrawError, Interrupt, ReadError, Reader, View};
use gloveport_sys::Identity;
use http::{HeaderValue, StatusCode, header::CONTENT_SECURITY_POLICY};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::time::timeout;

use super::open::{self, Kind};
use crate::{
    answer,
    docs::escape,
    transfer::{self, Transfers},
};

/// Largest file that is shown.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Bytes that are encoded at once; base64 takes three at a time.
const PIECE: usize = 192 * 1024;
/// Longest time that a page stands still, which is when one page of a PDF takes too long.
const PAUSE: Duration = Duration::from_mins(1);

/// Why a file is not shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ViewError {
    #[error("the path is relative")]
    Relative,
    #[error("there is no such file")]
    Missing,
    #[error("the path is a directory")]
    Directory,
    #[error(
        "Unsupported file extension: {0}. Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif. Markdown (.md), tables \
         (.csv, .tsv, .xlsx), notebooks (.ipynb) and texts with a usual extension (.txt, .py, …) are shown as well."
    )]
    Unsupported(String),
    #[error("The content of the file is not a PNG, JPEG or GIF image.")]
    NoImage,
    #[error("The file is made by the kernel, which shows no files to be viewed.")]
    Kernel,
    #[error("The file has {size} bytes, and at most {LARGEST} are shown.")]
    TooLarge { size: u64 },
    #[error("{0}.")]
    Unreadable(#[from] ReadError),
    #[error(transparent)]
    Busy(#[from] transfer::Busy),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the work did not end: {0}")]
    Defect(#[from] tokio::task::JoinError),
}

impl ViewError {
    pub(super) fn status_and_title(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Relative => (StatusCode::BAD_REQUEST, "Error: Path must be absolute"),
            Self::Missing => (StatusCode::NOT_FOUND, "Error: File not found"),
            Self::Directory => (StatusCode::BAD_REQUEST, "Error: Path is a directory"),
            Self::Unsupported(_)
            | Self::NoImage
            | Self::Kernel
            | Self::TooLarge { .. }
            | Self::Unreadable(_)
            | Self::Busy(_)
            | Self::Io(_)
            | Self::Defect(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Error viewing file"),
        }
    }

    /// What is said beside the title.
    pub(super) fn message(&self) -> Option<String> {
        match self {
            Self::Relative | Self::Missing | Self::Directory => None,
            other => Some(other.to_string()),
        }
    }
}

/// The page of a file, as a user may see it.
pub(super) async fn answer(turns: &Transfers, identity: Option<&Identity>, path: &str) -> Result<Response, ViewError> {
    let turn = turns.turn().await?;
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let (path, user) = (path.to_owned(), identity.cloned());
    let opening = tokio::task::spawn_blocking(move || {
        let (file, kind) = open::find(path, user)?;
        let size = file.metadata()?.len();
        let is_cut = matches!(kind, Kind::Written(view) if view.takes_a_beginning());
        if size > LARGEST && !is_cut { Err(ViewError::TooLarge { size }) } else { Ok((file, kind)) }
    });
    let (file, kind) = opening.await??;
    let nonce = nonce()?;
    let page = Page { name: escape(&name), nonce: nonce.clone() };
    let (reader, interrupt) = (Reader::new(identity.cloned()), Interrupt::default());
    let leaving = Leaving(interrupt.clone());
    let body = transfer::stream::<ViewError, _>(turn, move |out| {
        let mut out = BufWriter::with_capacity(PIECE, out);
        match kind {
            Kind::Image { mime } => page.image(&mut out, file, mime)?,
            Kind::Pdf { is_one } => page.pdf(&mut out, file, is_one, &reader, &interrupt)?,
            Kind::Written(view) => page.written(&mut out, view, file, &reader, &interrupt)?,
        }
        Ok(out.flush()?)
    });
    let mut response = answer::with_type(StatusCode::OK, "text/html; charset=utf-8", watched(body.await?, leaving));
    let headers = response.headers_mut();
    // What is written has no scripts, whatever became of its reader.
    let (scripts, sandbox) = match kind {
        Kind::Written(_) => (String::new(), "sandbox"),
        Kind::Image { .. } | Kind::Pdf { .. } => (format!("script-src 'nonce-{nonce}'; "), "sandbox allow-scripts"),
    };
    let policy = format!(
        "default-src 'none'; img-src data:; {scripts}style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; {sandbox}"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// Ends what is read for a page that nobody waits for.
struct Leaving(Interrupt);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// The body, broken off if it stands still.
fn watched(body: Body, leaving: Leaving) -> Body {
    Body::from_stream(stream::unfold(Some((body.into_data_stream(), leaving)), async |state| {
        let (mut body, leaving) = state?;
        match timeout(PAUSE, body.next()).await {
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some((body, leaving)))),
            Ok(None) => None,
            Ok(Some(Err(error))) => Some((Err(io::Error::other(error)), None)),
            Err(_) => Some((Err(io::Error::new(io::ErrorKind::TimedOut, "a page takes too long")), None)),
        }
    }))
}

/// What marks the scripts of a page as its own.
fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(STANDARD.encode(bytes))
}

struct Page {
    /// The name of the file, escaped.
    name: String,
    nonce: String,
}

impl Page {
    fn image(&self, out: &mut impl Write, file: File, mime: &str) -> Result<(), ViewError> {
        self.head(out)?;
        write!(out, "<img alt=\"{}\" src=\"data:{mime};base64,", self.name)?;
        encode(file, out)?;
        out.write_all(b"\">\n</div></body></html>\n")?;
        Ok(())
    }

    fn written(
        &self,
        out: &mut impl Write,
        view: View,
        file: File,
        reader: &Reader,
        interrupt: &Interrupt,
    ) -> Result<(), ViewError> {
        // Before anything is sent, so that a failure is an answer of its own.
        let inner = reader.web(view, file, interrupt)?;
        self.head(out)?;
        writeln!(out, "<main>\n{inner}</main>\n</div></body></html>")?;
        Ok(())
    }

    fn pdf(
        &self,
        out: &mut impl Write,
        mut file: File,
        is_one: bool,
        reader: &Reader,
        interrupt: &Interrupt,
    ) -> Result<(), ViewError> {
        self.head(out)?;
        if is_one {
            // The file itself, for whoever wants more of it than the pictures of its pages.
            write!(out, "<script type=\"application/pdf;base64\" id=\"file\" nonce=\"{}\">", self.nonce)?;
            encode((&file).take(LARGEST), out)?;
            out.write_all(b"</script>\n")?;
        }
        writeln!(out, "<script nonce=\"{}\">{DRAW}</script>", self.nonce)?;
        // What has come so far is shown while the pages are drawn.
        out.flush()?;
        let failure = if is_one {
            file.rewind()?;
            match reader.draw(file, interrupt, |page| self.page(out, page)) {
                Ok(()) => None,
                Err(DrawError::Output(error)) => return Err(error.into()),
                Err(DrawError::Read(error)) => Some(error.to_string()),
            }
        } else {
            Some("the file is not a PDF, or is damaged".to_owned())
        };
        if let Some(reason) = failure {
            // As text of a script: JSON, with nothing that could end it.
            let message = serde_json::to_string(&reason).unwrap_or_default().replace('<', "\\u003c");
            writeln!(out, "<script nonce=\"{}\">fail({message});</script>", self.nonce)?;
        }
        out.write_all(b"</div></body></html>\n")?;
        Ok(())
    }

    /// One page of a PDF.
    fn page(&self, out: &mut impl Write, page: documents::Page<'_>) -> io::Result<()> {
        match page {
            documents::Page::Picture(documents::Picture { number, width, height, png }) => {
                writeln!(
                    out,
                    "<canvas class=\"page\" id=\"page{number}\" width=\"{width}\" height=\"{height}\"></canvas>"
                )?;
                write!(out, "<script nonce=\"{}\">draw(\"page{number}\", \"", self.nonce)?;
                encode(png, out)?;
                out.write_all(b"\");</script>\n")?;
                out.flush()
            }
            documents::Page::Note(text) => writeln!(out, "<p>{}</p>", escape(&text)),
        }
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let (name, nonce) = (&self.name, &self.nonce);
        writeln!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>File Viewer - {name}</title>\n\
             <style nonce=\"{nonce}\">{STYLE}</style></head>\n<body><div id=\"viewer\">"
        )
    }
}

/// How it looks.
const STYLE: &str = "body{margin:0;background:#e8e8e8;font-family:sans-serif}\
#viewer{display:flex;flex-direction:column;align-items:center;gap:12px;padding:12px}\
img,canvas{max-width:100%;height:auto;background:#fff;box-shadow:0 1px 4px #888}\
main{box-sizing:border-box;width:100%;max-width:1100px;padding:16px 24px;overflow-x:auto;background:#fff}\
main img{box-shadow:none}pre{margin:0 0 8px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}\
table{border-collapse:collapse;font-size:13px}th,td{padding:3px 8px;border:1px solid #ccc;white-space:pre-wrap}\
th{background:#f3f3f3;text-align:left}.cell{margin-bottom:16px}.label{color:#777;font:13px monospace}\
.code,.markdown pre{padding:8px;background:#f3f3f3}.error{color:#a00}.note{color:#777;font-style:italic}";

/// Draws the picture of a page, and tells what fails.
const DRAW: &str = "\"use strict\";\
function fail(message){document.getElementById(\"viewer\").textContent=\"Error loading file: \"+message;}\
window.addEventListener(\"error\",event=>fail(event.message));\
function draw(id,data){const canvas=document.getElementById(id),image=new Image();\
image.onload=()=>{if(canvas.isConnected)canvas.getContext(\"2d\").drawImage(image,0,0);};\
image.onerror=()=>fail(\"the picture of \"+id+\" cannot be shown\");\
image.src=\"data:image/png;base64,\"+data;}";

/// Writes base64 of everything that is read.
fn encode(mut from: impl Read, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(PIECE);
    let mut text = String::new();
    loop {
        bytes.clear();
        let length = from.by_ref().take(PIECE as u64).read_to_end(&mut bytes)?;
        text.clear();
        STANDARD.encode_string(&bytes, &mut text);
        out.write_all(text.as_bytes())?;
        if length < PIECE {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_encoded_as_the_whole() {
        for length in [0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
            let bytes: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[0]).collect();
            let mut out = Vec::new();
            encode(bytes.as_slice(), &mut out).unwrap();
            assert_eq!(out, STANDARD.encode(&bytes).into_bytes(), "{length}");
        }
    }
}
