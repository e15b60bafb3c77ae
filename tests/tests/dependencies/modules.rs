//! The direction of imports between the modules of `curium-driver`: objects import from layers below them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use curium_tests::{TestResult, uses_cuda};
use syn::visit::{Visit, visit_path};
use syn::{Attribute, Item, ItemUse, UseTree};

/// The modules in layers from the bottom up. A module may import from its own layer and from lower layers.
const LAYERS: &[&[&str]] = &[
    // Errors and calls query the driver for the descriptions of its codes; the driver returns errors.
    &["base", "driver", "pointer"],
    &["device"],
    &["checkpoint", "context", "core_dump", "log", "profiler"],
    // A stream waits for events, an event is recorded on a stream, and hazard tracking orders streams by events.
    &["event", "hazard", "stream"],
    &[
        "completion",
        "device_resource",
        "graphics",
        "green_context",
        "host_function",
    ],
    &["image"],
    &["jit"],
    &["linker"],
    &["disk_cache"],
    // A kernel keeps its module or library loaded, and both look up kernels and variables.
    &["global", "kernel", "library", "module"],
    &["extend", "graph", "kernels_macro", "nvtx", "trace"],
];

/// Imports from a layer above, each with its reason.
const UPWARDS: &[(&str, &str, &str)] = &[(
    "driver",
    "trace",
    "an environment variable starts a trace when a driver is loaded",
)];

/// Returns the source directory of the driver crate.
fn sources() -> PathBuf {
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    Path::new(&root)
        .parent()
        .expect("the package lies in the workspace")
        .join("crates/driver/src")
}

/// Returns the items that `lib.rs` exports, each with its module.
fn exports(library: &syn::File) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for item in &library.items {
        let Item::Use(item) = item else { continue };
        for path in paths(&item.tree) {
            if let [first, module, .., name] = path.as_slice()
                && first == "self"
            {
                exports.insert(name.clone(), module.clone());
            }
        }
    }
    exports
}

/// Returns the paths of a `use`.
fn paths(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            let name = path.ident.to_string();
            paths(&path.tree)
                .into_iter()
                .map(|path| [vec![name.clone()], path].concat())
                .collect()
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(paths).collect(),
    }
}

/// Collects the names that a file uses after `crate::`, outside of its tests.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'a> Visit<'a> for Names {
    fn visit_item(&mut self, item: &'a Item) {
        let tests = match item {
            Item::Mod(item) => is_test(&item.attrs),
            Item::Use(item) => is_test(&item.attrs),
            _ => false,
        };
        if !tests {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let used = paths(&item.tree)
            .into_iter()
            .filter(|path| path[0] == "crate" && path.len() > 1);
        self.0.extend(used.map(|path| path[1].clone()));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 && path.segments[0].ident == "crate" {
            self.0.insert(path.segments[1].ident.to_string());
        }
        visit_path(self, path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|name| name == "test")
    })
}

/// Returns every Rust file below `folder`, without test modules.
fn files(folder: &Path) -> TestResult<Vec<PathBuf>> {
    let mut files_below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_below.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files_below.push(path);
        }
    }
    Ok(files_below)
}

/// Returns the top-level module of the crate that a file belongs to.
fn module(file: &Path, root: &Path) -> TestResult<String> {
    let first = file
        .strip_prefix(root)?
        .components()
        .next()
        .ok_or("it has a name")?;
    Ok(first
        .as_os_str()
        .to_string_lossy()
        .trim_end_matches(".rs")
        .to_owned())
}

fn parse(file: &Path) -> TestResult<syn::File> {
    let text = fs::read_to_string(file)?;
    Ok(syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

/// Returns the modules that each module imports, with the first file that imports it.
fn imports() -> TestResult<BTreeMap<(String, String), PathBuf>> {
    let root = sources();
    let exports = exports(&parse(&root.join("lib.rs"))?);
    let mut imports = BTreeMap::new();
    for file in files(&root)?
        .into_iter()
        .filter(|file| !file.ends_with("lib.rs"))
    {
        let mut names = Names::default();
        names.visit_file(&parse(&file)?);
        let from = module(&file, &root)?;
        for name in names.0 {
            let to = exports.get(&name).cloned().unwrap_or(name);
            if to != from {
                imports
                    .entry((from.clone(), to))
                    .or_insert_with(|| file.clone());
            }
        }
    }
    Ok(imports)
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn modules_import_lower_layers() -> TestResult {
    if uses_cuda() {
        return Ok(());
    }
    let imports = imports()?;
    assert!(
        imports.len() > 100,
        "only {} imports were found",
        imports.len()
    );
    for ((from, to), file) in &imports {
        let own_layer = layer(from).unwrap_or_else(|| panic!("module `{from}` has no layer"));
        let named = UPWARDS
            .iter()
            .any(|(upper, lower, _)| (upper, lower) == (&from.as_str(), &to.as_str()));
        let is_upward = layer(to).is_some_and(|imported| imported > own_layer);
        assert!(
            !is_upward || named,
            "{}: `{from}` imports `{to}`, which is in a layer above",
            file.display()
        );
    }
    Ok(())
}

#[test]
fn listed_modules_exist() -> TestResult {
    if uses_cuda() {
        return Ok(());
    }
    let root = sources();
    let imports = imports()?;
    for module in LAYERS.iter().copied().flatten() {
        assert!(
            root.join(format!("{module}.rs")).exists(),
            "there is no module `{module}`"
        );
    }
    for (from, to, _) in UPWARDS {
        assert!(
            imports.contains_key(&((*from).to_owned(), (*to).to_owned())),
            "`{from}` does not import `{to}`"
        );
    }
    Ok(())
}
