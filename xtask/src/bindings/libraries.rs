//! The bindings of the libraries beside the driver: generated from their newest headers, and compared with those of every version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use proc_macro2::TokenTree;
use quote::ToTokens;

use super::allowed::Allowed;
use super::difference::{Difference, compare};
use super::generate::{self, FIRST_LINE, render_signature, render_types, rustfmt};
use super::header::{Clang, Header, library_declarations};
use super::routines;
use super::surface::{Surface, Versions};
use crate::package::{CudaVersion, Pins};
use crate::stale;
use crate::version::{Release, Version};

/// A library with a C interface of its own.
struct Library {
    /// The name of its folder, and of its module in `curium-sys`.
    name: &'static str,
    header: Declared,
    /// The product whose versions date the functions: CUDA, or the library if it follows no CUDA version.
    product: &'static str,
    /// The pattern of the library's own declarations.
    items: &'static str,
    /// The files that list functions. A function belongs to the last list whose prefix its name has.
    lists: &'static [List],
    pins: fn(&Pins) -> &[CudaVersion],
}

/// The header that declares a library.
enum Declared {
    /// This header of the package, which includes nothing of the CUDA toolkit.
    Alone(&'static str),
    /// Ours of this name in `xtask/include/libraries`, which includes those of the package and of the CUDA toolkit: the newest one
    /// if the library does not follow CUDA's versions.
    WithToolkit(&'static str),
}

/// A file that lists functions.
struct List {
    /// The name in the macro `for_each_NAME_function`.
    name: &'static str,
    file: &'static str,
    prefix: &'static str,
}

const LIBRARIES: [Library; 7] = [
    Library {
        name: "nvrtc",
        header: Declared::Alone("nvrtc.h"),
        product: "CUDA",
        items: "_?(nvrtc|NVRTC)[A-Za-z_0-9]*",
        lists: &[List {
            name: "nvrtc",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.nvrtc,
    },
    Library {
        name: "nvjitlink",
        header: Declared::Alone("nvJitLink.h"),
        product: "CUDA",
        items: "(__)?(nvJitLink|NVJITLINK)[A-Za-z_0-9]*",
        lists: &[List {
            name: "nvjitlink",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.nvjitlink,
    },
    Library {
        name: "cublas",
        header: Declared::WithToolkit("cublas_all.h"),
        product: "CUDA",
        items: "(cublas|CUBLAS)[A-Za-z_0-9]*",
        lists: &[
            List {
                name: "cublas",
                file: "functions.rs",
                prefix: "",
            },
            List {
                name: "cublaslt",
                file: "lt_functions.rs",
                prefix: "cublasLt",
            },
        ],
        pins: |pins| &pins.cublas,
    },
    Library {
        name: "curand",
        header: Declared::WithToolkit("curand_all.h"),
        product: "CUDA",
        items: "(curand|CURAND)[A-Za-z_0-9]*",
        lists: &[List {
            name: "curand",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.curand,
    },
    Library {
        name: "cufft",
        header: Declared::WithToolkit("cufft_all.h"),
        product: "CUDA",
        items: "(cufft|CUFFT)[A-Za-z_0-9]*",
        lists: &[List {
            name: "cufft",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.cufft,
    },
    // The activity API. The rest of CUPTI, such as hardware counters, has thousands of declarations.
    Library {
        name: "cupti",
        header: Declared::WithToolkit("cupti_all.h"),
        product: "CUDA",
        items: "cuptiActivity(RegisterCallbacks|Enable|Disable|FlushAll|GetNextRecord|GetNumDroppedRecords|SetAttribute)|\
                cupti(Subscribe|Unsubscribe|GetVersion|GetTimestamp|GetResultString|GetStreamIdEx|GetCallbackName)|\
                CUpti_Activity(Kernel7|Memcpy5|MemcpyPtoP4|Memset4|Memory3|Synchronization|API|FlushFlag\
                |MemoryOperationType|Flag)?|CUpti_CallbackDomain",
        lists: &[List {
            name: "cupti",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.cupti,
    },
    Library {
        name: "nccl",
        header: Declared::WithToolkit("nccl_all.h"),
        product: "NCCL",
        items: "(nccl|NCCL)[A-Za-z_0-9]*",
        lists: &[List {
            name: "nccl",
            file: "functions.rs",
            prefix: "",
        }],
        pins: |pins| &pins.nccl,
    },
];

/// The headers of each of [`LIBRARIES`] by version.
pub(crate) struct Headers(Vec<BTreeMap<Version, Header>>);

/// Returns the pinned headers of `versions`, or of all if none is given.
pub(crate) fn parse(clang: &Clang, pins: &Pins, versions: &[Version]) -> Result<Headers> {
    let mut headers = Vec::new();
    for library in &LIBRARIES {
        let mut releases = BTreeMap::new();
        for cuda in (library.pins)(pins) {
            if versions.is_empty() || versions.contains(&cuda.version) {
                releases.insert(cuda.version, library.parse(clang, pins, cuda)?);
            }
        }
        headers.push(releases);
    }
    Ok(Headers(headers))
}

/// Returns the generated files, with the text that they must have. The headers are those of all versions.
pub(crate) fn render(headers: &Headers) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for (library, headers) in LIBRARIES.iter().zip(&headers.0) {
        let newest = headers
            .values()
            .next_back()
            .context("a library is pinned")?;
        let folder = library.folder();
        files.insert(folder.join("types.rs"), render_types(newest)?);
        for (index, list) in library.lists.iter().enumerate() {
            let text = list.render(library.product, headers, |name| {
                library.list_index(name) == index
            })?;
            files.insert(folder.join(list.file), text);
        }
        if library.name == "cublas" {
            let path = crate::root().join("crates/sim-libraries/src/generated/routines.rs");
            files.insert(path, rustfmt(&routines::render(&functions(headers))?)?);
        }
    }
    Ok(files)
}

/// Returns a line for each error in the generated files.
pub(crate) fn check(
    clang: &Clang,
    pins: &Pins,
    versions: &[Version],
    repair: &str,
) -> Result<Vec<String>> {
    let headers = parse(clang, pins, versions)?;
    let allowed = Allowed::read(&crate::root().join("xtask/allowed-differences-libraries.toml"))?;
    let mut reasons = Vec::new();
    for (release, differences) in differences(&headers)? {
        let verdict = allowed.judge(release, differences);
        reasons.extend(verdict.not_allowed.iter().map(ToString::to_string));
        reasons.extend(verdict.stale);
    }
    // The versions that introduced functions follow only from all headers together.
    if versions.is_empty()
        && let Err(error) = stale::check(&render(&headers)?, repair)
    {
        reasons.push(error.to_string());
    }
    for (library, headers) in LIBRARIES.iter().zip(&headers.0) {
        println!(
            "{}: the headers of {} versions were compared with the bindings",
            library.name,
            headers.len()
        );
    }
    Ok(reasons)
}

/// Returns the differences of each release from our bindings, for all libraries.
fn differences(headers: &Headers) -> Result<BTreeMap<Release, Vec<Difference>>> {
    let mut differences = BTreeMap::<_, Vec<_>>::new();
    for (library, headers) in LIBRARIES.iter().zip(&headers.0) {
        let (ours, versions) = Surface::read_generated(&library.folder())?;
        for (version, header) in headers {
            let release = Release {
                product: library.product,
                version: *version,
            };
            differences.entry(release).or_default().extend(compare(
                release,
                &header.surface,
                &ours,
                &versions,
            ));
        }
    }
    Ok(differences)
}

impl Library {
    fn folder(&self) -> PathBuf {
        generate::folder().join(self.name)
    }

    /// Returns the index of the list that has the function `name`.
    fn list_index(&self, name: &str) -> usize {
        self.lists
            .iter()
            .rposition(|list| name.starts_with(list.prefix))
            .unwrap_or(0)
    }

    fn parse(&self, clang: &Clang, pins: &Pins, cuda: &CudaVersion) -> Result<Header> {
        let (path, folders) = match self.header {
            Declared::Alone(name) => (cuda.package.header(name)?, Vec::new()),
            Declared::WithToolkit(name) => {
                let ours = crate::root().join("xtask/include/libraries");
                let toolkit = if self.product == "CUDA" {
                    pins.cuda(cuda.version)?
                } else {
                    pins.newest()?
                };
                let toolkit = toolkit.include()?;
                (
                    ours.join(name),
                    vec![ours, cuda.package.headers()?, toolkit],
                )
            }
        };
        let declarations = library_declarations(clang, &path, &folders, self.items)?;
        let text = without_bit_fields(&without_versions(&declarations))?;
        let mut header =
            Header::read(text).with_context(|| format!("{} {}", self.name, cuda.version))?;
        let functions = std::mem::take(&mut header.surface.functions);
        header.surface.functions = functions
            .into_iter()
            .map(|(name, function)| unversioned(&name, function))
            .collect();
        Ok(header)
    }
}

impl List {
    /// Returns the list of the functions that any version has, as a macro that hands it to a callback macro.
    fn render(
        &self,
        product: &str,
        headers: &BTreeMap<Version, Header>,
        is_listed: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let macro_name = format!("for_each_{}_function", self.name);
        let mut text = format!(
            "{FIRST_LINE}/// Calls `$callback!` with every function of the library: `fn name(parameter: Type, …) -> Type = since;`, or\n\
             /// `= since ..= last;` where newer versions lack it. These are {product} versions (1000 × major + 10 × minor): the one that\n\
             /// introduced the function, and the last one that has it.\n\
             #[doc(hidden)]\n#[macro_export]\nmacro_rules! {macro_name} {{\n    ($callback:ident) => {{\n        $callback! {{\n"
        );
        for (name, signature) in functions(headers)
            .into_iter()
            .filter(|(name, _)| is_listed(name))
        {
            let signature = render_signature(signature)?.replace("$crate::", "");
            writeln!(
                text,
                "            {signature} = {};",
                Versions::find(name, headers)
            )?;
        }
        write!(
            text,
            "        }}\n    }};\n}}\n\npub(crate) use {macro_name};\n"
        )?;
        rustfmt(&text)
    }
}

/// Returns the functions that any version has, with their newest signatures.
fn functions(headers: &BTreeMap<Version, Header>) -> BTreeMap<&String, &syn::Signature> {
    headers
        .values()
        .flat_map(|header| &header.surface.functions)
        .collect()
}

impl Versions {
    /// Returns the versions that have the function `name`.
    fn find(name: &str, headers: &BTreeMap<Version, Header>) -> Self {
        let mut versions = headers
            .iter()
            .filter(|(_, header)| header.surface.functions.contains_key(name))
            .map(|(version, _)| *version);
        let since = versions.next().unwrap_or(Version::from_raw(0));
        let last = versions.next_back().unwrap_or(since);
        let is_newest = headers.keys().next_back() == Some(&last);
        Self {
            since,
            last: (!is_newest).then_some(last),
        }
    }
}

/// NCCL puts the version that last changed a struct into its tag: `ncclConfig_v23100`. Here the struct of every version has one name, so
/// that its fields are compared.
fn without_versions(declarations: &str) -> String {
    let mut parts = declarations.split("_v");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let ends = !part[digits..].starts_with(|next: char| next == '_' || next.is_alphanumeric());
        let is_version = digits == 5 && ends;
        text.push_str(if is_version { "" } else { "_v" });
        text.push_str(&part[if is_version { digits } else { 0 }..]);
    }
    text
}

/// Removes structs with bit fields, which need a type of bindgen's own, from the declarations and from the unions that have them. Such
/// unions have the whole value in another field.
fn without_bit_fields(declarations: &str) -> Result<String> {
    const UNIT: &str = "__BindgenBitfieldUnit";
    if !declarations.contains(UNIT) {
        return Ok(declarations.to_owned());
    }
    let mut file = syn::parse_file(declarations)?;
    let mut removed = vec![UNIT.to_owned()];
    for item in &file.items {
        if let syn::Item::Struct(structure) = item
            && names_in(structure).any(|name| name == UNIT)
        {
            removed.push(structure.ident.to_string());
        }
    }
    let mut removed_fields = Vec::new();
    for item in &mut file.items {
        if let syn::Item::Union(union) = item {
            let fields = std::mem::take(&mut union.fields.named);
            for field in fields {
                if names_in(&field.ty).any(|name| removed.contains(&name)) {
                    let field = field.ident.context("a field of a union has a name")?;
                    removed_fields.push([union.ident.to_string(), field.to_string()]);
                } else {
                    union.fields.named.push(field);
                }
            }
        }
    }
    // The assertions of the layout name the fields.
    for item in &mut file.items {
        if let syn::Item::Const(constant) = item
            && let syn::Expr::Block(block) = &mut *constant.expr
        {
            block.block.stmts.retain(|assertion| {
                let names: Vec<_> = names_in(assertion).collect();
                !removed_fields
                    .iter()
                    .any(|field| field.iter().all(|name| names.contains(name)))
            });
        }
    }
    file.items
        .retain(|item| !names_in(item).any(|name| removed.contains(&name)));
    Ok(file.into_token_stream().to_string())
}

/// Returns the identifiers in a piece of code.
fn names_in(code: &impl ToTokens) -> impl Iterator<Item = String> {
    let mut names = Vec::new();
    let mut streams = vec![code.to_token_stream()];
    while let Some(stream) = streams.pop() {
        for token in stream {
            match token {
                TokenTree::Ident(ident) => names.push(ident.to_string()),
                TokenTree::Group(group) => streams.push(group.stream()),
                _ => {}
            }
        }
    }
    names.into_iter()
}

/// nvJitLink declares `__nvJitLinkCreate_12_4`, and exports that of each version that it is compatible with; here all are
/// `nvJitLinkCreate`.
fn unversioned(symbol: &str, mut signature: syn::Signature) -> (String, syn::Signature) {
    let name = match symbol.strip_prefix("__") {
        Some(name) => {
            name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_')
        }
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
    fn struct_with_bit_fields_is_taken_off() {
        let text = "pub struct __BindgenBitfieldUnit<S> { s: S } \
                    pub struct Bits { unit: __BindgenBitfieldUnit<[u8; 1]> } \
                    impl Bits { fn get(&self) -> u8 { 0 } } \
                    pub union Whole { both: u8, bits: Bits } \
                    const _: () = { offset_of!(Whole, bits); offset_of!(Whole, both); }; pub struct Other { whole: Whole }";
        let text = without_bit_fields(text)
            .expect("it is Rust")
            .replace(' ', "");
        assert!(!text.contains("its") && !text.contains("Unit"), "{text}");
        assert!(
            text.contains("both:u8")
                && text.contains("offset_of!(Whole,both)")
                && text.contains("Other"),
            "{text}"
        );
    }

    #[test]
    fn version_in_a_symbol_is_taken_off() {
        let (name, function) = unversioned(
            "__nvJitLinkCreate_12_0",
            signature("fn __nvJitLinkCreate_12_0()"),
        );
        assert_eq!(
            (name.as_str(), function.ident.to_string().as_str()),
            ("nvJitLinkCreate", "nvJitLinkCreate")
        );
        assert_eq!(
            unversioned("nvJitLinkVersion", signature("fn nvJitLinkVersion()")).0,
            "nvJitLinkVersion"
        );
    }

    #[test]
    fn version_in_a_tag_is_taken_off() {
        assert_eq!(
            without_versions("a: ncclConfig_v23100, b: *mut ncclConfig_v21700"),
            "a: ncclConfig, b: *mut ncclConfig"
        );
        assert_eq!(
            without_versions("cublasCreate_v2(x_v21700a, y_value)"),
            "cublasCreate_v2(x_v21700a, y_value)"
        );
    }

    #[test]
    fn functions_have_first_and_last_versions() {
        let header = |text: &str| Header::read(text.to_owned()).expect("it is Rust");
        let headers = BTreeMap::from([
            (
                Version::from_raw(11080),
                header("unsafe extern \"C\" { pub fn old() -> u32; pub fn gone() -> u32; }"),
            ),
            (
                Version::from_raw(12000),
                header("unsafe extern \"C\" { pub fn old() -> u32; pub fn gone() -> u32; }"),
            ),
            (
                Version::from_raw(13000),
                header("unsafe extern \"C\" { pub fn old() -> u32; pub fn new() -> u32; }"),
            ),
        ]);
        for (name, versions) in [
            ("old", "11080"),
            ("new", "13000"),
            ("gone", "11080 ..= 12000"),
        ] {
            assert_eq!(
                Versions::find(name, &headers).to_string(),
                versions,
                "{name}"
            );
        }
    }

    #[test]
    fn function_belongs_to_the_list_with_its_prefix() {
        let cublas = LIBRARIES
            .iter()
            .find(|library| library.name == "cublas")
            .expect("it is listed");
        for (name, file) in [
            ("cublasLtCreate", "lt_functions.rs"),
            ("cublasCreate_v2", "functions.rs"),
        ] {
            assert_eq!(cublas.lists[cublas.list_index(name)].file, file, "{name}");
        }
    }
}
