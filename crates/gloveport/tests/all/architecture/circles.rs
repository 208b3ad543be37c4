//! Files of a crate that use each other in a ring.
//!
//! A file uses another one if a path in it, or a private import, leads to something that is defined there. Re-exports are
//! followed to where a name is defined, and use nothing themselves; neither does a declaration of a module. Tests do not
//! count.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, ImplItemFn, Item, ItemUse, Macro, UseTree, Visibility,
    ext::IdentExt as _,
    visit::{self, Visit},
};

/// One use: from a file to another one, with the path that leads there.
pub(crate) type Edges = BTreeMap<(PathBuf, PathBuf), String>;

/// Rings of more than three files, with the uses in each.
pub(crate) fn large_circles(crate_directory: &Path) -> Vec<Edges> {
    let mut found = Vec::new();
    for root in ["src/lib.rs", "src/main.rs"].map(|root| crate_directory.join(root)) {
        if root.is_file() {
            let edges = uses(&root);
            found.extend(rings(&edges).into_iter().filter(|ring| ring.len() > 3).map(|ring| {
                let inside = |(from, to): &(PathBuf, PathBuf)| ring.contains(from) && ring.contains(to);
                edges.iter().filter(|(edge, _)| inside(edge)).map(|(edge, path)| (edge.clone(), path.clone())).collect()
            }));
        }
    }
    found
}

/// What stands in one module.
#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
    /// Names that stand for a path.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths all of whose names are known here.
    globs: Vec<Vec<String>>,
    /// Paths that are used.
    paths: BTreeSet<Vec<String>>,
}

/// Where a path leads.
enum Target {
    Module(usize),
    /// Something that is defined in this module.
    Item(usize),
}

#[derive(Default)]
struct Modules(Vec<Module>);

/// All uses between the files of a crate.
fn uses(root: &Path) -> Edges {
    let mut modules = Modules::default();
    modules.read_file(root, None, root.parent().unwrap());
    let mut edges = Edges::new();
    for (number, module) in modules.0.iter().enumerate() {
        for path in &module.paths {
            let Some(Target::Item(target)) = modules.resolve(number, path, 0) else { continue };
            let target = &modules.0[target].file;
            if *target != module.file {
                edges.entry((module.file.clone(), target.clone())).or_insert_with(|| path.join("::"));
            }
        }
    }
    edges
}

impl Modules {
    /// Reads a file and what is declared in it, whose files are in `below`.
    fn read_file(&mut self, file: &Path, parent: Option<usize>, below: &Path) -> usize {
        let text = fs::read_to_string(file);
        assert!(text.is_ok(), "{}: {text:?}", file.display());
        let parsed = syn::parse_file(&text.unwrap());
        assert!(parsed.is_ok(), "{}: {:?}", file.display(), parsed.err());
        self.read_items(file, parent, below, &parsed.unwrap().items)
    }

    fn read_items(&mut self, file: &Path, parent: Option<usize>, below: &Path, items: &[Item]) -> usize {
        let number = self.0.len();
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        for item in items {
            let Item::Mod(declared) = item else {
                self.0[number].defined.extend(name(item));
                Reader(&mut self.0[number]).visit_item(item);
                continue;
            };
            if is_test(&declared.attrs) {
                continue;
            }
            let name = declared.ident.unraw().to_string();
            let inner = below.join(&name);
            let child = if let Some((_, items)) = &declared.content {
                self.read_items(file, Some(number), &inner, items)
            } else {
                let beside = below.join(format!("{name}.rs"));
                let found = if beside.is_file() { beside } else { inner.join("mod.rs") };
                self.read_file(&found, Some(number), &inner)
            };
            self.0[number].children.insert(name, child);
        }
        number
    }

    /// Follows a path from a module. A path out of the crate leads nowhere.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let begin = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.0[from].parent?),
            name => self.lookup(from, name, depth)?,
        };
        rest.iter().try_fold(begin, |at, name| match at {
            Target::Item(_) => Some(at),
            Target::Module(module) if name == "super" => self.0[module].parent.map(Target::Module),
            Target::Module(module) => self.lookup(module, name, depth),
        })
    }

    /// What a name means in a module.
    fn lookup(&self, module: usize, name: &str, depth: usize) -> Option<Target> {
        if depth > 16 {
            return None;
        }
        let known = &self.0[module];
        if let Some(child) = known.children.get(name) {
            return Some(Target::Module(*child));
        }
        if known.defined.contains(name) {
            return Some(Target::Item(module));
        }
        match known.imports.get(name) {
            // A name of another crate: `use name::name`.
            Some(path) if path.len() == 1 && path[0] == name => None,
            Some(path) => self.resolve(module, path, depth + 1),
            None => known.globs.iter().find_map(|glob| match self.resolve(module, glob, depth + 1)? {
                Target::Module(target) if target != module => self.lookup(target, name, depth + 1),
                Target::Module(_) | Target::Item(_) => None,
            }),
        }
    }
}

/// Takes the paths out of an item.
struct Reader<'a>(&'a mut Module);

impl Reader<'_> {
    fn import(&mut self, tree: &UseTree, before: &[String], is_private: bool) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            // `use x::{self}` is a use of `x`.
            path.extend((before.is_empty() || name != "self").then(|| name.unraw().to_string()));
            path
        };
        let (name, path) = match tree {
            UseTree::Path(tree) => return self.import(&tree.tree, &with(&tree.ident), is_private),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before, is_private));
            }
            UseTree::Glob(_) => return self.0.globs.push(before.to_vec()),
            UseTree::Name(tree) => (with(&tree.ident).last().cloned(), with(&tree.ident)),
            UseTree::Rename(tree) => (Some(tree.rename.unraw().to_string()), with(&tree.ident)),
        };
        if is_private {
            self.0.paths.insert(path.clone());
        }
        // A trait that is imported for its methods only has no name.
        self.0.imports.extend(name.filter(|name| name != "_").map(|name| (name, path)));
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).is_some_and(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &[], matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.paths.insert(path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        // What a macro makes of its input is not known; what looks like a path in there is one.
        let text = invoked.tokens.to_string().replace(" :: ", "::");
        let words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
        for word in words.filter(|word| word.contains("::")) {
            self.0.paths.insert(word.split("::").map(str::to_owned).collect());
        }
    }
}

/// The name that an item defines.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.unraw().to_string())
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

/// Whether something is there for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Strongly connected files, by Tarjan's algorithm.
fn rings(edges: &Edges) -> Vec<BTreeSet<PathBuf>> {
    let mut search = Search::new(edges);
    for (file, _) in edges.keys() {
        if !search.seen.contains_key(file.as_path()) {
            search.visit(file);
        }
    }
    search.rings
}

struct Search<'a> {
    edges: &'a Edges,
    /// When a file was visited first, and the earliest file on the stack that it leads to.
    seen: BTreeMap<&'a Path, (usize, usize)>,
    stack: Vec<&'a Path>,
    rings: Vec<BTreeSet<PathBuf>>,
}

impl<'a> Search<'a> {
    fn new(edges: &'a Edges) -> Self {
        Self { edges, seen: BTreeMap::new(), stack: Vec::new(), rings: Vec::new() }
    }

    fn visit(&mut self, file: &'a Path) -> usize {
        let number = self.seen.len();
        self.seen.insert(file, (number, number));
        self.stack.push(file);
        let mut earliest = number;
        for (_, to) in self.edges.keys().filter(|(from, _)| from == file) {
            earliest = earliest.min(match self.seen.get(to.as_path()) {
                None => self.visit(to),
                Some((visited, _)) if self.stack.contains(&to.as_path()) => *visited,
                Some(_) => continue,
            });
        }
        self.seen.insert(file, (number, earliest));
        if earliest == number {
            let begin = self.stack.iter().position(|on_stack| *on_stack == file).unwrap();
            self.rings.push(self.stack.drain(begin..).map(Path::to_owned).collect());
        }
        earliest
    }
}
