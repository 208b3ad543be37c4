//! Pictures and paper.

use gloveport_browser::BrowserError;
use gloveport_protocol::browser::{ElementTarget, PdfRequest, ScreenshotRequest};

use crate::support::{House, inline, selector, size};

#[tokio::test]
async fn pictures_are_of_the_view_the_page_or_an_element() {
    let Some(house) = House::open() else { return };
    house
        .go(&inline(
            "<body style='margin:0'><div style='height:2000px'></div>
             <p id=e style='width:120px;height:40px;margin:0;background:red'></p><div style='height:100px'></div>",
        ))
        .await;
    let picture = async |request| house.browser.screenshot(request).await;
    let of = |target: &str| ScreenshotRequest { target: Some(selector(target)), full_page: false };
    assert_eq!(size(&picture(ScreenshotRequest::default()).await.unwrap()), (1280, 720));
    let full = ScreenshotRequest { target: None, full_page: true };
    assert_eq!(size(&picture(full).await.unwrap()), (1280, 2140));
    let element = picture(of("#e")).await.unwrap();
    assert_eq!(size(&element), (120, 40));
    let pixels = gloveport_browsergym::overlay::decode_png(&element).unwrap();
    assert!(pixels.pixels().chunks(3).all(|pixel| pixel == [255, 0, 0]));
    let both = ScreenshotRequest { full_page: true, ..of("#e") };
    assert!(matches!(picture(both).await, Err(BrowserError::Invalid(_))));
    let none = ScreenshotRequest { target: Some(ElementTarget::default()), full_page: false };
    assert!(matches!(picture(none).await, Err(BrowserError::Invalid(_))));
    house.browser.close().await;
}

#[tokio::test]
async fn a_picture_of_a_page_is_bounded() {
    let Some(house) = House::open() else { return };
    house.go(&inline("<body style='margin:0'><div style='height:100000px;width:9000px'></div>")).await;
    let full = ScreenshotRequest { target: None, full_page: true };
    assert_eq!(size(&house.browser.screenshot(full).await.unwrap()), (4096, 16384));
    house.browser.close().await;
}

#[tokio::test]
async fn a_page_is_printed_as_pdf() {
    let Some(house) = House::open() else { return };
    house.go(&inline("<h1 style='break-after:page'>One</h1><h1>Two</h1>")).await;
    let pages = |pdf: &[u8]| {
        assert!(pdf.starts_with(b"%PDF-"));
        String::from_utf8_lossy(pdf).matches("/Type /Page\n").count()
    };
    let all = house.browser.pdf(PdfRequest::default()).await.unwrap();
    let first = PdfRequest { pages: Some("1".to_owned()), scale: Some(0.5), landscape: true, background: true };
    let first = house.browser.pdf(first).await.unwrap();
    assert_eq!((pages(&all), pages(&first)), (2, 1));
    let scaled = PdfRequest { scale: Some(3.0), ..PdfRequest::default() };
    let words = "the scale 3 is not from 0.1 to 2".to_owned();
    assert_eq!(house.browser.pdf(scaled).await, Err(BrowserError::Invalid(words)));
    let wrong = PdfRequest { pages: Some("x".to_owned()), ..PdfRequest::default() };
    assert!(matches!(house.browser.pdf(wrong).await, Err(BrowserError::Invalid(_))));
    house.browser.close().await;
}
