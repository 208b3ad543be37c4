//! Pairs of bars as SVG.
//!
//! The few elements are written directly: a library for charts would choose colours for one background and measure fonts
//! of this machine, and what readers see here are rectangles and texts that follow their own colour scheme.

use std::fmt::Write as _;

use super::page::{Comparison, Number, Unit};

/// Where the bars begin, and where the scale ends.
const LEFT: f64 = 272.0;
const RIGHT: f64 = 716.0;
const WIDTH: f64 = 880.0;
const MARGIN: f64 = 28.0;
/// Of a bar; two of them and the space below are a row.
const BAR: f64 = 13.0;
const ROW: f64 = 42.0;
/// Characters of the source in a line.
const LINE: usize = 125;

/// Colours and letters: those of the reader's system, and dark where the reader's pages are dark.
const STYLE: &str = "
  text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: #1f2933; }
  .card { fill: #ffffff; stroke: #d5dae0; }
  .title { font-size: 19px; font-weight: 650; }
  .heading { font-weight: 600; }
  .axis, .source { font-size: 11.5px; fill: #66707c; }
  .grid { stroke: #e4e8ec; }
  .bar.ours { fill: #0d8a72; }
  .bar.reference { fill: #b4bdc7; }
  .number { font-size: 12px; font-variant-numeric: tabular-nums; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
  .number.ours { font-weight: 650; }
  .number.reference { fill: #66707c; }
  .gain { font-size: 15px; font-weight: 650; fill: #0a6f5c; text-anchor: end; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e8ee; }
    .card { fill: #14191f; stroke: #333c46; }
    .axis, .source, .number.reference { fill: #98a3b0; }
    .grid { stroke: #272f38; }
    .number { stroke: #14191f; }
    .bar.ours { fill: #2fc4a4; }
    .bar.reference { fill: #56616d; }
    .gain { fill: #4fd8ba; }
  }
";

/// Panels below each other, with a title and where the numbers come from.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
    pub(super) source: String,
}

/// Pairs of bars on one scale.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) heading: &'static str,
    /// What a smaller number is.
    pub(super) gain: &'static str,
    pub(super) scale: Scale,
    pub(super) rows: Vec<Comparison>,
}

/// Where a number is between the ends of the picture's bars.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// Powers of ten.
    Logarithmic { from: i32, to: i32 },
    /// From zero, with so many equal steps.
    Linear { to: f64, steps: u8 },
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        let share = match self {
            Self::Logarithmic { from, to } => (value.log10() - f64::from(from)) / f64::from(to - from),
            Self::Linear { to, .. } => value / to,
        };
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// The numbers that have a line.
    fn lines(self) -> Vec<f64> {
        match self {
            Self::Logarithmic { from, to } => (from..=to).map(|power| 10_f64.powi(power)).collect(),
            Self::Linear { to, steps } => (0..=steps).map(|step| to * f64::from(step) / f64::from(steps)).collect(),
        }
    }
}

impl Picture {
    pub(super) fn svg(&self) -> String {
        let mut body = Body::default();
        body.text(MARGIN, 40.0, "title", self.title);
        body.bar(MARGIN, 56.0, 22.0, "ours");
        body.text(MARGIN + 30.0, 67.0, "legend", "gloveport");
        body.bar(MARGIN + 110.0, 56.0, 22.0, "reference");
        body.text(MARGIN + 140.0, 67.0, "legend", "OpenHands 0.62, the reference");
        let mut y = 82.0;
        for panel in &self.panels {
            y = body.panel(panel, y);
        }
        for line in wrapped(&self.source, LINE) {
            y += 17.0;
            body.text(MARGIN, y, "source", &line);
        }
        let height = y + 22.0;
        let title = escaped(self.title);
        let description = escaped(&self.description());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title description\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
             <style>{STYLE}</style>\n\
             <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n{}</svg>\n",
            WIDTH - 1.0,
            height - 1.0,
            body.svg
        )
    }

    /// The numbers in words, for those who do not see the picture.
    fn description(&self) -> String {
        let rows = self.panels.iter().flat_map(|panel| &panel.rows);
        let sentence =
            |row: &Comparison| format!("{}: {} and {}.", plain(row.label), label(&row.ours), label(&row.reference));
        rows.map(sentence).collect::<Vec<_>>().join(" ")
    }
}

/// The elements, one a line.
#[derive(Debug, Default)]
struct Body {
    svg: String,
}

impl Body {
    /// Draws a panel below `y`, and answers where it ends.
    fn panel(&mut self, panel: &Panel, y: f64) -> f64 {
        let top = y + 58.0;
        let bottom = (0..panel.rows.len()).fold(top, |y, _row| y + ROW);
        self.text(MARGIN, y + 26.0, "heading", panel.heading);
        let unit = panel.rows.first().map_or(Unit::Milliseconds, |row| row.ours.unit);
        for value in panel.scale.lines() {
            let x = panel.scale.position(value);
            self.line(x, top - 8.0, bottom - 6.0);
            self.text(x, top - 14.0, "axis middle", &mark(value, unit));
        }
        self.text(WIDTH - MARGIN, top - 14.0, "axis end", panel.gain);
        let mut y = top;
        for row in &panel.rows {
            self.text(LEFT - 14.0, y + BAR + 4.5, "end", &plain(row.label));
            for (number, whose, y) in [(&row.ours, "ours", y), (&row.reference, "reference", y + BAR + 2.0)] {
                let end = panel.scale.position(number.value);
                self.bar(LEFT, y, (end - LEFT).max(1.0), whose);
                self.text(end + 6.0, y + BAR - 2.5, &format!("number {whose}"), &label(number));
            }
            let gain = format!("{} ×", rounded(row.reference.value / row.ours.value));
            self.text(WIDTH - MARGIN, y + BAR + 6.0, "gain", &gain);
            y += ROW;
        }
        bottom
    }

    fn bar(&mut self, x: f64, y: f64, width: f64, whose: &str) {
        self.element(format_args!(
            "<rect class=\"bar {whose}\" x=\"{x}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>"
        ));
    }

    fn line(&mut self, x: f64, from: f64, to: f64) {
        self.element(format_args!("<line class=\"grid\" x1=\"{x:.1}\" y1=\"{from}\" x2=\"{x:.1}\" y2=\"{to}\"/>"));
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        self.element(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"));
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // A text takes whatever is written to it.
        let _always = writeln!(self.svg, "{element}");
    }
}

/// A number with its unit, as precise as the eye compares bars.
fn label(number: &Number) -> String {
    match number.unit {
        Unit::Milliseconds if number.value >= 1000.0 => format!("{} s", short(number.value / 1000.0)),
        Unit::Milliseconds => format!("{} ms", short(number.value)),
        Unit::Mebibytes => format!("{} MiB", short(number.value)),
    }
}

/// Two digits that count, or the whole number if it has more.
fn short(value: f64) -> String {
    match value {
        _ if value < 0.1 => format!("{value:.3}"),
        _ if value < 1.0 => format!("{value:.2}"),
        _ if value < 9.95 => format!("{value:.1}"),
        // Without `round` a half becomes the even number.
        _ => format!("{}", value.round()),
    }
}

/// A line of the scale.
fn mark(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Milliseconds if value >= 1000.0 => format!("{} s", value / 1000.0),
        Unit::Milliseconds => format!("{value} ms"),
        Unit::Mebibytes => format!("{value} MiB"),
    }
}

/// Two digits that count, with a comma between thousands.
fn rounded(value: f64) -> String {
    let power = 10_f64.powi(if value >= 1000.0 { 2 } else { i32::from(value >= 100.0) });
    let text = format!("{:.0}", (value / power).round() * power);
    match text.len().checked_sub(3).filter(|at| *at > 0) {
        Some(at) => format!("{},{}", &text[..at], &text[at..]),
        None => text,
    }
}

/// A label without the marks of code.
fn plain(label: &str) -> String {
    label.replace('`', "")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Lines of at most so many characters, broken between words.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_ten_is_as_far_from_the_next_as_any_other() {
        let scale = Scale::Logarithmic { from: -2, to: 4 };
        let positions = scale.lines().into_iter().map(|value| scale.position(value)).collect::<Vec<_>>();
        assert_eq!(positions.len(), 7);
        for pair in positions.windows(2) {
            assert!((pair[1] - pair[0] - (RIGHT - LEFT) / 6.0).abs() < 0.001, "{positions:?}");
        }
        let linear = Scale::Linear { to: 400.0, steps: 4 };
        assert_eq!(linear.lines(), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert!((linear.position(200.0) - f64::midpoint(LEFT, RIGHT)).abs() < 0.001);
    }

    #[test]
    fn numbers_are_as_long_as_they_are_read() {
        for (value, text) in
            [(0.0251, "0.025 ms"), (0.256, "0.26 ms"), (6.4, "6.4 ms"), (9.96, "10 ms"), (618.5, "619 ms")]
        {
            assert_eq!(label(&Number { value, unit: Unit::Milliseconds }), text);
        }
        assert_eq!(label(&Number { value: 7131.0, unit: Unit::Milliseconds }), "7.1 s");
        assert_eq!(label(&Number { value: 381.5, unit: Unit::Mebibytes }), "382 MiB");
        for (value, text) in [(3.0, "3"), (16.4, "16"), (122.0, "120"), (2416.0, "2,400"), (12_345.0, "12,300")] {
            assert_eq!(rounded(value), text);
        }
    }
}
