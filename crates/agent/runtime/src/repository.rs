//! The repository that a session works on (runtime-interface 10, 13.2).

mod clone_url;

use gloveport_protocol::{Action, ActionEvent, Observation, RunAction, RunObservation};

use crate::{
    Runtime, RuntimeError, RuntimeStatus, StatusLevel,
    git_providers::{self, Wanted},
    quote,
};

pub(crate) use clone_url::CloneUrl;

/// Seconds that a clone may take.
const CLONE_LIMIT: i64 = 600;

/// A repository, and where its work begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedRepository {
    /// Its name at the provider: `owner/name`.
    pub name: String,
    /// The branch to work on; none makes a new one.
    pub branch: Option<String>,
}

impl Runtime {
    /// Clones the repository into the workspace and gives the name of its directory there.
    ///
    /// Without a repository the workspace becomes one where the configuration says so, and the name is empty.
    pub async fn clone_or_init_repo(&self, selected: Option<&SelectedRepository>) -> Result<String, RuntimeError> {
        let Some(selected) = selected else {
            if self.session.config.init_git_in_empty_workspace {
                let root = quote::bash_word(self.workspace_root());
                let command = format!("git init && git config --global --add safe.directory {root}");
                let _not_looked_at = self.command(RunAction::new(command)).await?;
            }
            return Ok(String::new());
        };
        if let Some(branch) = selected.branch.as_deref().filter(|branch| branch.starts_with('-')) {
            return Err(RuntimeError::Branch(branch.to_owned()));
        }
        let url = self.clone_url(&selected.name, Wanted::Required).await?;
        self.session.status.tell(StatusLevel::Info, RuntimeStatus::SettingUpWorkspace, "Setting up workspace...");
        let directory = last_part(&selected.name);
        if directory.is_empty() {
            return Err(RuntimeError::NoRepository);
        }
        let path = format!("{}/{directory}", self.workspace_root().trim_end_matches('/'));
        let quoted = quote::bash_word(&path);
        let _not_looked_at = self.network_command(clone_command(&url, &quoted, "")).await?;
        let checkout = match &selected.branch {
            Some(branch) => format!("cd {quoted} && git checkout {}", quote::bash_word(branch)),
            None => format!("cd {quoted} && git checkout -b openhands-workspace-{}", random_suffix()),
        };
        let _not_looked_at = self.command(RunAction::new(checkout)).await?;
        let remote = format!("cd {quoted} && {}", remote_command(&url));
        match self.command(hidden(remote)).await? {
            Ok(run) if run.metadata.exit_code == 0 => {}
            Ok(run) => tracing::warn!(sid = self.sid(), output = %run.content, "the remote of the clone is not set"),
            Err(reason) => tracing::warn!(sid = self.sid(), %reason, "the remote of the clone is not set"),
        }
        Ok(directory.to_owned())
    }

    /// Where the repository is cloned from, by the provider that has it.
    pub(crate) async fn clone_url(&self, name: &str, wanted: Wanted) -> Result<CloneUrl, RuntimeError> {
        let failed = |source| RuntimeError::GitAuthentication { source: Box::new(source) };
        let providers = &self.session.providers;
        let repository = providers.resolve(name, wanted).await.map_err(failed)?;
        let token = providers.tokens().get(repository.provider);
        let url = git_providers::clone_url(&repository, token)
            .map_err(|source| RuntimeError::GitAuthentication { source: Box::new(source) })?;
        Ok(CloneUrl::new(repository.provider, &url))
    }

    /// Clones with as little history as possible into a directory of the workspace; whether it worked.
    pub(crate) async fn shallow_clone(&self, url: &CloneUrl, path: &str) -> Result<bool, RuntimeError> {
        let command = clone_command(url, &quote::bash_word(path), "--depth 1 ");
        Ok(self.network_command(command).await?.is_ok_and(|run| run.metadata.exit_code == 0))
    }

    async fn network_command(&self, command: String) -> Result<Result<RunObservation, String>, RuntimeError> {
        #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
        let limit = self.session.config.sandbox.timeout.max(CLONE_LIMIT) as f64;
        let run = RunAction { blocking: true, ..hidden(command) };
        let event = ActionEvent { timeout: Some(limit), ..Action::Run(run).into() };
        Ok(match self.run_action(&event).await? {
            Observation::Run(run) => Ok(run),
            other => Err(other.content().to_owned()),
        })
    }
}

fn hidden(command: String) -> RunAction {
    RunAction { hidden: true, ..RunAction::new(command) }
}

/// Clones without the token among the arguments of any process: git asks a helper, which has it from its environment.
///
/// The interface puts the token into the URL, where everybody on the machine can read it.
fn clone_command(url: &CloneUrl, quoted_path: &str, flags: &str) -> String {
    let clone = format!("git clone {flags}{} {quoted_path}", quote::bash_word(&url.public));
    let Some((user, password)) = &url.credentials else { return format!("GIT_TERMINAL_PROMPT=0 {clone}") };
    format!(
        "GIT_TERMINAL_PROMPT=0 GLOVEPORT_GIT_USER={} GLOVEPORT_GIT_PASSWORD={} GIT_CONFIG_COUNT=1 \
         GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0={} {clone}",
        quote::bash_value(user.expose()),
        quote::bash_value(password.expose()),
        quote::bash_word(
            "!f() { [ \"$1\" = get ] && printf 'username=%s\\npassword=%s\\n' \"$GLOVEPORT_GIT_USER\" \
             \"$GLOVEPORT_GIT_PASSWORD\"; }; f"
        ),
    )
}

/// Sets the remote, and where later fetches and pushes find the token: in the variable that the session keeps fresh.
fn remote_command(url: &CloneUrl) -> String {
    let set = format!("git remote set-url origin {}", quote::bash_word(&url.public));
    let Some(helper) = url.later_helper() else { return set };
    format!("{set} && git config {} {}", quote::bash_word(&url.helper_key()), quote::bash_word(&helper))
}

pub(crate) fn last_part(repository: &str) -> &str {
    repository.rsplit('/').next().unwrap_or_default()
}

/// Eight characters of `[a-z0-9]`.
fn random_suffix() -> String {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // A name that exists already makes git say so; nothing depends on how well it is chosen.
    let mut bytes = [0_u8; 8];
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or_default().to_le_bytes();
    }
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}
