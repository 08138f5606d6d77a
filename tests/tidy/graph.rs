//! Which file imports from which: every path of a crate, resolved to the file that defines the name.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;
use crate::tokens::{Import, definitions, imports, inline_paths, tokens, used_words};

/// One file uses a name that another file of its crate defines.
#[derive(Debug)]
pub struct Arrow<'a> {
    /// The file that uses the name.
    pub from: &'a Source,
    /// The file that defines it.
    pub to: &'a Source,
    /// The offset of the first use in `from`.
    pub at: usize,
}

/// A file and the names in its module.
struct Module<'a> {
    file: &'a Source,
    defined: BTreeSet<String>,
    imports: Vec<Import>,
    paths: Vec<(usize, Vec<String>)>,
    used: BTreeSet<String>,
}

/// The module or item that a path names.
enum Target {
    Module(Vec<String>),
    /// The module whose file defines the name.
    Item(Vec<String>),
}

/// The modules of one crate by their path; tests are no part of it.
pub struct Graph<'a> {
    modules: BTreeMap<Vec<String>, Module<'a>>,
}

/// Longer chains of aliases are circles.
const MAX_ALIASES: usize = 16;

impl<'a> Graph<'a> {
    /// Reads the files under `folder`, the root of a crate.
    pub fn new(folder: &str, files: &'a [Source]) -> Self {
        let mut modules = BTreeMap::new();
        for file in files {
            let is_binary = file.path == format!("{folder}/main.rs");
            if file.shipped.is_empty() || is_binary || !file.is_under(&format!("{folder}/")) {
                continue;
            }
            let words = tokens(&file.shipped);
            let at_top = definitions(&words).into_iter().filter(|it| it.is_at_top);
            let module = Module {
                file,
                defined: at_top
                    .filter(|it| it.kind != "mod")
                    .map(|it| it.name)
                    .collect(),
                imports: imports(&words),
                paths: inline_paths(&words),
                used: used_words(&words).into_iter().map(str::to_owned).collect(),
            };
            let names = file.modules().into_iter().filter(|name| *name != "lib");
            modules.insert(names.map(str::to_owned).collect(), module);
        }
        Self { modules }
    }

    /// Returns every pair of files with its first use. A `pub use` of a name is no use of it, and neither is a
    /// path that ends at a module.
    pub fn arrows(&self) -> Vec<Arrow<'a>> {
        let mut found: BTreeMap<(&str, &str), Arrow<'a>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let is_used = |it: &&Import| !it.is_reexport || module.used.contains(&it.name);
            let imported = module.imports.iter().filter(is_used).map(|it| {
                let is_glob = it.name == "*";
                (it.at, self.target(path, &it.path, is_glob))
            });
            let inline = module
                .paths
                .iter()
                .map(|(at, segments)| (*at, self.target(path, segments, false)));
            for (at, target) in imported.chain(inline) {
                let Some(to) = target.filter(|to| !std::ptr::eq(*to, module.file)) else {
                    continue;
                };
                let from = module.file;
                let arrow = found
                    .entry((&from.path, &to.path))
                    .or_insert(Arrow { from, to, at });
                arrow.at = arrow.at.min(at);
            }
        }
        found.into_values().collect()
    }

    fn target(&self, from: &[String], path: &[String], is_glob: bool) -> Option<&'a Source> {
        match self.resolve(from, path, 0)? {
            Target::Item(module) => Some(self.modules.get(&module)?.file),
            Target::Module(module) if is_glob => Some(self.modules.get(&module)?.file),
            Target::Module(_) => None,
        }
    }

    /// Follows a path in the module `from`; `None` for paths of other crates.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Target> {
        if depth > MAX_ALIASES {
            return None;
        }
        let mut at = from.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|it| it == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let is_own =
                    self.child(&at, first).is_some() || self.alias(&at, first, path).is_some();
                if !is_own {
                    return None;
                }
            }
        }
        while let Some(name) = rest.first() {
            let is_last = rest.len() == 1;
            let alias = self.alias(&at, name, path);
            match self.child(&at, name) {
                // After `pub use boot::boot`, the last segment `boot` is the function and not the module.
                Some(child) if !is_last || (alias.is_none() && !self.defines(&at, name)) => {
                    at = child
                }
                _ => match alias {
                    None => return Some(self.through_globs(at, name, depth)),
                    Some(alias) => match self.resolve(&at, &alias.path, depth + 1)? {
                        Target::Module(module) => at = module,
                        item => return Some(item),
                    },
                },
            }
            rest = &rest[1..];
        }
        Some(Target::Module(at))
    }

    /// The name as an item of this module, or of a module that it imports with `*`.
    fn through_globs(&self, at: Vec<String>, name: &str, depth: usize) -> Target {
        let globs = self
            .modules
            .get(&at)
            .map_or(&[][..], |module| &module.imports);
        for glob in globs.iter().filter(|it| it.name == "*") {
            let Some(Target::Module(inner)) = self.resolve(&at, &glob.path, depth + 1) else {
                continue;
            };
            let path = [name.to_owned()];
            if self.defines(&inner, name) {
                return Target::Item(inner);
            }
            if let Some(found) = self.resolve(&inner, &path, depth + 1) {
                return found;
            }
        }
        Target::Item(at)
    }

    fn child(&self, at: &[String], name: &str) -> Option<Vec<String>> {
        let mut path = at.to_vec();
        path.push(name.to_owned());
        let next = self.modules.range(path.clone()..).next();
        let exists = next.is_some_and(|(other, _)| other.starts_with(&path));
        exists.then_some(path)
    }

    /// The import of this name, unless it is the very path that is being resolved.
    fn alias(&self, at: &[String], name: &str, path: &[String]) -> Option<&Import> {
        let imports = &self.modules.get(at)?.imports;
        imports.iter().find(|it| it.name == name && it.path != path)
    }

    fn defines(&self, at: &[String], name: &str) -> bool {
        self.modules
            .get(at)
            .is_some_and(|module| module.defined.contains(name))
    }
}
