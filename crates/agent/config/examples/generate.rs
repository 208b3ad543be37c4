//! Writes the texts that are made from the keys: the file with the defaults, and the tables of the documentation.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::write(root.join("src/default.toml"), gloveport_config::render_default_toml())?;
    let documentation = root.join("../../../docs/configuration.md");
    let text = fs::read_to_string(&documentation)?;
    let missing = || io::Error::other("docs/configuration.md has lost the marks around the tables");
    let (head, rest) = text.split_once("<!-- keys: begin -->\n").ok_or_else(missing)?;
    let (_, tail) = rest.split_once("<!-- keys: end -->\n").ok_or_else(missing)?;
    let tables = gloveport_config::key_tables();
    fs::write(documentation, format!("{head}<!-- keys: begin -->\n{tables}<!-- keys: end -->\n{tail}"))
}
