//! The observation of a cell whose output came while it ran.

use std::fmt;

use gloveport_event_stream::MaskStream;
use gloveport_protocol::{
    ErrorObservation, Observation, RunIpythonObservation,
    kernels::{CellOutcome, DEFAULT_KERNEL as DEFAULT, KERNEL_LOST as LOST, cell_content as content},
    truncate::{CONTENT_LIMIT, truncate_content},
};

use gloveport_screen::Collector;

use super::output::KEPT;

/// Bytes of images that are kept.
const IMAGES: usize = 8 * 1024 * 1024;

/// How following a cell ended.
#[derive(Clone, Copy, Debug)]
pub enum CellSeen<'a> {
    /// It has ended.
    Ended {
        /// How.
        end: CellOutcome,
        /// The seconds that it had.
        timeout: Option<f64>,
        /// The kernel had ended before it.
        kernel_lost_before: bool,
    },
    /// It was interrupted twice, and is left to itself.
    Left,
    /// Nobody reads what it shows any more; it was interrupted.
    Unread,
    /// It could not be followed to its end.
    Lost {
        /// Why.
        reason: &'a str,
    },
}

/// What a cell shows, without secrets: the beginning and the end of its text, and its images.
pub struct CellOutput {
    mask: Option<MaskStream>,
    kept: Collector,
}

impl fmt::Debug for CellOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CellOutput").finish_non_exhaustive()
    }
}

impl CellOutput {
    pub(super) fn new(mask: MaskStream) -> Self {
        Self { mask: Some(mask), kept: Collector::new(2 * KEPT, IMAGES) }
    }

    /// Takes text that it showed, which may have colours.
    pub fn text(&mut self, piece: &str) {
        if let Some(mask) = &mut self.mask {
            self.kept.text(&mask.push(piece));
        }
    }

    /// Takes an image that it showed, in base64.
    pub fn image(&mut self, media_type: &str, base64: &str) {
        // The observation says how many are left out.
        let _kept = self.kept.image(media_type, base64);
    }

    /// What came of the cell, as long as agents see it. The kernel is named unless it is the one of agents.
    pub fn observation(mut self, code: &str, kernel: &str, seen: CellSeen<'_>) -> Observation {
        if let Some(mask) = self.mask.take() {
            self.kept.text(&mask.finish());
        }
        let (text, images) = self.kept.finish();
        let shown = |note: &str| format!("{}{}[{note}]", text.trim_end(), if text.is_empty() { "" } else { "\n" });
        let mut told = match seen {
            CellSeen::Ended { end, timeout, kernel_lost_before } => {
                let mut told = content(&text, end, timeout);
                if end == CellOutcome::Died {
                    told = shown(&format!("The kernel ended while it ran the cell. {LOST}"));
                }
                if kernel_lost_before {
                    told.insert_str(0, &format!("[The kernel had ended before this cell. {LOST}]\n"));
                }
                told
            }
            CellSeen::Left => shown("The user left the cell to itself; it may still run."),
            CellSeen::Unread => shown("The user read no further; the cell was interrupted."),
            CellSeen::Lost { reason } => {
                return Observation::Error(ErrorObservation::new(shown(&format!(
                    "What became of the cell is not known: {reason}."
                ))));
            }
        };
        told = truncate_content(&told, CONTENT_LIMIT).into_owned();
        if kernel != DEFAULT {
            told.extend(["\n[Jupyter kernel: ", kernel, "]"]);
        }
        let timed_out = matches!(seen, CellSeen::Ended { end: CellOutcome::TimedOut, .. });
        let image_urls = (!timed_out && !images.is_empty()).then_some(images);
        Observation::RunIpython(RunIpythonObservation { image_urls, ..RunIpythonObservation::new(told, code) })
    }
}

#[cfg(test)]
mod tests {
    use gloveport_event_stream::Masker;
    use gloveport_protocol::Secret;

    use super::*;

    const COMPLETED: CellSeen<'_> =
        CellSeen::Ended { end: CellOutcome::Completed, timeout: None, kernel_lost_before: false };

    fn told(shown: &str, kernel: &str, seen: CellSeen<'_>) -> String {
        let mut output = CellOutput::new(Masker::default().stream());
        output.text(shown);
        output.observation("code", kernel, seen).content().to_owned()
    }

    #[test]
    fn the_observation_of_a_cell_tells_how_it_ended_in_the_words_that_agents_read() {
        let ended = |end| CellSeen::Ended { end, timeout: Some(2.0), kernel_lost_before: false };
        for (shown, kernel, seen, expected) in [
            ("1\n", DEFAULT, COMPLETED, "1".to_owned()),
            ("\x1b[31mred\x1b[0m\n", "mine", COMPLETED, "red\n[Jupyter kernel: mine]".to_owned()),
            ("", DEFAULT, COMPLETED, "[Code executed successfully with no output]".to_owned()),
            ("half", DEFAULT, ended(CellOutcome::TimedOut), "[Execution timed out (2.0 seconds).]".to_owned()),
            (
                "half\n",
                DEFAULT,
                ended(CellOutcome::Died),
                format!("half\n[The kernel ended while it ran the cell. {LOST}]"),
            ),
            ("", DEFAULT, CellSeen::Left, "[The user left the cell to itself; it may still run.]".to_owned()),
            (
                "1\n",
                DEFAULT,
                CellSeen::Lost { reason: "no connection" },
                "1\n[What became of the cell is not known: no connection.]".to_owned(),
            ),
        ] {
            assert_eq!(told(shown, kernel, seen), expected);
        }
    }

    #[test]
    fn a_secret_in_what_a_cell_shows_is_hidden_wherever_pieces_cut_it_and_much_is_shortened() {
        let mut masker = Masker::default();
        masker.set([("TOKEN".to_owned(), Secret::new("hunter2hunter2"))].into());
        let mut output = CellOutput::new(masker.stream());
        for piece in ["a hunter2", "hunt", "er2 b\n"] {
            output.text(piece);
        }
        output.image("image/png", "AAAA");
        let Observation::RunIpython(cell) = output.observation("x", DEFAULT, COMPLETED) else { panic!("no cell") };
        assert_eq!(cell.content, "a <secret_hidden> b");
        assert_eq!(cell.image_urls, Some(vec!["data:image/png;base64,AAAA".to_owned()]));
        let long = told(&"x".repeat(10 * KEPT), DEFAULT, COMPLETED);
        assert!(long.len() < CONTENT_LIMIT + 100 && long.contains("truncated due to length"), "{}", long.len());
    }
}
