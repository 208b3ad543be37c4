//! Notebooks of Jupyter as a page: what was written, and what came of it when it ran.

use serde_json::{Map, Value};

use super::{html::Html, markdown};
use crate::error::ConversionError;

/// Most cells that are shown.
const CELLS: usize = 2_000;

/// Most outputs of a cell that are shown.
const OUTPUTS: usize = 200;

/// Most bytes of a text that are shown.
const TEXT: usize = 256 * 1024;

/// The version of the format that is understood.
const VERSION: u64 = 4;

/// Pictures that are shown, with the best first.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/gif"];

/// Texts that are shown where there is no picture, with the best first. HTML is shown as its source, since nobody knows
/// what it would do to the page.
const TEXTS: [&str; 5] = ["text/plain", "text/html", "text/latex", "image/svg+xml", "application/json"];

/// Writes the cells of a notebook.
pub(super) fn notebook(page: &mut Html, bytes: &[u8]) -> Result<(), ConversionError> {
    let invalid = |reason: String| ConversionError::Invalid(reason);
    let notebook: Value =
        serde_json::from_slice(bytes).map_err(|error| invalid(format!("it is no notebook: {error}")))?;
    match notebook.get("nbformat").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => {
            let hint = "open it with Jupyter and save it again";
            return Err(invalid(format!("its format is version {version}, and only {VERSION} is read; {hint}")));
        }
        None => return Err(invalid("it is no notebook: it has no `nbformat`".to_owned())),
    }
    let Some(cells) = notebook.get("cells").and_then(Value::as_array) else {
        return Err(invalid("it is no notebook: it has no `cells`".to_owned()));
    };
    if cells.is_empty() {
        page.note("There is nothing in the notebook.");
    }
    for cell in cells.iter().take(CELLS) {
        if !page.takes_element() {
            return Ok(());
        }
        page.markup("<section class=\"cell\">\n");
        show(page, cell);
        page.markup("</section>\n");
    }
    if cells.len() > CELLS {
        page.note(&format!("Only the first {CELLS} of {} cells are shown.", cells.len()));
    }
    Ok(())
}

fn show(page: &mut Html, cell: &Value) {
    let source = joined(cell.get("source"));
    match cell.get("cell_type").and_then(Value::as_str) {
        Some("markdown") => {
            let shown = bounded(page, &source);
            markdown::markdown(page, &shown);
        }
        Some("code") => {
            let count = cell.get("execution_count").and_then(Value::as_u64);
            let number = count.map_or_else(|| " ".to_owned(), |count| count.to_string());
            label(page, &format!("In [{number}]:"));
            text(page, "code", &source);
            let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for each in outputs.iter().take(OUTPUTS) {
                if !page.takes_element() {
                    return;
                }
                output(page, each);
            }
            if outputs.len() > OUTPUTS {
                page.note(&format!("Only the first {OUTPUTS} of {} outputs are shown.", outputs.len()));
            }
        }
        _ => text(page, "text", &source),
    }
}

fn output(page: &mut Html, output: &Value) {
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => text(page, "output", &plain(&joined(output.get("text")))),
        Some("error") => text(page, "error", &plain(&traceback(output))),
        Some("execute_result" | "display_data") => {
            if let Some(count) = output.get("execution_count").and_then(Value::as_u64) {
                label(page, &format!("Out [{count}]:"));
            }
            if let Some(data) = output.get("data").and_then(Value::as_object) {
                display(page, data);
            }
        }
        _ => page.note("There is an output of an unknown kind here."),
    }
}

/// The best of what an output can be shown as.
fn display(page: &mut Html, data: &Map<String, Value>) {
    let pictures = PICTURES.into_iter().filter_map(|kind| Some((kind, joined(Some(data.get(kind)?)))));
    for (kind, picture) in pictures {
        if show_picture(page, kind, &picture) {
            return;
        }
    }
    if let Some(source) = data.get("text/markdown") {
        let source = bounded(page, &joined(Some(source)));
        markdown::markdown(page, &source);
        return;
    }
    match TEXTS.into_iter().find_map(|kind| Some((kind, data.get(kind)?))) {
        Some(("text/plain", shown)) => text(page, "output", &plain(&joined(Some(shown)))),
        Some((kind, shown)) => {
            page.note(&format!("{kind}, as its source:"));
            text(page, "output", &joined(Some(shown)));
        }
        None => page.note("There is an output here that cannot be shown."),
    }
}

/// A picture, or that it is too large. Returns whether there is one.
fn show_picture(page: &mut Html, kind: &'static str, picture: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let data: String = picture.split_ascii_whitespace().collect();
    if data.is_empty() || !data.bytes().all(is_base64) {
        return false;
    }
    if !page.whole(&format!("<img alt=\"output\" src=\"data:{kind};base64,{data}\">\n")) {
        page.note(&format!("There is a picture here with {} MB, which is too large for the page.", data.len() >> 20));
    }
    true
}

/// What went wrong, as the kernel told it.
fn traceback(output: &Value) -> String {
    let lines = output.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
    if !lines.is_empty() {
        return lines.join("\n");
    }
    let part = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}: {}", part("ename"), part("evalue"))
}

fn label(page: &mut Html, label: &str) {
    page.markup("<div class=\"label\">");
    page.text(label);
    page.markup("</div>\n");
}

/// A text of a cell, which is nothing if it is empty.
fn text(page: &mut Html, class: &'static str, text: &str) {
    if !text.is_empty() {
        let shown = bounded(page, text);
        page.pre(class, &shown);
    }
}

/// As much of a text as is shown, and that there is more.
fn bounded(page: &mut Html, text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(TEXT)];
    if shown.len() < text.len() {
        page.note(&format!("Of the next text only the first {} KB of {} are shown.", TEXT >> 10, text.len() >> 10));
    }
    shown.to_owned()
}

/// A text, or its lines; anything else as JSON.
fn joined(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) if lines.iter().all(Value::is_string) => {
            lines.iter().filter_map(Value::as_str).collect()
        }
        Some(other) => other.to_string(),
    }
}

/// The text without the sequences by which programs colour it: what a terminal shows of it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = match after.as_bytes().first() {
            // Parameters, then the letter that ends it.
            Some(b'[') => {
                after[1..].trim_start_matches(|byte| (' '..='?').contains(&byte)).get(1..).unwrap_or_default()
            }
            // A text, then what ends it: a bell or another sequence.
            Some(b']') => match after.find(['\x07', '\x1b']) {
                Some(at) => after[at..].trim_start_matches(['\x07', '\x1b', '\\']),
                None => "",
            },
            Some(_) => after.get(1..).unwrap_or(after),
            None => "",
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show_all(cells: &Value) -> String {
        let mut page = Html::default();
        let bytes = serde_json::to_vec(&json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}));
        notebook(&mut page, &bytes.unwrap()).unwrap();
        page.finish()
    }

    #[test]
    fn cells_are_shown_with_what_came_of_them() {
        let page = show_all(&json!([
            {"cell_type": "markdown", "source": ["# Title\n", "<script>x</script>"]},
            {"cell_type": "code", "execution_count": 3, "source": "print('<b>')", "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["\u{1b}[31m<b>\u{1b}[0m\n"]},
                {"output_type": "execute_result", "execution_count": 3, "data": {
                    "text/html": "<table><script>x</script></table>", "text/plain": "a  b"}},
                {"output_type": "display_data", "data": {"text/html": "<script>y</script>"}},
                {"output_type": "display_data", "data": {"image/png": "iVBO\nRw0K", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[0;31mE\u{1b}[0m: v", "line"]},
            ]},
            {"cell_type": "raw", "source": "<raw>"},
        ]));
        let expected = [
            "<section class=\"cell\">\n<div class=\"markdown\">\n<h1>Title</h1>\n<p>&lt;script&gt;x&lt;/script&gt;</p>\n</div>\n</section>\n",
            "<section class=\"cell\">\n<div class=\"label\">In [3]:</div>\n<pre class=\"code\">print('&lt;b&gt;')</pre>\n",
            "<pre class=\"output\">&lt;b&gt;\n</pre>\n",
            "<div class=\"label\">Out [3]:</div>\n<pre class=\"output\">a  b</pre>\n",
            "<p class=\"note\">text/html, as its source:</p>\n<pre class=\"output\">&lt;script&gt;y&lt;/script&gt;</pre>\n",
            "<img alt=\"output\" src=\"data:image/png;base64,iVBORw0K\">\n",
            "<pre class=\"error\">E: v\nline</pre>\n</section>\n",
            "<section class=\"cell\">\n<pre class=\"text\">&lt;raw&gt;</pre>\n</section>\n",
        ];
        assert_eq!(page, expected.concat());
    }

    #[test]
    fn what_is_no_notebook_says_so() {
        for (content, expected) in [
            (b"{".to_vec(), "it is no notebook: EOF while parsing"),
            (b"[]".to_vec(), "it has no `nbformat`"),
            (b"{\"nbformat\":3,\"worksheets\":[]}".to_vec(), "its format is version 3, and only 4 is read"),
            (b"{\"nbformat\":4}".to_vec(), "it has no `cells`"),
            ("[".repeat(1_000_000).into_bytes(), "recursion limit exceeded"),
            (
                format!("{{\"nbformat\":4,\"cells\":{}", "{\"a\":[".repeat(100_000)).into_bytes(),
                "recursion limit exceeded",
            ),
        ] {
            let error = notebook(&mut Html::default(), &content).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn strange_cells_are_shown_as_well_as_they_can_be() {
        let page = show_all(&json!([
            7,
            {"cell_type": "code", "source": {"a": 1}, "outputs": {"b": 2}},
            {"cell_type": "code", "source": [], "outputs": [8, {"output_type": "x"}, {"output_type": "display_data", "data": {"application/x": "y"}}]},
            {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": {"image/png": "\" onerror=alert(1) x=\"", "text/plain": "p"}}]},
            {"cell_type": "code", "outputs": [{"output_type": "error", "ename": "<E>", "evalue": "v"}]},
        ]));
        assert!(
            page.contains("{&quot;a&quot;:1}") && page.contains("unknown kind") && page.contains("cannot be shown"),
            "{page}"
        );
        assert!(page.contains("<pre class=\"output\">p</pre>") && !page.contains("onerror"), "{page}");
        assert!(page.contains("&lt;E&gt;: v"), "{page}");
    }

    #[test]
    fn what_is_too_much_is_left_out_and_the_page_says_so() {
        let page = show_all(&Value::Array(vec![json!({"cell_type": "raw", "source": "x"}); 3_000]));
        assert!(page.contains("Only the first 2000 of 3000 cells are shown."), "{}", page.len());
        let output = json!({"output_type": "stream", "text": "y"});
        let page = show_all(&json!([{"cell_type": "code", "source": "", "outputs": vec![output; 300]}]));
        assert!(page.contains("Only the first 200 of 300 outputs are shown."), "{}", page.len());
        let page = show_all(&json!([{"cell_type": "raw", "source": "z".repeat(1024 * 1024)}]));
        assert!(page.contains("only the first 256 KB of 1024 are shown.") && page.len() < 300_000, "{}", page.len());
        let data = json!({"image/png": "A".repeat(9 * 1024 * 1024)});
        let page =
            show_all(&json!([{"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]}]));
        assert!(page.contains("a picture here with 9 MB, which is too large"), "{}", page.len());
    }

    #[test]
    fn sequences_of_terminals_are_not_shown() {
        for (text, expected) in [
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]8;;http://a\x07link\x1b]8;;\x1b\\ end", "link end"),
            ("\x1bMup\x1b", "up"),
            ("\x1b[", ""),
            ("\x1b[31", ""),
            ("\x1bü\x1b[ü", "ü"),
            ("plain", "plain"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
