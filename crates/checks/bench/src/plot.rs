//! The picture of the README: gloveport next to the reference, drawn from the tables of `docs/performance.md`.
//!
//! | module | idea |
//! |---|---|
//! | [`page`] | reads numbers and their circumstances from the page |
//! | [`picture`] | draws them as SVG |

mod page;
mod picture;

use std::{fs, path::Path};

use anyhow::Context as _;

use self::{
    page::Page,
    picture::{Panel, Picture, Scale},
};

/// The times in the picture: what a reader sees, and the row of the page that has the numbers.
const TIMES: [(&str, &str); 9] = [
    ("Start, and run the first command", "start to first action, p50"),
    ("Run `echo hi`", "`echo hi`, p50"),
    ("Notice that a command has ended", "`sleep 0.05` noticed after its end, p50"),
    ("Return 10 MB of output", "10 MB of output, p50"),
    ("Run the cell `1+1` in a notebook", "`1+1`, p50"),
    ("Replace a text in a 1 MB file", "`str_replace` in 1 MB, p50"),
    ("Read a 1 KiB file", "`read` of 1 KiB, p50"),
    ("Write a 1 KiB file", "`write` of 1 KiB, p50"),
    ("Stop the server", "stop, p50"),
];

/// The memory in the picture.
const MEMORY: [(&str, &str); 1] = [("Idle server", "resident memory of an idle server")];

/// Draws the picture of the numbers in `page`, and writes it to `picture`.
pub(crate) fn plot(page: &Path, picture: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let drawn = draw(&text).with_context(|| format!("cannot draw the numbers of {}", page.display()))?;
    fs::write(picture, drawn).with_context(|| format!("cannot write {}", picture.display()))
}

fn draw(page: &str) -> anyhow::Result<String> {
    let page = Page::new(page);
    let rows = |chosen: &[(&'static str, &str)]| {
        chosen.iter().map(|(label, row)| page.comparison(label, row)).collect::<anyhow::Result<Vec<_>>>()
    };
    let picture = Picture {
        title: "gloveport and OpenHands 0.62, side by side",
        panels: vec![
            Panel {
                heading: "Time (median); shorter is better. The scale is logarithmic: each line is ten times the one before.",
                gain: "faster",
                scale: Scale::Logarithmic { from: -2, to: 4 },
                rows: rows(&TIMES)?,
            },
            Panel {
                heading: "Memory; shorter is better.",
                gain: "smaller",
                scale: Scale::Linear { to: 400.0, steps: 4 },
                rows: rows(&MEMORY)?,
            },
        ],
        source: format!("{} All numbers: docs/performance.md.", page.circumstances()?),
    };
    Ok(picture.svg())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use quick_xml::{Reader, events::Event};

    use super::*;

    /// A page with the rows of the picture, whose times are powers of ten from 0.1 ms on.
    fn page() -> String {
        let mut lines = vec!["| what | gloveport | OpenHands 0.62 |".to_owned(), "|---|---|---|".to_owned()];
        for (at, (_, row)) in (0..).zip(&TIMES) {
            lines.push(format!("| {row} | 0.{at}1 ms | {} ms |", 10_i64.pow(at % 5)));
        }
        lines.push("| resident memory of an idle server | 10 MiB | 200.5 MiB | 20 × | ≤ 10 MiB | yes |".into());
        lines.push("\nMeasured on a Sunday\nwith <care> & a clock.\n\nAnother paragraph.".into());
        lines.join("\n")
    }

    /// How many elements have this class, in a document that is well formed.
    fn elements(svg: &str, class: &str) -> usize {
        let mut reader = Reader::from_str(svg);
        let mut found = 0;
        loop {
            match reader.read_event().unwrap() {
                Event::Start(element) | Event::Empty(element) => {
                    let classes = element.try_get_attribute("class").unwrap();
                    found += usize::from(classes.is_some_and(|value| &*value.value == class));
                }
                Event::Eof => return found,
                _ => {}
            }
        }
    }

    #[test]
    fn a_picture_is_well_formed_and_has_a_bar_and_a_label_for_each_number() {
        let svg = draw(&page()).unwrap();
        let rows = TIMES.len() + MEMORY.len();
        for class in ["bar ours", "bar reference", "number ours", "number reference", "gain"] {
            // The legend has a bar of each kind, too.
            let legend = usize::from(class.starts_with("bar"));
            assert_eq!(elements(&svg, class), rows + legend, "{class}");
        }
        for text in ["0.010 ms", "1.0 s", "10 s", "200 MiB", "Measured on a Sunday with &lt;care&gt; &amp; a clock."] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("Another paragraph"), "{svg}");
    }

    #[test]
    fn a_row_that_the_page_does_not_have_is_named() {
        let error = draw(&page().replace("stop, p50", "end, p50")).unwrap_err();
        assert!(error.to_string().contains("stop, p50"), "{error}");
        let error = draw(&page().replace("200.5 MiB", "much")).unwrap_err();
        assert!(error.to_string().contains("much"), "{error}");
    }

    #[test]
    fn the_picture_of_the_readme_shows_the_numbers_of_the_page() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let page = fs::read_to_string(root.join("docs/performance.md")).unwrap();
        let picture = fs::read_to_string(root.join("docs/speed.svg")).unwrap();
        assert!(picture == draw(&page).unwrap(), "docs/speed.svg is older than the page; run scripts/bench --plot");
    }
}
