//! The `run_ipython` action: what is asked of a kernel, and how its report becomes an observation
//! (ipython-and-plugins 2.3 and 2.4).

use std::path::PathBuf;

use gloveport_kernel::{Cell, CellEnd, CellReport};
use gloveport_protocol::{
    ErrorObservation, ExecuteError, Observation, RunIpythonAction, RunIpythonObservation,
    kernels::{CellOutcome, DEFAULT_KERNEL, KERNEL_LOST, cell_content},
    python::float_text,
    seconds,
};
use gloveport_sys::session::Exit;

use crate::{kernels::KernelsError, plugins::Notebook};

/// Runs a cell in the default kernel. `directory` is where the shell is.
pub(crate) async fn run(
    notebook: &Notebook,
    action: &RunIpythonAction,
    timeout: Option<f64>,
    directory: PathBuf,
) -> Result<Observation, ExecuteError> {
    let limit = match timeout.map(seconds::limit).transpose() {
        Ok(limit) => limit.flatten(),
        Err(seconds::NoLimit(number)) => {
            let text = format!("timeout must not be negative, and is {}", float_text(number));
            return Ok(Observation::Error(ErrorObservation::new(text)));
        }
    };
    let cell =
        Cell { code: action.code.clone(), limit, directory: Some(directory.clone()), progress: None, detailed: false };
    let result = async { Ok::<_, KernelsError>(notebook.kernel(DEFAULT_KERNEL).await?.execute(cell).await?) }.await;
    match result {
        Ok(report) => Ok(observe(action, timeout, &directory.display().to_string(), report)),
        Err(error) => Ok(Observation::Error(ErrorObservation::new(error.to_string()))),
    }
}

/// How a cell ended, as the native interface tells it.
pub const fn outcome(end: CellEnd) -> CellOutcome {
    match end {
        CellEnd::Completed => CellOutcome::Completed,
        CellEnd::Raised => CellOutcome::Raised,
        CellEnd::TimedOut => CellOutcome::TimedOut,
        CellEnd::Died(_) => CellOutcome::Died,
    }
}

fn observe(action: &RunIpythonAction, timeout: Option<f64>, directory: &str, report: CellReport) -> Observation {
    let timed_out = report.end == CellEnd::TimedOut;
    let mut content = cell_content(&report.text, outcome(report.end), timeout);
    if let Some(exit) = &report.lost_before {
        let note = format!("[The kernel had ended before this cell: it {}. {KERNEL_LOST}]\n", describe(exit));
        content.insert_str(0, &note);
    }
    if let CellEnd::Died(exit) = &report.end {
        let gap = if content.is_empty() { "" } else { "\n" };
        content =
            format!("{content}{gap}[The kernel ended while it ran the cell: it {}. {KERNEL_LOST}]", describe(exit));
    }
    if action.include_extra {
        content = format!(
            "{content}\n[Jupyter current working directory: {directory}]\n[Jupyter Python interpreter: {}]",
            report.interpreter
        );
    }
    let image_urls = (!timed_out && !report.images.is_empty()).then_some(report.images);
    Observation::RunIpython(RunIpythonObservation {
        image_urls,
        ..RunIpythonObservation::new(content, action.code.clone())
    })
}

fn describe(exit: &Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::kernels::NO_OUTPUT;

    use super::*;

    fn report(text: &str, end: CellEnd) -> CellReport {
        CellReport {
            text: text.to_owned(),
            images: vec!["data:image/png;base64,AA==".to_owned()],
            end,
            lost_before: None,
            interpreter: "/venv/bin/python".to_owned(),
        }
    }

    fn content(include_extra: bool, report: CellReport) -> (String, usize) {
        let action = RunIpythonAction { include_extra, ..RunIpythonAction::new("code") };
        match observe(&action, Some(10.0), "/workspace", report) {
            Observation::RunIpython(observation) => {
                (observation.content, observation.image_urls.map_or(0, |images| images.len()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_text_of_a_report_is_that_of_the_reference() {
        let exit = Exit { code: Some(1), signal: None, cpu_micros: 0, peak_memory: 0 };
        let killed = Exit { code: None, signal: Some(9), ..exit };
        for (report, expected, images) in [
            (report("1\n", CellEnd::Completed), "1".to_owned(), 1),
            (report("", CellEnd::Completed), NO_OUTPUT.to_owned(), 1),
            (report(" \n", CellEnd::Raised), String::new(), 1),
            (report("lost", CellEnd::TimedOut), "[Execution timed out (10.0 seconds).]".to_owned(), 0),
            (
                report("half\n", CellEnd::Died(exit)),
                format!("half\n[The kernel ended while it ran the cell: it ended with exit code 1. {KERNEL_LOST}]"),
                1,
            ),
            (
                CellReport { lost_before: Some(killed), ..report("1", CellEnd::Completed) },
                format!("[The kernel had ended before this cell: it was killed by signal 9. {KERNEL_LOST}]\n1"),
                1,
            ),
        ] {
            assert_eq!(content(false, report), (expected, images));
        }
    }

    #[test]
    fn the_extra_lines_name_the_directory_of_the_shell_and_the_interpreter() {
        let (content, _) = content(true, report("1\n", CellEnd::Completed));
        let expected =
            "1\n[Jupyter current working directory: /workspace]\n[Jupyter Python interpreter: /venv/bin/python]";
        assert_eq!(content, expected);
    }
}
