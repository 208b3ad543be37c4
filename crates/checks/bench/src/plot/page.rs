//! Numbers and their circumstances, as a page of the documentation has them.

use anyhow::Context as _;

/// How the paragraph begins that says when and where the numbers were measured.
const CIRCUMSTANCES: &str = "Measured on ";

/// A measured number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    /// In milliseconds or mebibytes.
    pub(super) value: f64,
    pub(super) unit: Unit,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Mebibytes,
}

/// The same thing measured of two servers.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) label: &'static str,
    pub(super) ours: Number,
    pub(super) reference: Number,
}

/// A page in Markdown.
#[derive(Debug)]
pub(super) struct Page<'a> {
    text: &'a str,
}

impl<'a> Page<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// The numbers of both servers in the first row of a table that begins with `row`.
    pub(super) fn comparison(&self, label: &'static str, row: &str) -> anyhow::Result<Comparison> {
        let cells = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix('|'))
            .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
            .find(|cells| cells.first() == Some(&row))
            .with_context(|| format!("no table has the row {row}"))?;
        let number = |at: usize| {
            let text = cells.get(at).copied().unwrap_or_default();
            Number::read(text).with_context(|| format!("{row}: `{text}` is no number of ms, s or MiB"))
        };
        Ok(Comparison { label, ours: number(1)?, reference: number(2)? })
    }

    /// When and where the numbers were measured, as one line.
    pub(super) fn circumstances(&self) -> anyhow::Result<String> {
        let lines = self.text.lines().skip_while(|line| !line.starts_with(CIRCUMSTANCES));
        let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        anyhow::ensure!(!paragraph.is_empty(), "no paragraph begins with `{CIRCUMSTANCES}`");
        // Code is marked in the page only.
        Ok(paragraph.replace('`', ""))
    }
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        let (value, unit) = text.split_once(' ')?;
        let (factor, unit) = match unit {
            "ms" => (1.0, Unit::Milliseconds),
            "s" => (1000.0, Unit::Milliseconds),
            "MiB" => (1.0, Unit::Mebibytes),
            _ => return None,
        };
        let value = value.parse::<f64>().ok().filter(|value| *value > 0.0)? * factor;
        Some(Self { value, unit })
    }
}
