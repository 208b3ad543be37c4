//! Workbooks as Markdown: a table for each sheet, as a data frame of Python is shown.

use std::{collections::BTreeMap, fmt::Write as _, io::Cursor};

use calamine::{DataRef, ExcelDateTime, Reader as _, Xlsx};

use super::{
    ConversionError, markdown,
    package::Package,
    web::{COLUMNS, ROWS},
};

/// Most cells of a sheet that are shown, empty ones between others included. What is shown is cut long before.
const CELLS: usize = 20_000;

/// Most cells that are read of a sheet.
const READ: usize = 200_000;

/// Bytes of Markdown after which no other sheet is read. Less of it is shown.
const SHOWN: usize = 8 * 1024 * 1024;

/// Cells of a page after which no other sheet is read.
const SHOWN_CELLS: usize = 200_000;

pub(super) fn convert(bytes: &[u8]) -> Result<String, ConversionError> {
    let mut text = String::new();
    read(bytes, |name, cells| {
        // Writing into a string cannot fail.
        let _ = write!(text, "## {}\n{}\n", markdown::line(&name), markdown::table(&cells.rows()));
        text.len() < SHOWN
    })?;
    Ok(text.trim_end().to_owned())
}

/// A sheet as people see it.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) name: String,
    /// All of one length; what has no value is empty.
    pub(super) rows: Vec<Vec<String>>,
    /// Whether there are more rows.
    pub(super) is_longer: bool,
    /// Whether there are more columns.
    pub(super) is_wider: bool,
}

/// The sheets of a workbook, as much of them as a page shows.
pub(super) fn sheets(bytes: &[u8]) -> Result<Vec<Sheet>, ConversionError> {
    let mut sheets = Vec::new();
    let mut left = SHOWN_CELLS;
    read(bytes, |name, cells| {
        let sheet = cells.shown(name);
        left = left.saturating_sub(1 + sheet.rows.iter().map(Vec::len).sum::<usize>());
        sheets.push(sheet);
        left > 0
    })?;
    Ok(sheets)
}

/// Reads one sheet after the other, as long as more are wanted.
fn read(bytes: &[u8], mut take: impl FnMut(String, Cells) -> bool) -> Result<(), ConversionError> {
    Package::open(bytes)?.measure()?;
    let invalid = |error: calamine::XlsxError| ConversionError::Invalid(error.to_string());
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(invalid)?;
    for name in workbook.sheet_names() {
        let mut reader = workbook.worksheet_cells_reader(&name).map_err(invalid)?;
        let mut cells = Cells::default();
        while let Some(cell) = reader.next_cell().map_err(invalid)? {
            if cells.read == READ {
                cells.is_longer = true;
                break;
            }
            let (row, column) = cell.get_position();
            cells.add(row, column, Value::of(cell.get_value()));
        }
        if !take(name, cells) {
            break;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    /// None for an empty cell.
    fn of(data: &DataRef<'_>) -> Option<Self> {
        Some(match data {
            DataRef::Empty => return None,
            #[expect(clippy::cast_precision_loss, reason = "numbers of a workbook are floating-point ones")]
            DataRef::Int(number) => Self::Number(*number as f64),
            DataRef::Float(number) => Self::Number(*number),
            DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Self::Text(text.clone()),
            DataRef::SharedString(text) => Self::Text((*text).to_owned()),
            DataRef::Bool(is) => Self::Text(if *is { "True" } else { "False" }.to_owned()),
            DataRef::DateTime(time) => Self::Text(shown_time(time)),
            DataRef::Error(error) => Self::Text(error.to_string()),
        })
    }

    /// A column that holds a fraction, or has a gap, shows all its numbers with a point.
    fn shown(&self, has_fractions: bool) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) if !has_fractions && number.fract() == 0.0 && number.abs() < 1e15 => {
                format!("{number:.0}")
            }
            Self::Number(number) => format!("{number:?}"),
        }
    }
}

fn shown_time(time: &ExcelDateTime) -> String {
    if time.is_duration() {
        return time.to_string();
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The cells of a sheet by row and column.
#[derive(Debug, Default)]
struct Cells {
    values: BTreeMap<(u32, u32), Value>,
    columns: u32,
    read: usize,
    is_longer: bool,
}

impl Cells {
    fn add(&mut self, row: u32, column: u32, value: Option<Value>) {
        self.read += 1;
        if let Some(value) = value {
            self.columns = self.columns.max(column.saturating_add(1));
            self.values.insert((row, column), value);
        }
    }

    /// The rows that a page shows.
    fn shown(&self, name: String) -> Sheet {
        let size = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let last = self.values.last_key_value().map_or(0, |((last, _), _)| last.saturating_add(1));
        let columns = self.columns.min(size(COLUMNS));
        let rows = last.min(size(ROWS)).min(size(CELLS) / columns.max(1));
        let value = |row, column| self.values.get(&(row, column)).map(|value| value.shown(false)).unwrap_or_default();
        Sheet {
            name,
            rows: (0..rows).map(|row| (0..columns).map(|column| value(row, column)).collect()).collect(),
            is_longer: self.is_longer || rows < last,
            is_wider: columns < self.columns,
        }
    }

    /// All rows, the head first; as many as there is room for.
    fn rows(&self) -> Vec<Vec<String>> {
        let Some(((last, _), _)) = self.values.last_key_value() else { return Vec::new() };
        let columns = self.columns.min(u32::try_from(CELLS).unwrap_or(u32::MAX));
        let room = u32::try_from(CELLS).unwrap_or(u32::MAX) / columns.max(1);
        let rows = last.saturating_add(1).min(room.max(1));
        let fractions: Vec<bool> = (0..columns).map(|column| self.has_fractions(column, rows)).collect();
        let row = |row: u32| {
            (0..columns).zip(&fractions).map(move |(column, has_fractions)| match self.values.get(&(row, column)) {
                Some(value) => value.shown(row > 0 && *has_fractions),
                None if row == 0 => format!("Unnamed: {column}"),
                None => "NaN".to_owned(),
            })
        };
        (0..rows).map(|number| row(number).collect()).collect()
    }

    /// Whether a column below its head has numbers only, and they are shown with a point.
    fn has_fractions(&self, column: u32, rows: u32) -> bool {
        let mut point = false;
        for row in 1..rows {
            match self.values.get(&(row, column)) {
                Some(Value::Text(_)) => return false,
                Some(Value::Number(number)) => point |= number.fract() != 0.0,
                None => point = true,
            }
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use super::{super::package::tests::document, *};

    /// A workbook with one sheet of the given rows of XML.
    fn workbook(rows: &str) -> Vec<u8> {
        document(&[
            ("[Content_Types].xml", "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"),
            (
                "_rels/.rels",
                "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='r1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument' Target='xl/workbook.xml'/></Relationships>",
            ),
            (
                "xl/workbook.xml",
                "<workbook xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'><sheets><sheet name='First' sheetId='1' r:id='r1'/></sheets></workbook>",
            ),
            (
                "xl/_rels/workbook.xml.rels",
                "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='r1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet' Target='worksheets/sheet1.xml'/></Relationships>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                &format!(
                    "<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>{rows}</sheetData></worksheet>"
                ),
            ),
        ])
    }

    #[test]
    fn a_sheet_is_a_table_with_its_first_row_as_head() {
        let text = |place: &str, text: &str| format!("<c r='{place}' t='inlineStr'><is><t>{text}</t></is></c>");
        let number = |place: &str, number: &str| format!("<c r='{place}'><v>{number}</v></c>");
        let rows = [
            format!("<row r='1'>{}{}{}</row>", text("A1", "Name"), text("B1", "Age"), text("D1", "x|y")),
            format!("<row r='2'>{}{}</row>", text("A2", "Ann"), number("B2", "3")),
            format!(
                "<row r='4'>{}{}{}<c r='C4' t='b'><v>1</v></c></row>",
                text("A4", "Bob"),
                number("B4", "4"),
                number("D4", "7")
            ),
        ]
        .concat();
        let expected = "## First\n| Name | Age | Unnamed: 2 | x\\|y |\n| --- | --- | --- | --- |\n\
            | Ann | 3.0 | NaN | NaN |\n| NaN | NaN | NaN | NaN |\n| Bob | 4.0 | True | 7.0 |";
        assert_eq!(convert(&workbook(&rows)).unwrap(), expected);
    }

    #[test]
    fn a_cell_far_away_does_not_make_a_sheet_huge() {
        let rows = "<row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row>";
        let text = convert(&workbook(rows)).unwrap();
        assert!(text.starts_with("## First\n| 1 | Unnamed: 1 |"), "{}", &text[..60]);
        assert!(text.len() < 40 * CELLS);
    }

    #[test]
    fn a_page_shows_a_sheet_without_what_is_not_there_and_says_what_it_leaves_out() {
        let rows =
            "<row r='1'><c r='A1'><v>1</v></c><c r='C1'><v>2.5</v></c></row><row r='2'><c r='B2'><v>3</v></c></row>";
        let shown = sheets(&workbook(rows)).unwrap();
        assert_eq!(shown[0].rows, [["1", "", "2.5"], ["", "3", ""]]);
        assert_eq!((shown[0].name.as_str(), shown[0].is_longer, shown[0].is_wider), ("First", false, false));
        let far = "<row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row>";
        let shown = sheets(&workbook(far)).unwrap();
        assert_eq!((shown[0].rows.len(), shown[0].rows[0].len()), (CELLS / COLUMNS, COLUMNS));
        assert!(shown[0].is_longer && shown[0].is_wider);
        assert!(sheets(&workbook("")).unwrap()[0].rows.is_empty());
    }

    #[test]
    fn an_empty_sheet_is_its_name() {
        assert_eq!(convert(&workbook("")).unwrap(), "## First");
    }
}
