//! Tables and times for people.

use std::time::{Duration, SystemTime};

use crate::{
    paint::{Paint, Style},
    visible,
};

/// A table with a heading: each column as wide as its widest cell, two blanks between. Control characters are shown as
/// `?`, so that what a sandbox is called cannot move the cursor.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>], paint: Paint) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| visible::one_line(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heading.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut text = paint.text(Style::Heading, &line(&mut heading.iter().copied())) + "\n";
    for row in &rows {
        text += &line(&mut row.iter().map(String::as_str));
        text.push('\n');
    }
    text
}

/// A time in its largest unit: `8s`, `5m`, `3h`, `12d`.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long ago it was; `-` if nobody knows.
pub(crate) fn age(then: Option<SystemTime>) -> String {
    then.map_or_else(|| "-".to_owned(), |then| span(then.elapsed().unwrap_or_default()))
}

/// In which time it will be; `-` for never.
pub(super) fn until(then: Option<SystemTime>) -> String {
    then.map_or_else(|| "-".to_owned(), |then| span(then.duration_since(SystemTime::now()).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "long cell".to_owned()], vec!["längst".to_owned(), "x\x1b[2J\ny".to_owned()]];
        let expected = "ID      STATE\na       long cell\nlängst  x?[2J?y\n";
        assert_eq!(table(&["ID", "STATE"], &rows, Paint::none()), expected);
        assert_eq!(table(&["ID", "STATE"], &[], Paint::none()), "ID  STATE\n");
    }

    #[test]
    fn times_are_shown_in_their_largest_unit() {
        for (seconds, expected) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"), (172_799, "47h"), (172_800, "2d")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(age(None), "-");
        assert_eq!(age(Some(SystemTime::now() - Duration::from_secs(61))), "1m");
        assert_eq!(until(Some(SystemTime::now() - Duration::from_secs(61))), "0s");
        assert_eq!(until(Some(SystemTime::now() + Duration::from_secs(7_201))), "2h");
    }
}
