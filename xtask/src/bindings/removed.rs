//! Constants that some CUDA version had and the newest one lacks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use quote::ToTokens as _;

use super::surface::{Constant, Surface};
use crate::version::Version;

/// A constant with the last version that had it.
type Removed = BTreeMap<String, (Version, Constant)>;

/// Returns the text of `removed.rs` without its first line: the constants that `versions`, oldest first, have and `newest` lacks.
pub(crate) fn render(versions: &BTreeMap<Version, &Surface>, newest: &Surface) -> Result<String> {
    let mut enums = BTreeMap::<_, Vec<_>>::new();
    let mut defines = String::new();
    for (name, (version, constant)) in removed(versions, newest)? {
        let line = format!("/// CUDA {version} is the last version that has it.\npub const {name}");
        if newest.enums.contains_key(&constant.ty) {
            let ty = constant.ty;
            enums
                .entry(ty.clone())
                .or_default()
                .push(format!("{line}: {ty} = {ty}({});\n", constant.value));
        } else {
            let ty = integer(&constant, versions.get(&version).copied());
            writeln!(defines, "{line}: {ty} = {};", constant.value)?;
        }
    }
    let mut text = String::new();
    if !enums.is_empty() {
        let names: Vec<_> = enums.keys().map(String::as_str).collect();
        writeln!(text, "use super::types::{{{}}};\n", names.join(", "))?;
    }
    text.push_str(&defines);
    for (name, constants) in enums {
        writeln!(text, "\nimpl {name} {{\n{}}}", constants.concat())?;
    }
    Ok(text)
}

fn removed(versions: &BTreeMap<Version, &Surface>, newest: &Surface) -> Result<Removed> {
    let mut removed = Removed::new();
    for (version, surface) in versions {
        for (name, constant) in &surface.constants {
            if newest.constants.contains_key(name) {
                continue;
            }
            if let Some((earlier, other)) =
                removed.insert(name.clone(), (*version, constant.clone()))
            {
                ensure!(
                    other.value == constant.value,
                    "{name} has one value in CUDA {earlier}, another in {version}"
                );
            }
        }
    }
    Ok(removed)
}

/// Returns the integer type of a constant whose enum is gone.
fn integer(constant: &Constant, surface: Option<&Surface>) -> String {
    let ty = surface.and_then(|surface| surface.enums.get(&constant.ty));
    ty.map_or_else(
        || constant.ty.clone(),
        |ty| ty.to_token_stream().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(constants: &str) -> Surface {
        let text = format!("pub struct CUkind_enum(pub u32); {constants}");
        Surface::read(&syn::parse_file(&text).expect("it is Rust"))
            .expect("it has the form of bindgen's output")
    }

    fn render_versions(versions: &[(u32, &str)], newest: &str) -> Result<String> {
        let surfaces: Vec<_> = versions.iter().map(|(_, text)| surface(text)).collect();
        let versions = versions
            .iter()
            .map(|(version, _)| Version::from_raw(*version));
        render(&versions.zip(&surfaces).collect(), &surface(newest))
    }

    #[test]
    fn removed_constant_names_its_last_version() {
        let old = "impl CUkind_enum { pub const CU_KIND_OLD: CUkind_enum = CUkind_enum(7); }";
        let text =
            render_versions(&[(11080, old), (12000, old), (12010, "")], "").expect("it renders");
        assert!(text.contains("CUDA 12.0 is the last version"), "{text}");
        assert!(
            text.contains("impl CUkind_enum {") && text.contains(": CUkind_enum = CUkind_enum(7);"),
            "{text}"
        );
    }

    #[test]
    fn changed_constant_is_not_removed() {
        let old = [(11080, "pub const CUDA_VERSION: u32 = 11080;")];
        let text =
            render_versions(&old, "pub const CUDA_VERSION: u32 = 13050;").expect("it renders");
        assert_eq!(text, "");
    }

    #[test]
    fn removed_constant_with_two_values_is_an_error() {
        let old = [
            (11080, "pub const CU_OLD: u32 = 1;"),
            (12000, "pub const CU_OLD: u32 = 2;"),
        ];
        let error = render_versions(&old, "").expect_err("it has two values");
        assert!(error.to_string().contains("CU_OLD"), "{error}");
    }
}
