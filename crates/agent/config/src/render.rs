//! What is made of the keys: the file with the defaults, the tables of the documentation, and the JSON schema.

mod markdown;
mod schema;
mod toml;

pub use self::{
    markdown::{effect_table, key_tables},
    schema::schema,
    toml::render_default_toml,
};

/// The configuration file with all keys at their defaults, each with a comment.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// The words of a doc comment in one line.
fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
