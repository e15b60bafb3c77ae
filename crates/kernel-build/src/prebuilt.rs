//! PTX that is committed beside the source.
//!
//! It is for builds without the parts of a toolchain that compile kernels: on docs.rs, with an old
//! Rust, from a published package. Its first lines record what it was compiled from. The text is
//! the same on every machine.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128 as _, SipHasher24};

use crate::Kernels;
use crate::compile::{Compiled, without_lines};
use crate::error::{Error, Result};
use crate::feature;
use crate::rewrite::Kernel;
use crate::source::{Root, relative};
use crate::target::Target;

/// The version of the form of the first lines.
const VERSION: u32 = 1;

const TITLE: &str = "// curium-kernels: ";
const COMPILER: &str = "// compiler: ";
const SOURCE: &str = "// source: ";
const KERNEL: &str = "// kernel: ";
const FEATURE: &str = "// feature: ";

/// Returns the file with the PTX for a target, beside the source.
pub(crate) fn path(options: &Kernels, package: &Path, root: &Root, target: &Target) -> PathBuf {
    let folder = package.join(&root.shown);
    let folder = folder.parent().unwrap_or(package);
    folder.join(format!("{}.{target}.ptx", options.source.name()))
}

/// Returns the hash of a text. Line ends do not count, because version control may change them.
fn hash(text: &str) -> String {
    let mut hasher = SipHasher24::new();
    for line in text.lines() {
        hasher.write(line.as_bytes());
        hasher.write(b"\n");
    }
    let hash = hasher.finish128();
    format!("{:016x}{:016x}", hash.h1, hash.h2)
}

/// Returns the texts of the prebuilt files.
pub(crate) fn render(
    options: &Kernels,
    package: &Path,
    root: &Root,
    compiled: &Compiled,
    compiler: &str,
) -> Result<Vec<(PathBuf, String)>> {
    let mut sources = vec![(root.shown.clone(), hash(&root.text))];
    let mut features = enabled_features(&root.text);
    for file in &compiled.files {
        let shown = relative(file, package);
        let is_own = !shown.is_absolute()
            && shown
                .extension()
                .is_some_and(|extension| extension != "toml" && extension != "lock");
        if is_own && shown != root.shown {
            let text = fs::read_to_string(file).map_err(Error::file(file))?;
            sources.push((shown, hash(&text)));
            features.extend(enabled_features(&text));
        }
    }
    sources.sort();
    let mut files = Vec::new();
    for (target, ptx) in &compiled.images {
        let (major, minor) = target.ptx_version();
        let mut text = format!(
            "{TITLE}{VERSION}; written by `CURIUM_KERNELS=update cargo build`, do not edit\n{COMPILER}{compiler}\n// options: {target}, PTX \
             {major}.{minor}{}\n",
            options.describe()
        );
        for (file, hash) in &sources {
            let file: Vec<_> = file
                .components()
                .map(|component| component.as_os_str().to_string_lossy())
                .collect();
            let _ = writeln!(text, "{SOURCE}{hash} {}", file.join("/"));
        }
        for feature in &features {
            let _ = writeln!(text, "{FEATURE}{feature}");
        }
        for kernel in &compiled.kernels {
            let table: String = kernel.table.iter().fold(String::new(), |mut table, byte| {
                let _ = write!(table, "{byte:02x}");
                table
            });
            let _ = writeln!(text, "{KERNEL}{} {table}", kernel.name);
        }
        text += &without_lines(ptx);
        files.push((path(options, package, root, target), text));
    }
    Ok(files)
}

/// Returns the enabled features that a source names. Other features do not change its code.
fn enabled_features(source: &str) -> BTreeSet<String> {
    let named = feature::named(source).into_iter();
    named
        .filter(|name| feature::is_enabled(name))
        .map(str::to_owned)
        .collect()
}

/// Writes the prebuilt files.
pub(crate) fn update(files: &[(PathBuf, String)]) -> Result<()> {
    for (path, text) in files {
        crate::toolchain::write(path, text)?;
    }
    Ok(())
}

/// Compares the prebuilt files with what was compiled.
pub(crate) fn check(files: &[(PathBuf, String)]) -> Result<()> {
    for (path, text) in files {
        let committed =
            fs::read_to_string(path).map_err(|error| stale(path, &error.to_string()))?;
        if hash(&committed) == hash(text) {
            continue;
        }
        let compiler = |text: &str| {
            split(text)
                .0
                .iter()
                .find_map(|line| line.strip_prefix(COMPILER).map(str::to_owned))
        };
        if let (Some(recorded), Some(current)) = (compiler(&committed), compiler(text))
            && recorded != current
        {
            return Err(stale(
                path,
                &format!("it was compiled with {recorded}, and this is {current}"),
            ));
        }
        let mut pairs = committed.lines().zip(text.lines()).enumerate();
        let problem = match pairs.find(|(_, (committed, compiled))| committed != compiled) {
            Some((index, (committed, compiled))) => {
                format!(
                    "line {} is `{committed}`, and the compiler writes `{compiled}`",
                    index + 1
                )
            }
            None => "its length differs from what the compiler writes".to_owned(),
        };
        return Err(stale(path, &problem));
    }
    Ok(())
}

fn stale(path: &Path, problem: &str) -> Error {
    Error::Prebuilt(format!(
        "{}: prebuilt PTX: {problem}; run `CURIUM_KERNELS=update cargo build` with the toolchain of the package",
        path.display()
    ))
}

/// Reads the prebuilt files, which must belong to the sources.
pub(crate) fn read(options: &Kernels, package: &Path, root: &Root) -> Result<Compiled> {
    let mut images = Vec::new();
    let mut kernels = Vec::new();
    let mut files = vec![package.join(&root.shown)];
    for target in &options.targets {
        let path = path(options, package, root, target);
        let text = fs::read_to_string(&path).map_err(|error| stale(&path, &error.to_string()))?;
        files.push(path.clone());
        let (header, ptx) = split(&text);
        let title = header.first().and_then(|line| line.strip_prefix(TITLE));
        if !title.is_some_and(|title| title.starts_with(&format!("{VERSION};"))) {
            return Err(stale(
                &path,
                "it was written by another version of curium-kernel-build",
            ));
        }
        let options_line = header
            .iter()
            .find_map(|line| line.strip_prefix("// options: "));
        let (major, minor) = target.ptx_version();
        if options_line
            != Some(&format!(
                "{target}, PTX {major}.{minor}{}",
                options.describe()
            ))
        {
            return Err(stale(&path, "it was compiled with other options"));
        }
        let mut features = BTreeSet::new();
        for line in &header {
            let Some((recorded, file)) = line
                .strip_prefix(SOURCE)
                .and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let source = package.join(file);
            let text = if Path::new(file) == root.shown {
                root.text.clone()
            } else {
                fs::read_to_string(&source)
                    .map_err(|error| stale(&path, &format!("{file}: {error}")))?
            };
            features.extend(enabled_features(&text));
            if recorded != hash(&text) {
                return Err(stale(
                    &path,
                    &format!("`{file}` has changed since it was compiled"),
                ));
            }
            files.push(source);
        }
        let recorded_features: BTreeSet<&str> = header
            .iter()
            .filter_map(|line| line.strip_prefix(FEATURE))
            .collect();
        if !features.iter().map(String::as_str).eq(recorded_features) {
            return Err(stale(&path, "it was compiled with other features"));
        }
        kernels.clear();
        for line in &header {
            if let Some(rest) = line.strip_prefix(KERNEL) {
                kernels.push(
                    kernel(rest).ok_or_else(|| stale(&path, "the table of a kernel is damaged"))?,
                );
            }
        }
        // Without tables, the host would compare nothing.
        if kernels.is_empty() {
            return Err(stale(&path, "it has no kernels"));
        }
        images.push((target.clone(), ptx.to_owned()));
    }
    files.sort();
    files.dedup();
    Ok(Compiled {
        images,
        kernels,
        files,
    })
}

/// Splits a text into the lines of its header, and the PTX.
fn split(text: &str) -> (Vec<&str>, &str) {
    let mut header = Vec::new();
    let mut rest = text;
    while let Some((line, tail)) = rest.split_once('\n') {
        let line = line.trim_end();
        if ![
            "// curium-kernels: ",
            COMPILER,
            "// options: ",
            SOURCE,
            FEATURE,
            KERNEL,
        ]
        .iter()
        .any(|prefix| line.starts_with(prefix))
        {
            break;
        }
        header.push(line);
        rest = tail;
    }
    (header, rest)
}

fn kernel(line: &str) -> Option<Kernel> {
    let (name, digits) = line.split_once(' ')?;
    let table = (0..digits.len() / 2)
        .map(|index| u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok());
    Some(Kernel {
        name: name.to_owned(),
        table: table.collect::<Option<Vec<u8>>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::RootFile;

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    fn root(text: &str) -> Root {
        Root {
            file: RootFile::Generated(String::new()),
            shown: PathBuf::from("src/main.rs"),
            text: text.to_owned(),
            kernels: Vec::new(),
        }
    }

    fn compiled() -> std::result::Result<Compiled, Error> {
        Ok(Compiled {
            images: vec![(
                Target::new("sm_80")?,
                ".version 7.8\n\t.loc\t1 2 3\n\tret;\n".to_owned(),
            )],
            kernels: vec![Kernel {
                name: "saxpy".to_owned(),
                table: vec![1, 0, 255],
            }],
            files: Vec::new(),
        })
    }

    /// The round trip keeps tables and PTX, without source lines; a change of the kernels or of the
    /// options is noticed, and a change of line ends is not.
    #[test]
    fn prebuilt_ptx_belongs_to_its_source() -> Result {
        let folder = tempfile::tempdir()?;
        let package = folder.path();
        fs::create_dir(package.join("src"))?;
        let options = Kernels::module("src/main.rs", "kernels").targets(["sm_80"]);
        let source = root("mod kernels {\n}\n");
        let files = render(&options, package, &source, &compiled()?, "rustc 1.98.0")?;
        assert!(read(&options, package, &source).is_err());
        assert!(check(&files).is_err());
        update(&files)?;
        check(&files)?;
        let prebuilt = read(&options, package, &source)?;
        assert_eq!(prebuilt.images[0].1, ".version 7.8\n\tret;\n");
        assert_eq!(prebuilt.kernels[0].table, [1, 0, 255]);
        assert!(read(&options, package, &root("mod kernels {\r\n}\r\n")).is_ok());
        let changed = read(&options, package, &root("mod kernels { }\n"));
        assert!(
            changed.is_err_and(|error| error.to_string().contains("`src/main.rs` has changed"))
        );
        // SAFETY: nothing is compiled.
        let contracted = unsafe { options.clone().contract(true) };
        assert!(read(&contracted, package, &source).is_err());
        let without_tables: String = files[0]
            .1
            .lines()
            .filter(|line| !line.starts_with(KERNEL))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(&files[0].0, without_tables)?;
        assert!(read(&options, package, &source).is_err());
        fs::write(&files[0].0, files[0].1.replace("ret", "trap"))?;
        let differs = check(&files);
        assert!(differs.is_err_and(|error| {
            error
                .to_string()
                .contains("`\ttrap;`, and the compiler writes `\tret;`")
        }));
        Ok(())
    }
}
