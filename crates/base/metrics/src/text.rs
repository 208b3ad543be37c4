//! The text form.

use std::fmt::{Display, Write as _};

/// The content type of the text.
pub const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counters and gauges as lines. All names begin with `gloveport_`, which is put before them here.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Says what a name means; its samples come next.
    pub fn header(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a `String` cannot fail.
        let _written = write!(self.0, "# HELP gloveport_{name} {help}\n# TYPE gloveport_{name} {kind}\n");
    }

    /// One value. `labels` is as it stands between the braces; no value of a label has quotes or line breaks.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _written = if labels.is_empty() {
            writeln!(self.0, "gloveport_{name} {value}")
        } else {
            writeln!(self.0, "gloveport_{name}{{{labels}}} {value}")
        };
    }

    /// A number of things that there are now.
    pub fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.measure(name, help, float(value as u64));
    }

    /// A quantity as it is now.
    pub fn measure(&mut self, name: &str, help: &str, value: f64) {
        self.header(name, "gauge", help);
        self.sample(name, "", value);
    }

    /// What only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.header(name, "counter", help);
        self.sample(name, "", value);
    }

    /// What is told by labels alone.
    pub fn info(&mut self, name: &str, help: &str, labels: &str) {
        self.header(name, "gauge", help);
        self.sample(name, labels, 1.0);
    }

    /// The whole text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A count as a floating point number.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 may be inexact")]
pub fn float(count: u64) -> f64 {
    count as f64
}
