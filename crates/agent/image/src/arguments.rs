//! The extra arguments of builds, which are written for `docker buildx build`, for an engine without it.

use std::collections::BTreeMap;

use crate::error::ImageError;

/// What an engine itself understands of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct EngineArguments {
    pub(crate) build_args: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) network: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) no_cache: bool,
    pub(crate) pull: bool,
}

/// Whether the result goes elsewhere than into the engine.
pub(crate) fn goes_elsewhere(words: &[String]) -> bool {
    words.iter().any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        ["--push", "--output", "-o"].contains(&name)
    })
}

impl EngineArguments {
    /// Understands them. A build argument without a value has that of the variable, as in the Docker command line.
    pub(crate) fn parse(words: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, ImageError> {
        let mut found = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            match name {
                "--no-cache" => found.no_cache = value != Some("false"),
                "--pull" => found.pull = value != Some("false"),
                "--load" => {}
                "--build-arg" | "--label" | "--add-host" | "--network" | "--target" => {
                    let value = match value.or_else(|| words.next().map(String::as_str)) {
                        Some(value) => value.to_owned(),
                        None => return Err(refused(name, "a value is missing")),
                    };
                    found.take(name, value, &variable);
                }
                _ => {
                    return Err(ImageError::Unsupported {
                        reason: format!("this engine is asked without BuildKit, which knows no argument `{name}`"),
                        remedy: "install Docker's command line with the plugin buildx, or leave it out".into(),
                    });
                }
            }
        }
        Ok(found)
    }

    fn take(&mut self, name: &str, value: String, variable: impl Fn(&str) -> Option<String>) {
        match name {
            "--build-arg" => match value.split_once('=') {
                Some((name, value)) => {
                    self.build_args.insert(name.into(), value.into());
                }
                None => self.build_args.extend(variable(&value).map(|text| (value, text))),
            },
            "--label" => {
                let (name, value) = value.split_once('=').unwrap_or((&value, ""));
                self.labels.insert(name.into(), value.into());
            }
            "--add-host" => self.hosts.push(value),
            "--network" => self.network = Some(value),
            _ => self.target = Some(value),
        }
    }
}

fn refused(name: &str, reason: &str) -> ImageError {
    ImageError::Value { what: "the build argument", value: name.escape_debug().to_string(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<EngineArguments, ImageError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        EngineArguments::parse(&words, |name| (name == "SET").then(|| "from outside".into()))
    }

    #[test]
    fn what_an_engine_knows_is_understood_in_both_forms() {
        let line = "--network host --build-arg A=1=2 --build-arg=B= --build-arg SET --build-arg UNSET --no-cache --pull \
                    --label x=y --add-host h:1.2.3.4 --target=t --load";
        let pairs = |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        let expected = EngineArguments {
            build_args: pairs(&[("A", "1=2"), ("B", ""), ("SET", "from outside")]),
            labels: pairs(&[("x", "y")]),
            hosts: vec!["h:1.2.3.4".into()],
            network: Some("host".into()),
            target: Some("t".into()),
            no_cache: true,
            pull: true,
        };
        assert_eq!(parse(line).unwrap(), expected);
    }

    #[test]
    fn what_only_buildkit_knows_is_an_error_that_says_so() {
        let error = parse("--cache-from type=local,src=/x").unwrap_err().to_string();
        assert!(error.contains("buildx") && error.contains("--cache-from"), "{error}");
        assert!(parse("--network").is_err());
    }
}
