//! The suite that every provider must pass.
//!
//! It is a black box: sandboxes are made, used and ended through the [`Provider`] and the server in them, and nothing
//! is known of the engine. Where the paths of a sandbox are those of this machine ([`Isolation`](gloveport_provider::Isolation)),
//! files are looked at as well. What a provider does not declare it must refuse; what cannot be found out is skipped
//! with the reason, never passed over.
//!
//! All sandboxes of a run belong to sessions whose names begin with `conformance-`, a number of the run in them; each
//! check ends what it made. Garbage is collected only if a dry run says that nothing of others is among it.
//!
//! | module | idea |
//! |---|---|
//! | `bench` | where a check works: providers made anew, sandboxes that are ended afterwards |
//! | `check` | what a check is, and why one fails |
//! | `life`, `found`, `ends`, `waits`, `specs`, `optional`, `garbage` | the checks |

mod bench;
mod check;
mod ends;
mod found;
mod garbage;
mod life;
mod optional;
mod options;
mod problem;
mod specs;
mod waits;

use std::time::Instant;

use gloveport_conformance::report;
pub use gloveport_conformance::{CheckResult, Verdict, report::Counts};
use serde_json::{Value, json};
use tokio::time::timeout;

pub use self::options::{Make, Options};
use self::{bench::Bench, check::Check, problem::Problem};
use gloveport_provider::{ProviderError, SessionId};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the provider.
    pub provider: String,
    /// The results in the order of the checks.
    pub results: Vec<CheckResult>,
}

impl Report {
    /// How many passed, failed and were skipped.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.results)
    }

    /// One line for each check, with what is wrong below those that failed, and the closing line.
    pub fn text(&self) -> String {
        report::text(&self.results)
    }

    /// All results with their counts.
    pub fn json(&self) -> Value {
        let counts = self.counts();
        json!({
            "provider": self.provider,
            "passed": counts.passed,
            "failed": counts.failed,
            "skipped": counts.skipped,
            "checks": self.results,
        })
    }

    /// The form that continuous integration systems read.
    pub fn junit(&self) -> String {
        report::junit(&format!("the runtime {}", self.provider), &self.results)
    }
}

/// The ids and statements of all checks.
pub fn checks() -> Vec<(&'static str, &'static str)> {
    all().into_iter().map(|check| (check.id, check.title)).collect()
}

fn all() -> Vec<Check> {
    [life::CHECKS, found::CHECKS, specs::CHECKS, ends::CHECKS, waits::CHECKS, optional::CHECKS, garbage::CHECKS]
        .concat()
}

/// Runs the checks one after the other, and tells each result as it comes.
pub async fn run(make: &Make, options: &Options, mut told: impl FnMut(&CheckResult)) -> Result<Report, ProviderError> {
    let name = make()?.name().to_owned();
    let run = SessionId::random().map_err(|error| ProviderError::Engine {
        engine: "this machine".to_owned(),
        action: "give random numbers".to_owned(),
        reason: error.to_string(),
    })?;
    let wanted = |check: &Check| {
        options.only.is_empty() || options.only.iter().any(|beginning| check.id.starts_with(beginning.as_str()))
    };
    let mut results = Vec::new();
    for (number, check) in all().into_iter().enumerate().filter(|(_, check)| wanted(check)) {
        let result = run_one(make, options, &check, &format!("conformance-{run}-{number}")).await;
        told(&result);
        results.push(result);
    }
    Ok(Report { provider: name, results })
}

async fn run_one(make: &Make, options: &Options, check: &Check, prefix: &str) -> CheckResult {
    let began = Instant::now();
    let verdict = match Bench::new(make, options, prefix).await {
        Ok(bench) => {
            let performed = timeout(options.limit, (check.run)(&bench)).await;
            let performed = performed.unwrap_or_else(|_| Err(Problem::late("the whole check", options.limit)));
            // What a check leaves is part of what it finds out.
            let cleaned = timeout(options.limit, bench.clean()).await;
            let cleaned = cleaned.unwrap_or_else(|_| Err(Problem::late("cleaning up", options.limit)));
            performed.and(cleaned)
        }
        Err(problem) => Err(problem),
    };
    CheckResult {
        id: check.id.to_owned(),
        title: check.title.to_owned(),
        spec: "docs/providers.md".to_owned(),
        verdict: verdict.map(|()| None).into(),
        seconds: (began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        attempts: 1,
    }
}
