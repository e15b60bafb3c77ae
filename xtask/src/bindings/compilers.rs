//! The bindings of NVRTC and nvJitLink: generated from their newest headers, and compared with those of every version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::allowed::Allowed;
use super::difference::{Difference, compare};
use super::generate::{FIRST_LINE, render_signature, render_types, rustfmt};
use super::header::{Clang, Header, declarations_of};
use super::surface::Surface;
use crate::package::{CudaVersion, Pins};
use crate::stale;
use crate::version::Version;

/// A library that compiles or links code for devices.
struct Compiler {
    /// The name of its folder, and of the macro that lists its functions.
    name: &'static str,
    header: &'static str,
    /// The pattern of the library's own declarations.
    items: &'static str,
    pins: fn(&Pins) -> &[CudaVersion],
}

const COMPILERS: [Compiler; 2] = [
    Compiler { name: "nvrtc", header: "nvrtc.h", items: "_?(nvrtc|NVRTC)[A-Za-z_0-9]*", pins: |pins| &pins.nvrtc },
    Compiler {
        name: "nvjitlink",
        header: "nvJitLink.h",
        items: "(__)?(nvJitLink|NVJITLINK)[A-Za-z_0-9]*",
        pins: |pins| &pins.nvjitlink,
    },
];

/// The headers of each of [`COMPILERS`] by version.
pub(crate) struct Headers(Vec<BTreeMap<Version, Header>>);

/// Returns the pinned headers of `versions`, or of all if none is given.
pub(crate) fn parse(clang: &Clang, pins: &Pins, versions: &[Version]) -> Result<Headers> {
    let wanted = |cuda: &&CudaVersion| versions.is_empty() || versions.contains(&cuda.version);
    let parse = |compiler: &Compiler| {
        let pinned = (compiler.pins)(pins).iter().filter(wanted);
        pinned.map(|cuda| Ok((cuda.version, compiler.parse(clang, cuda)?))).collect()
    };
    Ok(Headers(COMPILERS.iter().map(parse).collect::<Result<_>>()?))
}

/// Returns the generated files, with the text that they must have. The headers are those of all versions.
pub(crate) fn render(headers: &Headers) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for (compiler, headers) in COMPILERS.iter().zip(&headers.0) {
        let newest = headers.values().next_back().context("a compiler is pinned")?;
        let folder = compiler.folder();
        files.insert(folder.join("types.rs"), render_types(newest)?);
        files.insert(folder.join("functions.rs"), compiler.render_functions(headers)?);
    }
    Ok(files)
}

/// Returns a line for each error in the generated files.
pub(crate) fn check(clang: &Clang, pins: &Pins, versions: &[Version], repair: &str) -> Result<Vec<String>> {
    let headers = parse(clang, pins, versions)?;
    let allowed = Allowed::read(&crate::root().join("xtask/allowed-differences-compilers.toml"))?;
    let mut reasons = Vec::new();
    for (version, differences) in differences(&headers)? {
        let verdict = allowed.judge(version, differences);
        reasons.extend(verdict.not_allowed.iter().map(ToString::to_string));
        reasons.extend(verdict.stale);
    }
    // The versions that introduced functions follow only from all headers together.
    if versions.is_empty()
        && let Err(error) = stale::check(&render(&headers)?, repair)
    {
        reasons.push(error.to_string());
    }
    let count: usize = headers.0.iter().map(BTreeMap::len).sum();
    println!("{count} headers of NVRTC and nvJitLink were compared with the bindings");
    Ok(reasons)
}

/// Returns the differences of each version from our bindings, for all compilers.
fn differences(headers: &Headers) -> Result<BTreeMap<Version, Vec<Difference>>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for (compiler, headers) in COMPILERS.iter().zip(&headers.0) {
        let (ours, since) = Surface::read_generated(&compiler.folder())?;
        for (version, header) in headers {
            found.entry(*version).or_default().extend(compare(*version, &header.surface, &ours, &since));
        }
    }
    Ok(found)
}

impl Compiler {
    fn folder(&self) -> PathBuf {
        crate::root().join("crates/nvrtc/src/generated").join(self.name)
    }

    fn parse(&self, clang: &Clang, cuda: &CudaVersion) -> Result<Header> {
        let path = cuda.package.header(self.header)?;
        let text = declarations_of(clang, &path, self.items)?;
        let mut header = Header::read(text).with_context(|| path.display().to_string())?;
        let functions = std::mem::take(&mut header.surface.functions);
        header.surface.functions = functions.into_iter().map(|(name, function)| unversioned(&name, function)).collect();
        Ok(header)
    }

    /// Returns the list of the functions of all versions, as a macro that passes it to a callback macro.
    fn render_functions(&self, headers: &BTreeMap<Version, Header>) -> Result<String> {
        let since = since(headers);
        let functions: BTreeMap<_, _> = headers.values().flat_map(|header| &header.surface.functions).collect();
        let macro_name = format!("for_each_{}_function", self.name);
        let mut text = format!(
            "{FIRST_LINE}/// Calls `$callback!` with every function of the library: `fn name(parameter: Type, …) -> Type = since;`, where\n\
             /// `since` is the CUDA version that introduced it (1000 × major + 10 × minor).\n\
             macro_rules! {macro_name} {{\n    ($callback:ident) => {{\n        $callback! {{\n"
        );
        for (name, signature) in functions {
            let signature = render_signature(signature)?.replace("$crate::", "");
            writeln!(text, "            {signature} = {};", since[name].raw())?;
        }
        write!(text, "        }}\n    }};\n}}\n\npub(crate) use {macro_name};\n")?;
        rustfmt(&text)
    }
}

/// Returns the first version that has each function.
fn since(headers: &BTreeMap<Version, Header>) -> BTreeMap<String, Version> {
    let mut since = BTreeMap::new();
    for (version, header) in headers {
        for name in header.surface.functions.keys() {
            since.entry(name.clone()).or_insert(*version);
        }
    }
    since
}

/// Renames `__nvJitLinkCreate_12_4`, which nvJitLink declares and exports for each compatible version, to
/// `nvJitLinkCreate`.
fn unversioned(symbol: &str, mut signature: syn::Signature) -> (String, syn::Signature) {
    let name = match symbol.strip_prefix("__") {
        Some(name) => name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_'),
        None => symbol,
    };
    signature.ident = syn::Ident::new(name, signature.ident.span());
    (name.to_owned(), signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(text: &str) -> syn::Signature {
        syn::parse_str(text).expect("it is a signature")
    }

    #[test]
    fn version_in_a_symbol_is_taken_off() {
        let (name, function) = unversioned("__nvJitLinkCreate_12_0", signature("fn __nvJitLinkCreate_12_0()"));
        assert_eq!((name.as_str(), function.ident.to_string().as_str()), ("nvJitLinkCreate", "nvJitLinkCreate"));
        assert_eq!(unversioned("nvJitLinkVersion", signature("fn nvJitLinkVersion()")).0, "nvJitLinkVersion");
    }

    #[test]
    fn function_dates_from_the_first_version_that_declares_it() {
        let header = |text: &str| Header::read(text.to_owned()).expect("it is Rust");
        let headers = BTreeMap::from([
            (Version::from_raw(11080), header("unsafe extern \"C\" { pub fn old() -> u32; }")),
            (Version::from_raw(12000), header("unsafe extern \"C\" { pub fn old() -> u32; pub fn new() -> u32; }")),
        ]);
        let since = since(&headers);
        assert_eq!((since["old"].raw(), since["new"].raw()), (11080, 12000));
    }
}
