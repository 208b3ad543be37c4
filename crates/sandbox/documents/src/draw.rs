//! Pictures of the pages of a PDF file.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use hayro::{
    PixmapSettings, RenderCache, RenderSettings,
    hayro_interpret::InterpreterSettings,
    hayro_syntax::{DecryptionError, LoadPdfError, Pdf, page::Page as PdfPage},
    vello_cpu::color::palette::css::WHITE,
};

use crate::limits::{PAGES, SIDE};

/// How much larger than on paper (72 dots per inch) pages are drawn.
const SCALE: f32 = 1.5;
/// Time after which no other page is begun, so that the last one may take as long as is left of the child's.
const TIME: Duration = Duration::from_secs(20);

/// Why nothing is shown, or no more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PdfError {
    #[error("the file is not a PDF, or is damaged")]
    Damaged,
    #[error("the file is encrypted, and needs a password")]
    Encrypted,
    #[error("the file has no pages")]
    Empty,
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// What is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Picture {
        /// Counted from 1.
        number: u32,
        width: u16,
        height: u16,
        png: Vec<u8>,
    },
    /// Something about pages that are not shown.
    Note(String),
}

/// Draws page by page.
pub(crate) fn pages(file: Vec<u8>, mut show: impl FnMut(Page) -> io::Result<()>) -> Result<(), PdfError> {
    // A defect that one page meets leaves the others.
    let opened = catch_unwind(|| Pdf::new(file)).map_err(|_| PdfError::Damaged)?;
    let pdf = opened.map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => PdfError::Encrypted,
        LoadPdfError::Decryption(_) | LoadPdfError::Invalid => PdfError::Damaged,
    })?;
    let pages = catch_unwind(AssertUnwindSafe(|| pdf.pages())).map_err(|_| PdfError::Damaged)?;
    let count = pages.len();
    if count == 0 {
        return Err(PdfError::Empty);
    }
    let began = Instant::now();
    let (cache, settings) = (RenderCache::new(), InterpreterSettings::default());
    for (number, page) in (1..).zip(pages.iter()) {
        if number > PAGES {
            show(Page::Note(format!("Only the first {PAGES} of {count} pages are shown.")))?;
            break;
        }
        if began.elapsed() > TIME {
            let text = format!("Only the first {} of {count} pages are shown, because they take long.", number - 1);
            show(Page::Note(text))?;
            break;
        }
        let drawn = catch_unwind(AssertUnwindSafe(|| draw(page, &cache, &settings)));
        match drawn.ok().flatten() {
            Some((width, height, png)) => show(Page::Picture { number, width, height, png })?,
            None => show(Page::Note(format!("Page {number} cannot be drawn.")))?,
        }
    }
    Ok(())
}

fn draw<'a>(
    page: &'a PdfPage<'a>,
    cache: &RenderCache<'a>,
    settings: &InterpreterSettings,
) -> Option<(u16, u16, Vec<u8>)> {
    let (width, height) = page.render_dimensions();
    let longest = width.max(height);
    // Sizes that are no numbers do not compare.
    if !(width > 0.0 && height > 0.0 && longest.is_finite()) {
        return None;
    }
    let scale = SCALE.min(f32::from(SIDE) / longest);
    let pixmap = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let picture = hayro::render(page, cache, settings, &RenderSettings::default(), &pixmap);
    let (width, height) = (picture.width(), picture.height());
    if width == 0 || height == 0 {
        return None;
    }
    Some((width, height, picture.into_png().ok()?))
}
