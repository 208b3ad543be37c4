//! Tables as a page.

use super::html::Html;
use crate::xlsx::Sheet;

/// Most rows of a table that are shown.
pub(crate) const ROWS: usize = 2_000;

/// Most columns of a table that are shown.
pub(crate) const COLUMNS: usize = 200;

/// Most characters of a cell that are shown.
const CELL: usize = 2_000;

/// What may stand between cells, if the name of the file does not say it.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// A table of cells that a character keeps apart. Cells in quotes may hold it, ends of lines, and doubled quotes.
pub(super) fn separated(page: &mut Html, text: &str, separator: Option<char>) {
    let mut records = Records { rest: text, separator: separator.unwrap_or_else(|| separator_of(text)) };
    let mut rows = Vec::new();
    let (mut widest, mut is_longer) = (0, false);
    while let Some((row, cells)) = records.next_row() {
        if rows.len() == ROWS {
            is_longer = true;
            break;
        }
        widest = widest.max(cells);
        rows.push(row);
    }
    table(page, &rows);
    bounds(page, is_longer, widest > COLUMNS);
}

/// The tables of a workbook.
pub(super) fn sheets(page: &mut Html, sheets: &[Sheet]) {
    if sheets.is_empty() {
        page.note("The workbook has no sheets.");
    }
    for sheet in sheets {
        if !page.takes_element() {
            return;
        }
        page.markup("<h2>");
        page.text(&sheet.name);
        page.markup("</h2>\n");
        table(page, &sheet.rows);
        bounds(page, sheet.is_longer, sheet.is_wider);
    }
}

/// Says what is not shown of a table.
fn bounds(page: &mut Html, is_longer: bool, is_wider: bool) {
    if is_longer {
        page.note(&format!("The table is longer. Only its first {ROWS} rows are shown, or fewer if they are wide."));
    }
    if is_wider {
        page.note(&format!("The table is wider. Only its first {COLUMNS} columns are shown."));
    }
}

/// Rows, the first of which is the head.
fn table(page: &mut Html, rows: &[Vec<String>]) {
    if rows.is_empty() {
        page.note("There is nothing in the table.");
        return;
    }
    page.markup("<table>\n");
    for (number, row) in rows.iter().enumerate() {
        if !page.takes_element() {
            break;
        }
        let (begin, end) = if number == 0 { ("<th>", "</th>") } else { ("<td>", "</td>") };
        page.markup("<tr>");
        for cell in row {
            if !page.takes_element() {
                break;
            }
            page.markup(begin);
            match cell.char_indices().nth(CELL) {
                Some((at, _)) => page.text(&format!("{}…", &cell[..at])),
                None => page.text(cell),
            }
            page.markup(end);
        }
        page.markup("</tr>\n");
    }
    page.markup("</table>\n");
}

/// What stands between the cells of the first line, outside of quotes: the one that does so most often.
fn separator_of(text: &str) -> char {
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut is_quoted = false;
    for character in text.chars().take(64 * 1024) {
        match character {
            '"' => is_quoted = !is_quoted,
            '\n' | '\r' if !is_quoted => break,
            _ if is_quoted => {}
            other => {
                if let Some(at) = SEPARATORS.iter().position(|separator| *separator == other) {
                    counts[at] += 1;
                }
            }
        }
    }
    // Of those that are as frequent, the first.
    let most = counts.iter().copied().max().unwrap_or(0);
    counts.iter().position(|count| *count == most).map_or(',', |at| SEPARATORS[at])
}

/// The rows of a text.
struct Records<'a> {
    rest: &'a str,
    separator: char,
}

impl Records<'_> {
    /// The next row, and how many cells it has, of which no more than there are columns are kept. Lines without anything
    /// are none.
    fn next_row(&mut self) -> Option<(Vec<String>, usize)> {
        self.rest = self.rest.trim_start_matches(['\r', '\n']);
        if self.rest.is_empty() {
            return None;
        }
        let (mut row, mut cells) = (Vec::new(), 0);
        loop {
            let (cell, is_last) = self.next_cell();
            cells += 1;
            if row.len() < COLUMNS {
                row.push(cell);
            }
            if is_last {
                return Some((row, cells));
            }
        }
    }

    /// The next cell, and whether it is the last one of its row. What is wrong in it is taken as it stands.
    fn next_cell(&mut self) -> (String, bool) {
        let mut cell = String::new();
        if let Some(mut rest) = self.rest.strip_prefix('"') {
            loop {
                let Some((text, after)) = rest.split_once('"') else {
                    // A quote that does not end ends with the text.
                    push(&mut cell, rest);
                    self.rest = "";
                    return (cell, true);
                };
                push(&mut cell, text);
                let Some(after_both) = after.strip_prefix('"') else {
                    self.rest = after;
                    break;
                };
                push(&mut cell, "\"");
                rest = after_both;
            }
        }
        let separator = self.separator;
        let end = self.rest.find([separator, '\n', '\r']).unwrap_or(self.rest.len());
        push(&mut cell, &self.rest[..end]);
        let after = &self.rest[end..];
        let next = after.strip_prefix(separator);
        self.rest = next.unwrap_or(after);
        (cell, next.is_none())
    }
}

/// Adds to a cell as much as is worth being kept: one more character than is shown.
fn push(cell: &mut String, text: &str) {
    if cell.len() <= 4 * CELL {
        cell.push_str(&text[..text.floor_char_boundary(4 * CELL + 4)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, separator: Option<char>) -> Vec<Vec<String>> {
        let mut records = Records { rest: text, separator: separator.unwrap_or_else(|| separator_of(text)) };
        std::iter::from_fn(|| records.next_row().map(|(row, _)| row)).collect()
    }

    #[test]
    fn rows_are_read_as_they_were_meant() {
        for (text, separator, expected) in [
            ("a,b\n1,2\n", None, vec![vec!["a", "b"], vec!["1", "2"]]),
            ("a;b\r\n\"1;2\";\"x\"\"y\"", None, vec![vec!["a", "b"], vec!["1;2", "x\"y"]]),
            ("a\tb,c\n1\t2", Some('\t'), vec![vec!["a", "b,c"], vec!["1", "2"]]),
            ("a|b|c\n1|2|", None, vec![vec!["a", "b", "c"], vec!["1", "2", ""]]),
            ("\"two\nlines\",b", None, vec![vec!["two\nlines", "b"]]),
            ("one\ntwo", None, vec![vec!["one"], vec!["two"]]),
            ("\n\n,\n", None, vec![vec!["", ""]]),
            // None of these is right, and each is shown.
            ("a,\"b\"c,d\n", None, vec![vec!["a", "bc", "d"]]),
            ("a,b\"c\"\n1", None, vec![vec!["a", "b\"c\""], vec!["1"]]),
            ("a,\"b\n1,2", None, vec![vec!["a", "b\n1,2"]]),
            ("", None, Vec::new()),
        ] {
            assert_eq!(rows(text, separator), expected, "{text:?}");
        }
    }

    #[test]
    fn a_table_has_a_head_and_nothing_of_its_cells_is_markup() {
        let mut page = Html::default();
        separated(&mut page, "a,<b>\n\"</td><script>\",&\n", None);
        let expected = "<table>\n<tr><th>a</th><th>&lt;b&gt;</th></tr>\n\
            <tr><td>&lt;/td&gt;&lt;script&gt;</td><td>&amp;</td></tr>\n</table>\n";
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn what_is_too_large_is_cut_and_the_page_says_so() {
        let mut page = Html::default();
        separated(&mut page, &format!("{}\n{}", "a,".repeat(300), "b\n".repeat(3_000)), None);
        let text = page.finish();
        assert!(text.contains("Only its first 2000 rows are shown"), "{}", text.len());
        assert!(text.contains("Only its first 200 columns are shown"), "{}", text.len());
        assert_eq!((text.matches("<th>").count(), text.matches("<tr>").count()), (200, 2_000));
        // One cell of the whole text, an endless line, and nothing but separators.
        for text in [format!("\"{}", "x\n".repeat(4_000_000)), ",".repeat(8_000_000), "\"\"\"".repeat(2_000_000)] {
            let mut page = Html::default();
            separated(&mut page, &text, None);
            assert!(page.finish().len() < 1024 * 1024);
        }
        let mut page = Html::default();
        separated(&mut page, &format!("{}\n", "x,".repeat(200)).repeat(2_000), None);
        let text = page.finish();
        assert!(text.ends_with("the rest is left out.</p>\n") && text.len() < 16 * 1024 * 1024, "{}", text.len());
    }
}
