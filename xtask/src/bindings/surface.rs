//! The ABI surface of a set of declarations: functions, layouts of structs and unions, constants.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use quote::ToTokens as _;

use super::layout::{self, Assertion, Measure};
use crate::version::Version;

/// The ABI that one header, or our generated code, declares.
#[derive(Clone, Default)]
pub(crate) struct Surface {
    /// Functions by the name of their symbol.
    pub(crate) functions: BTreeMap<String, syn::Signature>,
    /// Structs and unions whose layout is known, by their tag.
    pub(crate) records: BTreeMap<String, Record>,
    /// Enumerators and defines. C has one name space for both.
    pub(crate) constants: BTreeMap<String, Constant>,
    /// The integer type of each enum.
    pub(crate) enums: BTreeMap<String, syn::Type>,
    /// The target of each type alias.
    pub(crate) aliases: BTreeMap<String, syn::Type>,
}

/// The CUDA versions that have a function. The text is that of the generated lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Versions {
    /// The version that introduced it.
    pub(crate) since: Version,
    /// The last version that has it; `None` if the newest does.
    pub(crate) last: Option<Version>,
}

/// The layout of a struct or union.
#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) fields: BTreeMap<String, Field>,
}

/// One field of a record.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) offset: u64,
    pub(crate) ty: syn::Type,
}

/// An enumerator or a define.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Constant {
    /// The value as a Rust expression.
    pub(crate) value: String,
    /// The enum that declares it, or the type of a define.
    pub(crate) ty: String,
}

impl Versions {
    pub(crate) fn contain(self, version: Version) -> bool {
        self.since <= version && self.last.is_none_or(|last| version <= last)
    }

    /// Returns the versions as messages name them: `12.0`, or `11.8 to 12.9`.
    pub(crate) fn in_words(self) -> String {
        self.last.map_or_else(
            || self.since.to_string(),
            |last| format!("{} to {last}", self.since),
        )
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.since.raw())?;
        self.last
            .map_or(Ok(()), |last| write!(formatter, " ..= {}", last.raw()))
    }
}

impl Surface {
    /// Parses declarations in the form that bindgen writes.
    pub(crate) fn read(file: &syn::File) -> Result<Self> {
        let mut surface = Self::default();
        let mut fields = BTreeMap::new();
        for item in &file.items {
            match item {
                syn::Item::ForeignMod(block) => surface.add_functions(block),
                syn::Item::Type(alias) => {
                    surface
                        .aliases
                        .insert(alias.ident.to_string(), (*alias.ty).clone());
                }
                syn::Item::Struct(record) => surface.add_struct(record, &mut fields),
                syn::Item::Union(record) => add_fields(&record.ident, &record.fields, &mut fields),
                syn::Item::Impl(block) if block.trait_.is_none() => surface.add_enumerators(block),
                syn::Item::Const(item) if item.ident != "_" => surface.add_define(item),
                _ => {}
            }
        }
        for item in &file.items {
            if let syn::Item::Const(item) = item
                && item.ident == "_"
            {
                surface.add_layout(item, &fields)?;
            }
        }
        Ok(surface)
    }

    /// Parses the generated files in `folder`, with the versions that have each function.
    pub(crate) fn read_generated(folder: &Path) -> Result<(Self, BTreeMap<String, Versions>)> {
        let mut surface = Self::default();
        let mut versions = BTreeMap::new();
        for name in ["types.rs", "removed.rs"] {
            let path = folder.join(name);
            if name == "removed.rs" && !path.exists() {
                continue;
            }
            let text =
                std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
            let part = Self::read(&file)?;
            surface.records.extend(part.records);
            surface.constants.extend(part.constants);
            surface.enums.extend(part.enums);
            surface.aliases.extend(part.aliases);
        }
        for path in function_lists(folder)? {
            let text =
                std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for line in text
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("fn "))
            {
                let (signature, dated) =
                    read_function(line).with_context(|| format!("{}: {line}", path.display()))?;
                versions.insert(signature.ident.to_string(), dated);
                surface
                    .functions
                    .insert(signature.ident.to_string(), signature);
            }
        }
        ensure!(
            !versions.is_empty(),
            "{} lists no function",
            folder.display()
        );
        Ok((surface, versions))
    }

    /// Returns the CUDA version declared by the header.
    pub(crate) fn version(&self) -> Result<Version> {
        let constant = self
            .constants
            .get("CUDA_VERSION")
            .context("the header does not define CUDA_VERSION")?;
        Ok(Version::from_raw(
            constant
                .value
                .parse()
                .context("CUDA_VERSION is no number")?,
        ))
    }

    fn add_functions(&mut self, block: &syn::ItemForeignMod) {
        for item in &block.items {
            if let syn::ForeignItem::Fn(function) = item {
                let mut signature = function.sig.clone();
                if matches!(signature.output, syn::ReturnType::Default) {
                    signature.output = syn::parse_quote!(-> ());
                }
                self.functions
                    .insert(signature.ident.to_string(), signature);
            }
        }
    }

    fn add_struct(&mut self, record: &syn::ItemStruct, fields: &mut BTreeMap<String, syn::Type>) {
        match &record.fields {
            syn::Fields::Named(named) => add_fields(&record.ident, named, fields),
            syn::Fields::Unnamed(tuple) => {
                let integer = tuple.unnamed.iter().map(|field| field.ty.clone());
                self.enums
                    .extend(integer.map(|integer| (record.ident.to_string(), integer)));
            }
            syn::Fields::Unit => {}
        }
    }

    fn add_enumerators(&mut self, block: &syn::ItemImpl) {
        let ty = block.self_ty.to_token_stream().to_string();
        for item in &block.items {
            if let syn::ImplItem::Const(item) = item
                && let syn::Expr::Call(call) = &item.expr
            {
                let value = call.args.to_token_stream().to_string();
                self.constants.insert(
                    item.ident.to_string(),
                    Constant {
                        value,
                        ty: ty.clone(),
                    },
                );
            }
        }
    }

    fn add_define(&mut self, item: &syn::ItemConst) {
        let value = item.expr.to_token_stream().to_string().replace("- ", "-");
        let ty = item.ty.to_token_stream().to_string();
        self.constants
            .insert(item.ident.to_string(), Constant { value, ty });
    }

    /// Records the layout assertions of one type.
    fn add_layout(
        &mut self,
        item: &syn::ItemConst,
        fields: &BTreeMap<String, syn::Type>,
    ) -> Result<()> {
        for Assertion { of, value, .. } in layout::read(item)? {
            match of {
                Measure::Size(name) => self.records.entry(name).or_default().size = value,
                Measure::Alignment(name) => self.records.entry(name).or_default().alignment = value,
                Measure::Offset(name, field) => {
                    let path = format!("{name}::{field}");
                    let ty = fields
                        .get(&path)
                        .with_context(|| format!("{path} is not declared"))?
                        .clone();
                    self.records
                        .entry(name)
                        .or_default()
                        .fields
                        .insert(field, Field { offset: value, ty });
                }
            }
        }
        Ok(())
    }
}

fn add_fields(
    name: &syn::Ident,
    named: &syn::FieldsNamed,
    fields: &mut BTreeMap<String, syn::Type>,
) {
    for field in &named.named {
        if let Some(ident) = &field.ident {
            fields.insert(format!("{name}::{ident}"), field.ty.clone());
        }
    }
}

/// Returns the files in `folder` that list functions.
fn function_lists(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    Ok(paths
        .into_iter()
        .filter(|path| {
            path.to_str()
                .is_some_and(|path| path.ends_with("functions.rs"))
        })
        .collect())
}

/// Parses one line of a function list: `fn name(parameters) -> Type = since;` or `= since ..= last;`.
fn read_function(line: &str) -> Result<(syn::Signature, Versions)> {
    let (signature, versions) = line
        .trim_end_matches(';')
        .rsplit_once(" = ")
        .context("the line has no version")?;
    let signature = syn::parse_str(&signature.replace("$crate::", ""))?;
    let (since, last) = versions
        .split_once(" ..= ")
        .map_or((versions, None), |(since, last)| (since, Some(last)));
    let last = last.map(str::parse).transpose()?.map(Version::from_raw);
    Ok((
        signature,
        Versions {
            since: Version::from_raw(since.parse()?),
            last,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARATIONS: &str = r#"
        pub const CU_SIZE: u32 = 64;
        pub const CU_ANY: i32 = -1;
        pub type CUkind = CUkind_enum;
        #[repr(transparent)]
        pub struct CUkind_enum(pub ::core::ffi::c_uint);
        impl CUkind_enum { pub const CU_KIND_ONE: CUkind_enum = CUkind_enum(1); }
        pub struct CUpair_st { pub kind: CUkind, pub value: u64 }
        const _: () = {
            ["Size of CUpair_st"][::core::mem::size_of::<CUpair_st>() - 16usize];
            ["Alignment of CUpair_st"][::core::mem::align_of::<CUpair_st>() - 8usize];
            ["Offset of field: CUpair_st::kind"][::core::mem::offset_of!(CUpair_st, kind) - 0usize];
            ["Offset of field: CUpair_st::value"][::core::mem::offset_of!(CUpair_st, value) - 8usize];
        };
        unsafe extern "C" { pub fn cuPairGet(pair: *mut CUpair_st) -> CUkind; }
    "#;

    fn surface() -> Surface {
        Surface::read(&syn::parse_file(DECLARATIONS).expect("it is Rust"))
            .expect("it has the form of bindgen's output")
    }

    #[test]
    fn layout_is_read_from_the_assertions() {
        let surface = surface();
        let pair = &surface.records["CUpair_st"];
        assert_eq!(
            (pair.size, pair.alignment, pair.fields["value"].offset),
            (16, 8, 8)
        );
        assert_eq!(
            pair.fields["kind"].ty.to_token_stream().to_string(),
            "CUkind"
        );
    }

    #[test]
    fn enumerators_and_defines_are_constants() {
        let constants = surface().constants;
        assert_eq!(constants["CU_SIZE"].value, "64");
        assert_eq!(constants["CU_ANY"].value, "-1");
        assert_eq!(
            constants["CU_KIND_ONE"],
            Constant {
                value: "1".to_owned(),
                ty: "CUkind_enum".to_owned()
            }
        );
    }

    #[test]
    fn listed_function_has_its_version() {
        let line = "fn cuPairGet(pair: *mut $crate::CUpair_st) -> $crate::CUkind = 12040;";
        let (signature, versions) = read_function(line).expect("it is a line of the list");
        assert_eq!(
            versions,
            Versions {
                since: Version::from_raw(12040),
                last: None
            }
        );
        assert_eq!(
            signature.to_token_stream().to_string(),
            "fn cuPairGet (pair : * mut CUpair_st) -> CUkind"
        );
    }

    /// A function that newer versions lack has the last version that has it.
    #[test]
    fn removed_function_has_its_last_version() {
        let versions = read_function("fn cuOld() -> CUkind = 11080 ..= 12040;")
            .expect("it is a line of the list")
            .1;
        let contained =
            [11070, 11080, 12040, 12050].map(|raw| versions.contain(Version::from_raw(raw)));
        assert_eq!(contained, [false, true, true, false]);
    }
}
