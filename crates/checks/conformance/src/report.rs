//! Results as text for people, as JSON and as JUnit XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{Check, CheckResult, Verdict};

/// How many checks passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// They hold.
    pub passed: usize,
    /// They do not hold.
    pub failed: usize,
    /// It could not be found out.
    pub skipped: usize,
}

impl Counts {
    /// Counts results.
    pub fn of(results: &[CheckResult]) -> Self {
        let mut counts = Self::default();
        for result in results {
            *match result.verdict {
                Verdict::Pass { .. } => &mut counts.passed,
                Verdict::Fail { .. } => &mut counts.failed,
                Verdict::Skip { .. } => &mut counts.skipped,
            } += 1;
        }
        counts
    }

    /// The closing line.
    pub fn line(self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// One line for each check, with what is wrong below those that failed, and the closing line.
pub fn text(results: &[CheckResult]) -> String {
    let width = results.iter().map(|result| result.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for result in results {
        let (word, more) = match &result.verdict {
            Verdict::Pass { deliberate: None } => ("ok", String::new()),
            Verdict::Pass { deliberate: Some(why) } => ("ok", format!("\n        another behaviour: {why}")),
            Verdict::Fail { step, expected, got } => (
                "FAILED",
                format!(
                    "\n        {}\n        step      {step}\n        expected  {expected}\n        got       {got}",
                    result.spec
                ),
            ),
            Verdict::Skip { reason } => ("skipped", format!("\n        {reason}")),
        };
        let again = if result.attempts > 1 { format!(" (attempt {})", result.attempts) } else { String::new() };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{word:<7} {:<width$}  {}{again}{more}", result.id, result.title);
    }
    text.push_str(&Counts::of(results).line());
    text.push('\n');
    text
}

/// The checks themselves, one a line.
pub fn list(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{:<width$}  {} ({})", check.id, check.title, check.spec);
    }
    text
}

/// All results with their counts.
pub fn json(url: &str, results: &[CheckResult]) -> Value {
    let counts = Counts::of(results);
    json!({
        "url": url,
        "passed": counts.passed,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "checks": results,
    })
}

/// The form that continuous integration systems read.
pub fn junit(url: &str, results: &[CheckResult]) -> String {
    let counts = Counts::of(results);
    let seconds: f64 = results.iter().map(|result| result.seconds).sum();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
         skipped=\"{}\" time=\"{seconds:.3}\">\n",
        escaped(&format!("conformance of {url}")),
        results.len(),
        counts.failed,
        counts.skipped
    );
    for result in results {
        let (group, name) = result.id.split_once('/').unwrap_or(("", &result.id));
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escaped(group),
            escaped(name),
            result.seconds
        );
        let _ = match &result.verdict {
            Verdict::Pass { .. } => writeln!(text, "/>"),
            Verdict::Fail { step, expected, got } => writeln!(
                text,
                "><failure message=\"{}\">step: {}\nexpected: {}\ngot: {}</failure></testcase>",
                escaped(&format!("{} ({})", result.title, result.spec)),
                escaped(step),
                escaped(expected),
                escaped(got)
            ),
            Verdict::Skip { reason } => writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(reason)),
        };
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

/// A text as it stands in XML, which has no place for most control characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            character if character.is_control() => safe.push('\u{fffd}'),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(id: &str, verdict: Verdict) -> CheckResult {
        CheckResult { id: id.into(), title: "it holds".into(), spec: "s 1".into(), verdict, seconds: 0.5, attempts: 1 }
    }

    fn results() -> Vec<CheckResult> {
        vec![
            result("a/one", Verdict::Pass { deliberate: None }),
            result("a/three", Verdict::Pass { deliberate: Some("it may".into()) }),
            result(
                "b/x",
                Verdict::Fail { step: "GET /".into(), expected: "\"a\" & <b>".into(), got: "\u{1b}[1m".into() },
            ),
            result("b/y", Verdict::Skip { reason: "no key".into() }),
        ]
    }

    #[test]
    fn people_see_what_is_wrong_and_the_counts() {
        let expected = "\
ok      a/one    it holds
ok      a/three  it holds
        another behaviour: it may
FAILED  b/x      it holds
        s 1
        step      GET /
        expected  \"a\" & <b>
        got       \u{1b}[1m
skipped b/y      it holds
        no key
2 passed, 1 failed, 1 skipped
";
        assert_eq!(text(&results()), expected);
    }

    #[test]
    fn xml_holds_no_character_that_is_not_allowed_in_it() {
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites>
<testsuite name=\"conformance of http://h\" tests=\"4\" failures=\"1\" skipped=\"1\" time=\"2.000\">
<testcase classname=\"a\" name=\"one\" time=\"0.500\"/>
<testcase classname=\"a\" name=\"three\" time=\"0.500\"/>
<testcase classname=\"b\" name=\"x\" time=\"0.500\"><failure message=\"it holds (s 1)\">step: GET /
expected: &quot;a&quot; &amp; &lt;b&gt;
got: \u{fffd}[1m</failure></testcase>
<testcase classname=\"b\" name=\"y\" time=\"0.500\"><skipped message=\"no key\"/></testcase>
</testsuite>
</testsuites>
";
        assert_eq!(junit("http://h", &results()), expected);
    }

    #[test]
    fn json_has_all_results_and_the_counts() {
        let value = json("http://h", &results());
        assert_eq!(value["failed"], 1);
        assert_eq!(
            value["checks"][3],
            serde_json::json!({"id": "b/y", "title": "it holds", "spec": "s 1", "verdict": "skip", "reason": "no key",
                "seconds": 0.5, "attempts": 1})
        );
    }
}
