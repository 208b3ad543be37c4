//! Kinds of files that are shown as a page for a browser.

use gloveport_text::path;

use crate::limits::INPUT;

/// A kind of file that is shown as a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Markdown, as what it stands for.
    Markdown,
    /// A table whose cells are kept apart by commas, semicolons, bars or tabs.
    Separated,
    /// A table whose cells are kept apart by tabs.
    Tabs,
    /// The tables of a workbook of Excel.
    Workbook,
    /// A notebook of Jupyter.
    Notebook,
    /// Any other text, such as the source of a program.
    Text,
}

impl View {
    /// The kind of a file by its name, in capital or small letters.
    pub fn of(path: &str) -> Option<Self> {
        let extension = path::extension(path).to_ascii_lowercase();
        Some(match extension.strip_prefix('.')? {
            "md" | "markdown" => Self::Markdown,
            "csv" => Self::Separated,
            "tsv" | "tab" => Self::Tabs,
            "xlsx" => Self::Workbook,
            "ipynb" => Self::Notebook,
            other if TEXTS.contains(&other) => Self::Text,
            _ => return None,
        })
    }

    /// Bytes that are read of such a file.
    pub(crate) const fn input(self) -> u64 {
        match self {
            Self::Markdown | Self::Text => 1024 * 1024,
            Self::Separated | Self::Tabs => 16 * 1024 * 1024,
            // These say nothing before their last byte.
            Self::Workbook | Self::Notebook => INPUT,
        }
    }

    /// Whether the beginning of a file can be shown without the rest of it.
    pub const fn takes_a_beginning(self) -> bool {
        match self {
            Self::Markdown | Self::Text | Self::Separated | Self::Tabs => true,
            Self::Workbook | Self::Notebook => false,
        }
    }
}

/// Extensions of texts, without their dots.
const TEXTS: &[&str] = &[
    "txt",
    "text",
    "log",
    "rst",
    "adoc",
    "org",
    "tex",
    "bib",
    "srt",
    "vtt",
    "diff",
    "patch",
    "json",
    "jsonl",
    "ndjson",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "properties",
    "lock",
    "xml",
    "html",
    "htm",
    "xhtml",
    "svg",
    "css",
    "scss",
    "less",
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "tsx",
    "vue",
    "svelte",
    "py",
    "pyi",
    "rb",
    "php",
    "pl",
    "pm",
    "lua",
    "r",
    "jl",
    "rs",
    "go",
    "c",
    "h",
    "cc",
    "cpp",
    "cxx",
    "hh",
    "hpp",
    "hxx",
    "cs",
    "java",
    "kt",
    "kts",
    "scala",
    "groovy",
    "gradle",
    "swift",
    "m",
    "mm",
    "dart",
    "hs",
    "ml",
    "mli",
    "fs",
    "ex",
    "exs",
    "erl",
    "clj",
    "lisp",
    "el",
    "scm",
    "zig",
    "nim",
    "v",
    "sv",
    "vhd",
    "asm",
    "s",
    "sh",
    "bash",
    "zsh",
    "fish",
    "ps1",
    "bat",
    "cmd",
    "awk",
    "sed",
    "vim",
    "sql",
    "graphql",
    "proto",
    "mk",
    "cmake",
    "dockerfile",
    "tf",
    "nix",
    "service",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_known_by_their_names() {
        for (path, expected) in [
            ("/a.md", Some(View::Markdown)),
            ("/a.b.MARKDOWN", Some(View::Markdown)),
            ("/a.csv", Some(View::Separated)),
            ("/a.TSV", Some(View::Tabs)),
            ("/a.xlsx", Some(View::Workbook)),
            ("/a.ipynb", Some(View::Notebook)),
            ("/a.rs", Some(View::Text)),
            ("/a.txt", Some(View::Text)),
            ("/a.html", Some(View::Text)),
            ("/a.pem", None),
            ("/a.exe", None),
            ("/md", None),
            ("/.md", None),
            ("/a.", None),
        ] {
            assert_eq!(View::of(path), expected, "{path}");
        }
    }
}
