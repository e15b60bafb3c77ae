//! The Rust source of kernels: a module of a package, or a whole package.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use syn::spanned::Spanned as _;

use crate::error::{Error, Result};

/// The module around a module of kernels in a generated crate.
pub(crate) const SOURCE: &str = "__source";

/// The code that is compiled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// `mod name { … }` or `mod name;` in `file`.
    Module { file: PathBuf, name: String },
    /// The library of the package.
    Package,
}

/// The source, as the root of a crate for the device.
#[derive(Debug)]
pub(crate) struct Root {
    /// The file of the crate's root.
    pub(crate) file: RootFile,
    /// The file that the user wrote, relative to the package.
    pub(crate) shown: PathBuf,
    /// The text of the kernels, which is what the prebuilt PTX belongs to. It does not include code
    /// of the host around a module.
    pub(crate) text: String,
    /// Paths of the kernels that the source declares, such as `kernels::saxpy`.
    pub(crate) kernels: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum RootFile {
    /// A text with the module, on its lines of the user's file.
    Generated(String),
    /// A text that declares the module, whose file is that of the package.
    Declaration(String),
    /// A file of the package.
    Existing(PathBuf),
}

impl Source {
    /// The name of the files with the result.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Module { name, .. } => name,
            Self::Package => "kernels",
        }
    }

    /// Returns the error if another source of the package has the same name, by which
    /// `include_kernels!` selects it.
    pub(crate) fn conflict(&self, compiled: &[Self]) -> Option<String> {
        let other = compiled
            .iter()
            .find(|other| other.name() == self.name() && *other != self)?;
        Some(format!(
            "two modules of kernels are called `{}`: one is in {other}, the other in {self}; give one of them another name",
            self.name()
        ))
    }

    /// Reads the source in the folder of a package, whose library is `library`.
    pub(crate) fn read(&self, package: &Path, library: Option<&Path>) -> Result<Root> {
        match self {
            Self::Module { file, name } => read_module(package, file, name),
            Self::Package => {
                let library = library.ok_or_else(|| {
                    Error::Source(format!("{}: the package has no library", package.display()))
                })?;
                let text = read(library)?;
                let mut kernels = Vec::new();
                collect_kernels(
                    &parse(library, &text)?.items,
                    parent(library),
                    "",
                    &mut kernels,
                )?;
                Ok(Root {
                    file: RootFile::Existing(library.to_owned()),
                    shown: relative(library, package),
                    text,
                    kernels,
                })
            }
        }
    }
}

/// The position of the source in the package.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Module { file, .. } => write!(f, "{}", file.display()),
            Self::Package => f.write_str("the package's library"),
        }
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::file(path))
}

fn parse(path: &Path, text: &str) -> Result<syn::File> {
    syn::parse_file(text).map_err(|error| {
        let start = error.span().start();
        Error::Source(format!(
            "{}:{}:{}: {error}",
            path.display(),
            start.line,
            start.column + 1
        ))
    })
}

/// Returns a path relative to a folder, with `/` between its parts.
pub(crate) fn relative(path: &Path, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

fn read_module(package: &Path, file: &Path, name: &str) -> Result<Root> {
    let path = package.join(file);
    let text = read(&path)?;
    let syntax = parse(&path, &text)?;
    let modules: Vec<&syn::ItemMod> = syntax
        .items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Mod(module) if module.ident == name => Some(module),
            _ => None,
        })
        .collect();
    let [module] = modules[..] else {
        let problem = if modules.is_empty() {
            "there is no"
        } else {
            "there are several"
        };
        return Err(Error::Source(format!(
            "{}: {problem} `mod {name}` at the top level of the file",
            file.display()
        )));
    };
    let mut kernels = Vec::new();
    let folder = module_folder(&path);
    let Some((_, items)) = &module.content else {
        let file = module_file(module, &folder, name)?;
        let text = read(&file)?;
        let items = parse(&file, &text)?.items;
        collect_kernels(
            &items,
            &module_folder(&file),
            &format!("{name}::"),
            &mut kernels,
        )?;
        return Ok(Root {
            // The module is a child of an inline module with the folder of its parent, so that its
            // own submodules are found where the host finds them.
            file: RootFile::Declaration(format!(
                "#![no_std]\n#[path = {:?}]\nmod {SOURCE} {{\n    {}pub mod {name};\n}}\npub use {SOURCE}::*;\n",
                folder.display().to_string(),
                path_attribute(module)
                    .map(|path| format!("#[path = {path:?}] "))
                    .unwrap_or_default(),
            )),
            shown: relative(&file, package),
            text,
            kernels,
        });
    };
    collect_kernels(
        items,
        &folder.join(name),
        &format!("{name}::"),
        &mut kernels,
    )?;
    let range = module.span().byte_range();
    let module_text = text
        .get(range.clone())
        .ok_or_else(|| Error::Source(format!("{}: `mod {name}` has no text", file.display())))?;
    Ok(Root {
        file: RootFile::Generated(generated(&text, range.start, module_text, &folder)),
        shown: file.to_owned(),
        text: module_text.to_owned(),
        kernels,
    })
}

/// Returns a crate that contains the module only, on the same lines and in the same columns as in
/// its file.
fn generated(text: &str, start: usize, module: &str, folder: &Path) -> String {
    // Submodules of the module are found where the host finds them.
    let attributes = format!("#![no_std] #[path = {:?}]", folder.display().to_string());
    let before = &text[..start];
    let lines = before.matches('\n').count();
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count();
    let visibility = if module.starts_with("mod ") {
        "pub "
    } else {
        ""
    };
    let inner = format!("{visibility}{module}");
    if lines == 0 {
        return format!("{attributes} mod {SOURCE} {{ {inner} }} pub use {SOURCE}::*;\n");
    }
    let padding = " ".repeat(column.saturating_sub(visibility.len()));
    format!(
        "{attributes} mod {SOURCE} {{{}{padding}{inner}}}\npub use {SOURCE}::*;\n",
        "\n".repeat(lines)
    )
}

fn path_attribute(module: &syn::ItemMod) -> Option<String> {
    module
        .attrs
        .iter()
        .find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(path),
                    ..
                }) => Some(path.value()),
                _ => None,
            },
            _ => None,
        })
}

/// Returns the folder in which the modules of a file are.
fn module_folder(file: &Path) -> PathBuf {
    let folder = parent(file);
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("main" | "lib" | "mod") | None => folder.to_owned(),
        Some(_) if is_crate_root(file) => folder.to_owned(),
        Some(stem) => folder.join(stem),
    }
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Files in these folders are roots of crates.
fn is_crate_root(file: &Path) -> bool {
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .and_then(|folder| folder.to_str());
    matches!(folder, Some("bin" | "examples" | "tests" | "benches"))
}

fn module_file(module: &syn::ItemMod, folder: &Path, name: &str) -> Result<PathBuf> {
    let candidates = match path_attribute(module) {
        Some(path) => vec![folder.join(path)],
        None => vec![
            folder.join(format!("{name}.rs")),
            folder.join(name).join("mod.rs"),
        ],
    };
    let file = candidates.iter().find(|file| file.exists()).cloned();
    file.ok_or_else(|| {
        Error::Source(format!(
            "{}: there is no such file",
            candidates[0].display()
        ))
    })
}

/// Collects the paths of functions with the attribute `kernel`, also in files of modules. `folder`
/// is where modules of these items are.
fn collect_kernels(
    items: &[syn::Item],
    folder: &Path,
    prefix: &str,
    kernels: &mut Vec<String>,
) -> Result<()> {
    for item in items {
        match item {
            syn::Item::Fn(function) if function.attrs.iter().any(is_kernel_attribute) => {
                kernels.push(format!("{prefix}{}", function.sig.ident));
            }
            syn::Item::Mod(module) => {
                let name = module.ident.to_string();
                let prefix = format!("{prefix}{name}::");
                if let Some((_, items)) = &module.content {
                    collect_kernels(items, &folder.join(&name), &prefix, kernels)?;
                } else if let Ok(file) = module_file(module, folder, &name) {
                    // A file may be missing if the module is not compiled; otherwise rustc reports
                    // it.
                    let syntax = parse(&file, &read(&file)?)?;
                    collect_kernels(&syntax.items, &module_folder(&file), &prefix, kernels)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name by which the macros of the device crate refer to it.
const DEVICE_CRATE: &str = "curium_kernel";

/// Refuses another crate under the name of the device crate in the root of a crate: the macros'
/// `unsafe` code trusts it.
///
/// Only an item can give a crate that name, and no macro: rustc does not let an expansion shadow a
/// dependency.
pub(crate) fn check_crate_names(root: &Path) -> Result<()> {
    let Ok(text) = fs::read_to_string(root) else {
        return Ok(());
    };
    if !text.contains(DEVICE_CRATE) || !text.contains("extern") {
        return Ok(());
    }
    // rustc reports errors of syntax.
    let Ok(syntax) = syn::parse_file(&text) else {
        return Ok(());
    };
    for item in &syntax.items {
        if let syn::Item::ExternCrate(item) = item
            && let Some((_, name)) = &item.rename
            && name == DEVICE_CRATE
            && item.ident != DEVICE_CRATE
        {
            return Err(Error::Source(format!(
                "{}:{}: the crate `{}` is called `{DEVICE_CRATE}`, by which `#[kernel]` refers to the device crate",
                root.display(),
                item.ident.span().start().line,
                item.ident
            )));
        }
    }
    Ok(())
}

fn is_kernel_attribute(attribute: &syn::Attribute) -> bool {
    let segments = &attribute.path().segments;
    segments
        .last()
        .is_some_and(|segment| segment.ident == "kernel")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    fn read_text(text: &str) -> std::result::Result<Root, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("src"))?;
        fs::write(folder.path().join("src/main.rs"), text)?;
        let source = Source::Module {
            file: PathBuf::from("src/main.rs"),
            name: "kernels".to_owned(),
        };
        Ok(source.read(folder.path(), None)?)
    }

    /// The result of a source has its name: two sources of one name would replace each other's.
    #[test]
    fn two_sources_of_one_name_conflict() {
        let module = |file: &str, name: &str| Source::Module {
            file: PathBuf::from(file),
            name: name.to_owned(),
        };
        let first = module("src/bin/a.rs", "kernels");
        let compiled = [module("src/lib.rs", "other"), first.clone()];
        assert_eq!(
            module("src/bin/b.rs", "kernels").conflict(&compiled),
            Some("two modules of kernels are called `kernels`: one is in src/bin/a.rs, the other in src/bin/b.rs; give one of them another name".to_owned())
        );
        let message = Source::Package.conflict(&compiled);
        assert!(
            message.is_some_and(|message| message.contains("the other in the package's library"))
        );
        assert_eq!(module("src/bin/b.rs", "sort").conflict(&compiled), None);
        assert_eq!(first.conflict(&compiled), None);
    }

    /// A comment or a string with the text of a module is no module.
    #[test]
    fn modules_are_found_by_syntax() -> Result {
        let text = "// mod kernels { evil }\nconst X: &str = \"mod kernels { evil }\";\n\n  mod kernels {\n    #[kernel]\n    pub fn saxpy() {}\n    mod a { #[curium_kernel::kernel] fn b() {} }\n}\nfn main() {}\n";
        let root = read_text(text)?;
        assert_eq!(root.kernels, ["kernels::saxpy", "kernels::a::b"]);
        assert!(root.text.starts_with("mod kernels {") && root.text.ends_with('}'));
        let RootFile::Generated(generated) = root.file else {
            return Err("a generated file".into());
        };
        let lines: Vec<&str> = generated.lines().collect();
        assert_eq!(lines[4], "    #[kernel]");
        assert!(lines[3].ends_with("mod kernels {"), "{:?}", lines[3]);
        assert!(!generated.contains("evil") && !generated.contains("main"));
        Ok(())
    }

    #[test]
    fn missing_and_ambiguous_modules_are_errors() {
        for text in [
            "fn main() {}",
            "mod kernels {} #[cfg(x)] mod kernels {}",
            "mod kernels {",
        ] {
            assert!(read_text(text).is_err(), "{text}");
        }
    }

    /// Modules in files have the paths that they have on the host.
    #[test]
    fn modules_in_files_are_followed() -> Result {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("src");
        fs::create_dir_all(source.join("kernels/linear"))?;
        fs::write(source.join("lib.rs"), "mod kernels;\n")?;
        fs::write(
            source.join("kernels.rs"),
            "mod linear;\n#[cfg(never)] mod missing;\n#[kernel] fn a() {}\n",
        )?;
        fs::write(
            source.join("kernels/linear.rs"),
            "#[kernel] fn b() {}\nmod inner { mod deep; }\n",
        )?;
        fs::create_dir_all(source.join("kernels/linear/inner"))?;
        fs::write(
            source.join("kernels/linear/inner/deep.rs"),
            "#[kernel] fn c() {}\n",
        )?;
        let expected = [
            "kernels::linear::b",
            "kernels::linear::inner::deep::c",
            "kernels::a",
        ];
        let library = source.join("lib.rs");
        assert_eq!(
            Source::Package.read(folder.path(), Some(&library))?.kernels,
            expected
        );
        let module = Source::Module {
            file: PathBuf::from("src/lib.rs"),
            name: "kernels".to_owned(),
        };
        assert_eq!(module.read(folder.path(), None)?.kernels, expected);
        Ok(())
    }

    /// The macros trust the crate `curium_kernel`.
    #[test]
    fn other_crates_are_not_called_like_the_device_crate() -> Result {
        let folder = tempfile::tempdir()?;
        let root = folder.path().join("lib.rs");
        for (text, is_allowed) in [
            ("extern crate self as curium_kernel;", false),
            ("extern crate mine\n    as curium_kernel;", false),
            ("extern crate curium_kernel;", true),
            ("extern crate curium_kernel as kernel;", true),
            ("// extern crate self as curium_kernel;", true),
            ("mod a { extern crate self as curium_kernel; }", true),
        ] {
            fs::write(&root, text)?;
            assert_eq!(check_crate_names(&root).is_ok(), is_allowed, "{text}");
        }
        Ok(check_crate_names(&folder.path().join("missing.rs"))?)
    }

    #[test]
    fn syntax_errors_have_their_place() {
        let error = read_text("fn main() {}\nmod kernels { fn }\n").err();
        assert!(error.is_some_and(|error| error.to_string().contains("main.rs:2:")));
    }
}
