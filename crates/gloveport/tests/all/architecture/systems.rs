//! What of a crate only one system has: calls, types and files.
//!
//! Items that say for which systems they are, and tests, do not count.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Field, FieldValue, ImplItemFn, Item, Local, Macro, Meta, Stmt, UseTree,
    visit::{self, Visit},
};

/// Crates that are for one family of systems.
const CRATES: [&str; 3] = ["rustix", "gloveport_sys", "libc"];
/// Types of tokio that are for one family.
const TYPES: [&str; 4] = ["UnixStream", "UnixListener", "UnixDatagram", "AsyncFd"];

/// What was found: files, each with what it uses.
#[derive(Default)]
pub(crate) struct Uses {
    /// How many files were read.
    pub(crate) files: usize,
    /// Uses in code.
    pub(crate) paths: Vec<(PathBuf, String)>,
    /// Names of files of Linux in texts.
    pub(crate) texts: Vec<(PathBuf, String)>,
}

/// All uses of a crate with this root, or of one of its files, where these crates are for one system, too.
pub(crate) fn uses(root: &Path, crates: &[String]) -> Uses {
    let crates: Vec<&str> = CRATES.into_iter().chain(crates.iter().map(String::as_str)).collect();
    let mut uses = Uses::default();
    read(root, root.parent().unwrap(), &crates, &mut uses);
    uses
}

/// Reads a file and what is declared in it, whose files are in `below`.
fn read(file: &Path, below: &Path, crates: &[&str], uses: &mut Uses) {
    let text = fs::read_to_string(file);
    assert!(text.is_ok(), "{}: {text:?}", file.display());
    let parsed = syn::parse_file(&text.unwrap());
    assert!(parsed.is_ok(), "{}: {:?}", file.display(), parsed.err());
    uses.files += 1;
    let mut reader = Reader { file, below: below.to_owned(), crates, uses };
    reader.visit_file(&parsed.unwrap());
}

struct Reader<'a> {
    file: &'a Path,
    below: PathBuf,
    crates: &'a [&'a str],
    uses: &'a mut Uses,
}

/// Whether something is for some systems only, or for tests.
fn is_apart(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            let mut words = condition.split(|character: char| !character.is_alphanumeric() && character != '_');
            words.any(|word| ["test", "target_os", "unix", "windows"].contains(&word))
        }
        _ => false,
    })
}

impl Reader<'_> {
    fn path(&mut self, segments: &[String]) {
        let first = segments.first().map(String::as_str).unwrap_or_default();
        let what = match segments.get(1).map(String::as_str) {
            _ if self.crates.contains(&first) => first.to_owned(),
            Some("os") if first == "std" => "std::os".to_owned(),
            _ => match segments.iter().find(|segment| TYPES.contains(&segment.as_str())) {
                Some(kind) => kind.clone(),
                None if segments.starts_with(&["tokio", "signal", "unix"].map(String::from)) => segments.join("::"),
                None => return,
            },
        };
        self.uses.paths.push((self.file.to_owned(), what));
    }

    fn imports(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.imports(&path.tree, &with(path.ident.to_string())),
            UseTree::Name(name) => self.path(&with(name.ident.to_string())),
            UseTree::Rename(rename) => self.path(&with(rename.ident.to_string())),
            UseTree::Glob(_) => self.path(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.imports(tree, before)),
        }
    }

    fn text(&mut self, text: &str) {
        if text == "/proc" || text.starts_with("/proc/") {
            self.uses.texts.push((self.file.to_owned(), "/proc".to_owned()));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Const(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Macro(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if is_apart(attributes) {
            return;
        }
        match item {
            Item::Use(item) => self.imports(&item.tree, &[]),
            Item::Mod(item) if item.content.is_none() => {
                let name = item.ident.to_string();
                let alone = self.below.join(format!("{name}.rs"));
                let file = if alone.is_file() { alone } else { self.below.join(&name).join("mod.rs") };
                read(&file, &self.below.join(&name), self.crates, self.uses);
            }
            Item::Mod(item) => {
                let inner = self.below.join(item.ident.to_string());
                let outer = std::mem::replace(&mut self.below, inner);
                visit::visit_item_mod(self, item);
                self.below = outer;
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_apart(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !is_apart(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast FieldValue) {
        if !is_apart(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !is_apart(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Macro(made) if is_apart(&made.attrs) => {}
            statement => visit::visit_stmt(self, statement),
        }
    }

    /// Documentation and conditions use nothing.
    fn visit_attribute(&mut self, _attribute: &'ast Attribute) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&segments);
        visit::visit_path(self, path);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.text(&text.value());
    }

    fn visit_macro(&mut self, made: &'ast Macro) {
        let tokens = made.tokens.to_string();
        for name in self.crates.iter().filter(|name| tokens.contains(&format!("{name} ::"))) {
            self.path(&[(*name).to_owned()]);
        }
        tokens.split('"').skip(1).step_by(2).for_each(|text| self.text(text));
    }
}
