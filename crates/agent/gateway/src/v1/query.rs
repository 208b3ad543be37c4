//! Queries, read strictly: what is not known is an error that names it.

use crate::fault::Fault;

/// Most parameters of a query.
const MOST: usize = 64;
/// Most characters of what an error repeats.
const SHOWN: usize = 64;

/// The parameters of a query.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query that may have these parameters.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Fault> {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let pairs: Vec<(String, String)> =
            pairs.take(MOST + 1).map(|(name, value)| (name.into(), value.into())).collect();
        if pairs.len() > MOST {
            return Err(Fault::wrong(format!("a query may have {MOST} parameters at most")));
        }
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Fault::wrong(format!("the parameter `{}` is unknown; known are: {known}", shown(name))));
        }
        Ok(Self(pairs))
    }

    /// All values of a parameter.
    pub(super) fn all<'a, 'b>(&'a self, name: &'b str) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be there once.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Fault::wrong(format!("the parameter `{name}` is there more than once")));
        }
        Ok(first)
    }

    /// One of these words.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Result<Option<String>, Fault> {
        match self.one(name)? {
            Some(value) if !words.contains(&value) => {
                let value = shown(value);
                Err(Fault::wrong(format!("`{name}` cannot be `{value}`; it must be one of: {}", words.join(", "))))
            }
            value => Ok(value.map(str::to_owned)),
        }
    }

    /// Whether something is wanted.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.word(name, &["true", "false"])?.as_deref() == Some("true"))
    }

    /// A number from 0 to `most`.
    pub(super) fn number(&self, name: &str, most: usize) -> Result<Option<usize>, Fault> {
        let Some(value) = self.one(name)? else { return Ok(None) };
        let number = value.parse().ok().filter(|number| *number <= most);
        let wrong = || Fault::wrong(format!("`{name}` must be a number from 0 to {most}, not `{}`", shown(value)));
        number.map(Some).ok_or_else(wrong)
    }
}

/// The beginning of a text, for errors.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_what_is_wrong_with_it() {
        let known = ["a", "b"];
        let query = Query::read(Some("a=1&b=x%3Dy&b=z"), &known).unwrap();
        assert_eq!((query.number("a", 5).unwrap(), query.all("b").collect::<Vec<_>>()), (Some(1), vec!["x=y", "z"]));
        for (text, expected) in [
            ("c=1", "`c` is unknown; known are: a, b"),
            ("a=1&a=2", "more than once"),
            ("a=6", "from 0 to 5"),
            ("a=-1", "from 0 to 5"),
            (&"a=1&".repeat(100), "64 parameters"),
        ] {
            let read = Query::read(Some(text), &known).and_then(|query| query.number("a", 5).map(drop));
            let detail = read.unwrap_err().detail().to_owned();
            assert!(detail.contains(expected), "{text}: {detail}");
        }
    }
}
