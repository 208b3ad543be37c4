//! Initialises plugins: all at the same time, but each after what it requires.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::plugin::{Plugin, PluginError, PluginHost, PluginState};

/// Time for all plugins to end when one of them failed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Initialises all plugins within a limit. If one fails all are stopped, and the error is its.
pub async fn initialize_all(
    plugins: &[Arc<dyn Plugin>],
    host: &PluginHost,
    limit: Duration,
) -> Result<(), PluginError> {
    let mut running = spawn_all(plugins, host)?;
    let all = async {
        while let Some(joined) = running.join_next().await {
            joined.unwrap_or_else(|error| {
                Err(PluginError::new(format!("a plugin ended with a panic: {error}"), "report this as a bug"))
            })?;
        }
        Ok(())
    };
    let outcome = timeout(limit, all).await.unwrap_or_else(|_| Err(too_late(plugins, limit)));
    if outcome.is_err() {
        running.shutdown().await;
        stop_all(plugins).await;
    }
    outcome
}

/// Stops all plugins at the same time.
pub async fn stop_all(plugins: &[Arc<dyn Plugin>]) {
    let mut stopping: JoinSet<()> = JoinSet::new();
    for plugin in plugins {
        let plugin = Arc::clone(plugin);
        stopping.spawn(async move { plugin.stop().await });
    }
    if timeout(STOP_LIMIT, async { while stopping.join_next().await.is_some() {} }).await.is_err() {
        tracing::warn!("plugins did not end within {} s", STOP_LIMIT.as_secs());
    }
}

/// One task for each plugin. A task tells the others when its plugin is initialised.
fn spawn_all(plugins: &[Arc<dyn Plugin>], host: &PluginHost) -> Result<JoinSet<Result<(), PluginError>>, PluginError> {
    let tellers = plugins.iter().map(|plugin| (plugin.name().to_owned(), watch::Sender::new(false)));
    let mut tellers: BTreeMap<String, watch::Sender<bool>> = tellers.collect();
    let mut tasks = Vec::new();
    for plugin in plugins {
        let mut required = Vec::new();
        for name in plugin.requires() {
            let teller = tellers.get(&name).ok_or_else(|| {
                let reason = format!("the plugin {} requires {name}, which is not among those to start", plugin.name());
                PluginError::new(reason, format!("start {name} too"))
            })?;
            required.push(teller.subscribe());
        }
        tasks.push((Arc::clone(plugin), required));
    }
    let mut running = JoinSet::new();
    for (plugin, required) in tasks {
        let teller = tellers.remove(plugin.name());
        let host = host.clone();
        running.spawn(async move {
            for mut required in required {
                if required.wait_for(|done| *done).await.is_err() {
                    // What it requires has failed, and that error is told.
                    std::future::pending::<()>().await;
                }
            }
            plugin.initialize(&host).await.map_err(|PluginError { reason, remedy }| {
                PluginError::new(format!("the plugin {} cannot be initialised: {reason}", plugin.name()), remedy)
            })?;
            if let Some(teller) = teller {
                teller.send_replace(true);
            }
            Ok(())
        });
    }
    Ok(running)
}

fn too_late(plugins: &[Arc<dyn Plugin>], limit: Duration) -> PluginError {
    let starting = plugins.iter().filter_map(|plugin| match &*plugin.state().borrow() {
        PluginState::Starting { step } => Some(format!("{} ({step})", plugin.name())),
        _ => None,
    });
    let starting: Vec<String> = starting.collect();
    let seconds = limit.as_secs_f64();
    let reason = if starting.is_empty() {
        format!("the plugins were not initialised within {seconds} s")
    } else {
        format!("the plugins were not initialised within {seconds} s; still starting: {}", starting.join(", "))
    };
    PluginError::new(reason, "see their output in the log at level debug, or give more time with INIT_PLUGIN_TIMEOUT")
}
