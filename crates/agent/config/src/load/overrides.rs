//! Applies what the command line says (configuration 9).

use super::{Loader, Overrides, file::full_name, finalize::absolute};
use crate::{
    error::ConfigError,
    key::Section,
    model::{AgentConfig, BASE_AGENT, BASE_LLM, LlmConfig},
    note::{Note, NoteKind, Place},
    origin::Origin,
    suggest::did_you_mean,
};

impl Loader<'_> {
    pub(super) fn overrides(&mut self) -> Result<(), ConfigError> {
        let Overrides {
            agent_class,
            max_iterations,
            max_budget_per_task,
            selected_repo,
            llm_config,
            agent_config,
            directory,
        } = self.options.overrides.clone();
        if let Some(name) = llm_config {
            self.llm_group(&name)?;
        }
        if let Some(name) = agent_config {
            self.agent_group(&name);
        }
        if let Some(agent) = agent_class.filter(|agent| !agent.is_empty()) {
            self.config.default_agent = agent;
            self.flag("core", "default_agent", "--agent-cls");
        }
        if let Some(iterations) = max_iterations {
            self.config.max_iterations = iterations;
            self.flag("core", "max_iterations", "--max-iterations");
        }
        if let Some(budget) = max_budget_per_task {
            self.config.max_budget_per_task = Some(budget);
            self.flag("core", "max_budget_per_task", "--max-budget-per-task");
        }
        if let Some(repository) = selected_repo {
            self.config.sandbox.selected_repo = Some(repository);
            self.flag("sandbox", "selected_repo", "--selected-repo");
        }
        if let Some(directory) = directory {
            let directory = absolute(&self.options.current_directory, &directory.to_string_lossy());
            self.config.workspace_base = Some(directory.clone());
            self.config.workspace_mount_path = Some(directory);
            self.flag("core", "workspace_base", "--directory");
            self.flag("core", "workspace_mount_path", "--directory");
        }
        Ok(())
    }

    fn flag(&mut self, section: &str, key: &str, name: &'static str) {
        self.origins.set(section, key, Origin::Set(Place::Flag { name }));
    }

    /// Makes a model group the base group. It may stand in the user's own file.
    fn llm_group(&mut self, written: &str) -> Result<(), ConfigError> {
        let name = group_name(written, "llm.");
        let found = match self.config.llms.get(name) {
            Some(group) => Some(group.clone()),
            None => self.llm_of_user(name)?,
        };
        let Some(mut group) = found else {
            let message = format!("Cannot find LLM configuration '{written}' in any config file");
            let near = did_you_mean(name, self.config.llms.keys().map(String::as_str));
            let note = Note::error(NoteKind::WrongValue, message).at(Place::Flag { name: "--llm-config" });
            self.note(note.suggest(near));
            return Ok(());
        };
        group.log_completions_folder = absolute(&self.options.current_directory, &group.log_completions_folder);
        self.becomes_base::<LlmConfig>(BASE_LLM, name);
        self.config.llms.insert(BASE_LLM.into(), group);
        Ok(())
    }

    fn agent_group(&mut self, written: &str) {
        let name = group_name(written, "agent.");
        let Some(group) = self.config.agents.get(name).cloned() else {
            let message = format!("cannot find the agent configuration '{written}' in the configuration file");
            let near = did_you_mean(name, self.config.agents.keys().map(String::as_str));
            let note = Note::error(NoteKind::WrongValue, message).at(Place::Flag { name: "--agent-config" });
            return self.note(note.suggest(near));
        };
        self.becomes_base::<AgentConfig>(BASE_AGENT, name);
        self.config.agents.insert(BASE_AGENT.into(), group);
    }

    /// The values of the base group come from where those of the named one do.
    fn becomes_base<S: Section>(&mut self, base: &str, name: &str) {
        let named = full_name(base, name);
        for key in S::KEYS {
            let origin = self.origins.of(&named, key.name).clone();
            self.origins.set(base, key.name, origin);
        }
    }
}

/// The name of a group, also if it is written as the file's section.
fn group_name<'a>(written: &'a str, prefix: &str) -> &'a str {
    let name = written.trim_start_matches('[').trim_end_matches(']');
    name.strip_prefix(prefix).unwrap_or(name)
}
