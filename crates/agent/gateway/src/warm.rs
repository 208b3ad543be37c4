//! Sandboxes that a gateway has its engine start ahead: how many of each kind, and what came of them.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use gloveport_metrics::{Histogram, Text};
use gloveport_provider::{
    Capabilities, Phase, Progress, Provider, ProviderError, STARTED_AHEAD, Sandbox, SandboxSpec, WarmKind,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

/// The time for which starts are counted together. It is also the pause between two looks at what waits.
const SLOT: Duration = Duration::from_secs(10);
/// How many of these times count: five minutes.
const SLOTS: usize = 30;
/// Time to end what waits.
const END: Duration = Duration::from_secs(10);
/// Upper bounds of the buckets of starts, in seconds.
const START: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// How a start can have got its sandbox.
const RESULTS: [&str; 2] = ["hit", "miss"];

/// A pool of sandboxes that are started ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmPool {
    /// What it is called in metrics.
    pub name: String,
    /// The image, as clients name it; `None` where there are none, or for the runtime's default.
    pub image: Option<String>,
    /// The resource factor that clients ask for; `None` is 1.
    pub resource_factor: Option<u32>,
    /// Plugins for which something must be there from the beginning: `vscode`.
    pub plugins: Vec<String>,
    /// So many wait even if nobody asks.
    pub floor: usize,
    /// More never wait.
    pub ceiling: usize,
}

impl WarmPool {
    /// Most sandboxes that may wait in all pools of a gateway.
    pub const MOST: usize = 256;

    /// One of the runtime's default image, of a fixed size.
    pub fn fixed(count: usize) -> Self {
        let (image, resource_factor, plugins) = (None, None, Vec::new());
        Self { name: "default".to_owned(), image, resource_factor, plugins, floor: count, ceiling: count }
    }

    fn kind(&self, count: usize) -> WarmKind {
        let Self { image, resource_factor, plugins, .. } = self.clone();
        WarmKind { image, factor: resource_factor, plugins, least: count, most: count }
    }

    /// Whether sandboxes of two pools would be the same.
    fn is_like(&self, other: &Self) -> bool {
        let alike = |pool: &Self| (pool.image.clone(), pool.resource_factor.unwrap_or(1), pool.kind(0).has_editor());
        alike(self) == alike(other)
    }

    /// What is wrong with pools over a runtime that can do this.
    pub fn check(pools: &[Self], runtime: &str, can: &Capabilities) -> Result<(), String> {
        if pools.is_empty() {
            return Ok(());
        }
        if !can.warm {
            return Err(format!("the runtime {runtime} starts no sandboxes ahead; leave `warm` out"));
        }
        for (at, pool) in pools.iter().enumerate() {
            let Self { name, floor, ceiling, .. } = pool;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
                return Err(format!(
                    "`{name}` cannot be the name of a pool: use up to 64 letters, digits, `.`, `_`, `-`"
                ));
            }
            if floor > ceiling {
                return Err(format!("the warm pool `{name}` has the floor {floor} and a lower ceiling, {ceiling}"));
            }
            if pool.image.is_some() && !can.images {
                return Err(format!("the warm pool `{name}` names an image, and the runtime {runtime} has none"));
            }
            if pool.resource_factor.is_some_and(|factor| factor != 1) && !can.resource_factor {
                return Err(format!(
                    "the warm pool `{name}` has a resource factor, and the runtime {runtime} no sizes"
                ));
            }
            if let Some(other) = pools[..at].iter().find(|other| other.name == *name || other.is_like(pool)) {
                let other = &other.name;
                return Err(format!(
                    "the warm pools `{other}` and `{name}` are of the same kind or name; leave one out"
                ));
            }
        }
        let all = pools.iter().map(|pool| pool.ceiling).fold(0, usize::saturating_add);
        if all > Self::MOST {
            return Err(format!("{all} sandboxes could wait in all warm pools, and {} are possible", Self::MOST));
        }
        Ok(())
    }
}

/// How many sandboxes were asked for lately.
#[derive(Debug)]
struct Demand {
    /// The latest first.
    slots: VecDeque<usize>,
    since: Instant,
}

impl Demand {
    fn new() -> Self {
        Self { slots: VecDeque::from([0]), since: Instant::now() }
    }

    fn turn(&mut self, now: Instant) {
        while now.duration_since(self.since) >= SLOT {
            self.since += SLOT;
            self.slots.push_front(0);
            self.slots.truncate(SLOTS);
        }
    }

    fn note(&mut self, now: Instant) {
        self.turn(now);
        if let Some(latest) = self.slots.front_mut() {
            *latest += 1;
        }
    }

    /// The most that were asked for within one slot.
    fn peak(&mut self, now: Instant) -> usize {
        self.turn(now);
        self.slots.iter().copied().max().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Pool {
    options: WarmPool,
    demand: Mutex<Demand>,
    /// How many wait, as it was told last.
    waiting: AtomicUsize,
    /// How many are to wait.
    target: AtomicUsize,
    starts: [Histogram; RESULTS.len()],
}

impl Pool {
    fn asked(&self, was_warm: bool, took: Duration) {
        let [hit, miss] = &self.starts;
        if was_warm { hit } else { miss }.observe(took);
        self.demand.lock().unwrap_or_else(PoisonError::into_inner).note(Instant::now());
        if was_warm {
            // Until it is told anew.
            let _none = self.waiting.fetch_update(SeqCst, SeqCst, |waiting| waiting.checked_sub(1));
        }
    }

    /// What is to wait: as many as were asked for in the busiest time of the last minutes.
    fn wanted(&self) -> WarmKind {
        let peak = self.demand.lock().unwrap_or_else(PoisonError::into_inner).peak(Instant::now());
        let count = peak.clamp(self.options.floor, self.options.ceiling);
        self.target.store(count, Relaxed);
        self.options.kind(count)
    }
}

/// All pools of a gateway.
#[derive(Debug)]
pub(crate) struct Warm {
    pools: Vec<Pool>,
    /// Somebody has got a sandbox.
    asked: Notify,
}

impl Warm {
    pub(crate) fn new(pools: &[WarmPool]) -> Self {
        let pool = |options: &WarmPool| Pool {
            options: options.clone(),
            demand: Mutex::new(Demand::new()),
            waiting: AtomicUsize::new(0),
            target: AtomicUsize::new(options.floor),
            starts: std::array::from_fn(|_| Histogram::new(&START)),
        };
        Self { pools: pools.iter().map(pool).collect(), asked: Notify::new() }
    }

    /// Makes a sandbox, of those that wait if there is one.
    pub(crate) async fn make(
        &self,
        provider: &dyn Provider,
        spec: &SandboxSpec,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        let Some(pool) = self.pools.iter().find(|pool| pool.options.kind(0).fits(spec)) else {
            return provider.create(spec, progress).await;
        };
        let (tell, mut told) = mpsc::unbounded_channel();
        let making = Progress::to(Arc::new(move |report| {
            let _over = tell.send((report.phase, report.detail.to_string()));
        }));
        let mut was_warm = false;
        let mut hear = |(phase, detail): (Phase, String)| {
            // What was of no use is followed by another one.
            if phase == Phase::Creating {
                was_warm = detail == STARTED_AHEAD;
            }
            progress.enter(phase, &detail);
        };
        let began = Instant::now();
        let mut made = pin!(provider.create(spec, &making));
        let made = loop {
            tokio::select! {
                biased;
                Some(report) = told.recv() => hear(report),
                made = &mut made => break made,
            }
        };
        while let Ok(report) = told.try_recv() {
            hear(report);
        }
        if made.is_ok() {
            pool.asked(was_warm, began.elapsed());
            self.asked.notify_one();
        }
        made
    }

    /// Keeps the pools filled until `stop`.
    pub(crate) async fn keep(&self, provider: &dyn Provider, stop: &CancellationToken) {
        if self.pools.is_empty() {
            return;
        }
        let mut ticks = interval(SLOT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = None;
        let filled = async {
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = self.asked.notified() => {}
                }
                let kinds: Vec<WarmKind> = self.pools.iter().map(Pool::wanted).collect();
                match provider.keep_warm(&kinds).await {
                    Ok(counts) => {
                        for (pool, count) in self.pools.iter().zip(counts) {
                            pool.waiting.store(count, SeqCst);
                        }
                        if told.take().is_some() {
                            tracing::info!("sandboxes are started ahead again");
                        }
                    }
                    Err(error) => {
                        // Once, until it is another one.
                        let reason = error.to_string();
                        if told.as_ref() != Some(&reason) {
                            tracing::warn!(reason, "no sandboxes could be started ahead");
                        }
                        told = Some(reason);
                        ticks.tick().await;
                    }
                }
            }
        };
        stop.run_until_cancelled(filled).await;
    }

    /// Ends those that wait.
    pub(crate) async fn end(&self, provider: &dyn Provider) {
        if self.pools.is_empty() {
            return;
        }
        let kinds: Vec<WarmKind> = self.pools.iter().map(|pool| pool.options.kind(0)).collect();
        match timeout(END, provider.keep_warm(&kinds)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "sandboxes that were started ahead end with the backend"),
            Err(_) => tracing::warn!("sandboxes that were started ahead end with the backend"),
        }
    }

    /// What waits, with its image (remote-runtime-api 2.1). `may_use` says whether somebody may see an image.
    pub(crate) fn told(&self, may_use: impl Fn(&str) -> bool) -> Vec<serde_json::Value> {
        let own = self.pools.iter().filter(|pool| pool.options.image.as_deref().is_none_or(&may_use));
        let told = own.map(|pool| {
            let WarmPool { name, image, resource_factor, plugins, floor, ceiling } = &pool.options;
            serde_json::json!({
                "name": name, "image": image, "command": null, "environment": {}, "working_dir": null,
                "resource_factor": resource_factor.unwrap_or(1), "plugins": plugins,
                "floor": floor, "ceiling": ceiling, "waiting": pool.waiting.load(SeqCst),
            })
        });
        told.collect()
    }

    /// Writes what is counted.
    pub(crate) fn write(&self, text: &mut Text) {
        if self.pools.is_empty() {
            return;
        }
        let name = "gateway_warm_waiting";
        text.header(name, "gauge", "Sandboxes that were started ahead and wait, by pool.");
        for pool in &self.pools {
            text.sample(name, &format!("pool=\"{}\"", pool.options.name), pool.waiting.load(SeqCst));
        }
        let name = "gateway_warm_target";
        text.header(name, "gauge", "Sandboxes that are to wait, by pool.");
        for pool in &self.pools {
            text.sample(name, &format!("pool=\"{}\"", pool.options.name), pool.target.load(Relaxed));
        }
        let name = "gateway_warm_start_duration_seconds";
        text.header(name, "histogram", "Time for a sandbox of a pool's kind: hit if one waited, miss if not.");
        for pool in &self.pools {
            for (result, starts) in RESULTS.iter().zip(&pool.starts) {
                starts.write(text, name, &format!("pool=\"{}\",result=\"{result}\"", pool.options.name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_as_large_as_its_busiest_ten_seconds_lately_between_its_bounds() {
        let mut demand = Demand::new();
        let began = demand.since;
        let at = |seconds| began + Duration::from_secs(seconds);
        for second in [0, 1, 2, 9, 10, 11] {
            demand.note(at(second));
        }
        // Four in the first ten seconds, two in the next.
        assert_eq!(demand.peak(at(12)), 4);
        assert_eq!(demand.peak(at(299)), 4);
        assert_eq!(demand.peak(at(301)), 2);
        assert_eq!(demand.peak(at(3600)), 0);
        assert!(demand.slots.len() <= SLOTS);

        let warm = Warm::new(&[WarmPool { floor: 2, ceiling: 3, ..WarmPool::fixed(0) }]);
        let pool = &warm.pools[0];
        let mut targets = Vec::new();
        for _ in 0..5 {
            targets.push(pool.wanted().least);
            pool.asked(false, Duration::from_millis(1));
        }
        assert_eq!(targets, [2, 2, 2, 3, 3]);
    }

    #[test]
    fn pools_that_a_runtime_cannot_have_are_refused() {
        let can = Capabilities { warm: true, images: true, ..Capabilities::NONE };
        let pool = |name: &str, image: &str| WarmPool {
            name: name.to_owned(),
            image: Some(image.to_owned()),
            ..WarmPool::fixed(1)
        };
        WarmPool::check(&[pool("a", "x"), pool("b", "y"), WarmPool::fixed(1)], "r", &can).unwrap();
        WarmPool::check(&[], "r", &Capabilities::NONE).unwrap();
        for (pools, can, expected) in [
            (vec![pool("a", "x")], Capabilities::NONE, "starts no sandboxes ahead"),
            (vec![pool("a", "x")], Capabilities { images: false, ..can.clone() }, "names an image"),
            (vec![WarmPool { floor: 2, ..pool("a", "x") }], can.clone(), "lower ceiling"),
            (vec![WarmPool { resource_factor: Some(2), ..pool("a", "x") }], can.clone(), "no sizes"),
            (vec![pool("a", "x"), pool("b", "x")], can.clone(), "same kind"),
            (vec![pool("a", "x"), pool("a", "y")], can.clone(), "same kind or name"),
            (vec![pool("a b", "x")], can.clone(), "name of a pool"),
            (vec![WarmPool::fixed(257)], can, "257 sandboxes could wait"),
        ] {
            let error = WarmPool::check(&pools, "r", &can).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
