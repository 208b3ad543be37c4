//! Tables and single lines of Markdown.

/// Rows as a table; the first one is its head. Shorter rows are filled up.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    if columns == 0 {
        return String::new();
    }
    let mut table = String::new();
    for (index, row) in rows.iter().enumerate() {
        table.push('|');
        for column in 0..columns {
            table.push(' ');
            table.push_str(&cell(row.get(column).map_or("", String::as_str)));
            table.push_str(" |");
        }
        table.push('\n');
        if index == 0 {
            table.push('|');
            table.push_str(&" --- |".repeat(columns));
            table.push('\n');
        }
    }
    table
}

/// The text on one line, without what would end the cell.
fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}

/// The text on one line.
pub(super) fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_head_and_rows_of_one_length() {
        let rows = [vec!["a".into(), "b|c".into()], vec!["d\ne".into()]];
        assert_eq!(table(&rows), "| a | b\\|c |\n| --- | --- |\n| d e |  |\n");
        assert_eq!(table(&[]), "");
        assert_eq!(table(&[vec![]]), "");
    }
}
