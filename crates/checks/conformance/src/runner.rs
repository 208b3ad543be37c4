//! Runs checks one after the other.

use std::time::{Duration, Instant};

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Serialize;

use crate::{Check, ConformanceError, Server, bench::Scratch, check::Problem, ground, recognise};

/// How checks are run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Time limit of one check.
    pub limit: Duration,
    /// How often a check that failed is tried again.
    pub retries: u32,
    /// Wait after each command.
    pub pause: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { limit: Duration::from_mins(1), retries: 0, pause: Duration::ZERO }
    }
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckResult {
    /// Group and name.
    pub id: String,
    /// The statement.
    pub title: String,
    /// Where it is written.
    pub spec: String,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How often it was tried.
    pub attempts: u32,
}

/// What can come of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass {
        /// Why the behaviour is allowed, where it is not the usual one.
        #[serde(skip_serializing_if = "Option::is_none")]
        deliberate: Option<String>,
    },
    /// It does not hold.
    Fail {
        /// The request.
        step: String,
        /// What had to come.
        expected: String,
        /// What came.
        got: String,
    },
    /// It could not be found out.
    Skip {
        /// Why not.
        reason: String,
    },
}

/// What came of a check, with the reason of a behaviour that is allowed but not the usual one.
impl From<Result<Option<&'static str>, Problem>> for Verdict {
    fn from(result: Result<Option<&'static str>, Problem>) -> Self {
        match result {
            Ok(deliberate) => Self::Pass { deliberate: deliberate.map(str::to_owned) },
            Err(Problem::Skip(reason)) => Self::Skip { reason },
            Err(Problem::Different { step, expected, got }) => Self::Fail { step, expected, got },
        }
    }
}

/// Selects checks by patterns such as `editor/*`; no pattern selects all.
pub fn select(checks: Vec<Check>, patterns: &[String]) -> Result<Vec<Check>, ConformanceError> {
    if patterns.is_empty() {
        return Ok(checks);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let invalid =
            |error: globset::Error| ConformanceError::Pattern { pattern: pattern.clone(), reason: error.to_string() };
        set.add(Glob::new(pattern).map_err(invalid)?);
    }
    let set: GlobSet = set
        .build()
        .map_err(|error| ConformanceError::Pattern { pattern: patterns.join(" "), reason: error.to_string() })?;
    Ok(checks.into_iter().filter(|check| set.is_match(check.id)).collect())
}

/// Runs checks on a server, tells each result as it comes, and cleans up.
pub async fn run(
    server: &Server,
    checks: &[Check],
    options: &RunOptions,
    mut told: impl FnMut(&CheckResult),
) -> Result<Vec<CheckResult>, ConformanceError> {
    let made = tokio::time::timeout(options.limit, Scratch::make(server, options.pause)).await;
    let late = |_| ConformanceError::Scratch {
        url: server.url().to_owned(),
        reason: format!("no answer within {} s", options.limit.as_secs()),
    };
    let scratch = match made.map_err(late)? {
        Ok(scratch) => scratch,
        Err(error) => return Err(recognise::explained(server, error, options.limit).await),
    };
    let mut results = Vec::with_capacity(checks.len());
    for check in checks {
        let result = run_one(&scratch, check, options).await;
        told(&result);
        results.push(result);
    }
    // Whether it could be cleaned up says nothing about the checks.
    let _removed = tokio::time::timeout(options.limit, scratch.remove()).await;
    Ok(results)
}

async fn run_one(scratch: &Scratch, check: &Check, options: &RunOptions) -> CheckResult {
    let began = Instant::now();
    let mut attempts = 0;
    let verdict = loop {
        attempts += 1;
        let verdict = attempt(scratch, check, attempts, options.limit).await;
        if !matches!(verdict, Verdict::Fail { .. }) || attempts > options.retries {
            break verdict;
        }
        recover(scratch, options).await;
    };
    if matches!(verdict, Verdict::Fail { .. }) {
        recover(scratch, options).await;
    }
    CheckResult {
        id: check.id.to_owned(),
        title: check.title.to_owned(),
        spec: check.spec.to_owned(),
        verdict,
        seconds: (began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        attempts,
    }
}

/// Ends what a failed check may have left running.
async fn recover(scratch: &Scratch, options: &RunOptions) {
    // The next check tells whether anything works.
    let _recovered = tokio::time::timeout(options.limit, ground::recover(&scratch.server, options.pause)).await;
}

async fn attempt(scratch: &Scratch, check: &Check, attempt: u32, limit: Duration) -> Verdict {
    if check.needs_key && !scratch.server.has_key() {
        return Verdict::Skip { reason: "no key is given".to_owned() };
    }
    let late = || Err(Problem::late("the whole check", limit));
    let bench = match tokio::time::timeout(limit, scratch.bench(check, attempt)).await {
        Ok(Ok(bench)) => bench,
        Ok(Err(error)) => return Err(Problem::from(error)).into(),
        Err(_) => return late().into(),
    };
    let ended = tokio::time::timeout(limit, bench.perform(check)).await;
    // A session that cannot be closed says nothing about the check.
    let _left = tokio::time::timeout(limit, bench.leave()).await;
    ended.unwrap_or_else(|_| late()).into()
}
