//! What all tests of kernels need.

use std::{path::Path, time::Duration};

use gloveport_kernel::{Cell, CellEnd, CellReport, Facts, Kernel, KernelOptions, KernelState};
use gloveport_sys::Surroundings;
pub(crate) use gloveport_testing::python;
use tempfile::TempDir;

/// Time for what a test waits for, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A kernel in a directory of its own.
pub(crate) struct Fixture {
    pub(crate) kernel: Kernel,
    pub(crate) directory: TempDir,
}

/// Surroundings in a directory; nothing is written to the home of whoever runs the tests.
pub(crate) fn surroundings(directory: &Path) -> Surroundings {
    let mut surroundings = Surroundings::inherited(directory.to_owned());
    surroundings.user_name = "tester".into();
    surroundings.set("IPYTHONDIR", directory.join(".ipython"));
    // Its fonts are looked for once only.
    surroundings.set("MPLCONFIGDIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("matplotlib"));
    for name in ["VIRTUAL_ENV", "PYTHONPATH", "PYTHONSTARTUP", "MPLBACKEND"] {
        surroundings.unset(name);
    }
    surroundings
}

/// Options of a kernel with the interpreter for tests.
pub(crate) fn options(directory: &Path) -> KernelOptions {
    let mut options = KernelOptions::new(surroundings(directory));
    options.interpreter = Some(python());
    options
}

/// A cell with the longest limit.
pub(crate) fn cell(code: &str) -> Cell {
    Cell { code: code.to_owned(), limit: Some(LONG), ..Cell::default() }
}

/// A cell with a limit in seconds.
pub(crate) fn limited(code: &str, seconds: f64) -> Cell {
    Cell { limit: Some(Duration::from_secs_f64(seconds)), ..cell(code) }
}

impl Fixture {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut KernelOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        change(&mut options);
        Self { kernel: Kernel::start(options), directory }
    }

    pub(crate) async fn report(&self, cell: Cell) -> CellReport {
        self.kernel.execute(cell).await.unwrap()
    }

    /// The text of a cell that completes.
    pub(crate) async fn text(&self, code: &str) -> String {
        let report = self.report(cell(code)).await;
        assert_eq!(report.end, CellEnd::Completed, "{code}: {}", report.text);
        report.text
    }

    /// What a kernel tells of itself as soon as it is ready and not the one of an earlier generation.
    pub(crate) async fn ready(&self, generation: u64) -> Facts {
        let mut state = self.kernel.state();
        let ready =
            state.wait_for(|state| matches!(state, KernelState::Ready(facts) if facts.generation >= generation));
        match &*tokio::time::timeout(LONG, ready).await.expect("the kernel is ready in time").unwrap() {
            KernelState::Ready(facts) => facts.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// The numbers, each on a line of its own.
pub(crate) fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.fold(String::new(), |text, number| text + &number.to_string() + "\n")
}
