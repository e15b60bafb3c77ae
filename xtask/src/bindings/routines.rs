//! The routines of the BLAS among the functions of cuBLAS, each with its functions for types of elements. The simulated library is
//! generated from them.
//!
//! The name of a function determines its routine and its type of elements: `cublasDgemv_v2_64` is `gemv` for `f64`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use super::generate::{FIRST_LINE, render_signature};

/// The letters of a type of elements in the name of a function.
struct Letters {
    letters: &'static str,
    /// The letters of the type with the other precision, for which every routine has a function, too.
    other_precision: &'static str,
    element: &'static str,
    /// The end of the routine's name.
    suffix: &'static str,
}

const fn letters(
    letters: &'static str,
    other_precision: &'static str,
    element: &'static str,
) -> Letters {
    Letters {
        letters,
        other_precision,
        element,
        suffix: "",
    }
}

/// Complex elements with a real factor: `scal` with one has the same parameters as with a complex one.
const fn with_real_factor(
    letters: &'static str,
    other_precision: &'static str,
    element: &'static str,
) -> Letters {
    Letters {
        letters,
        other_precision,
        element,
        suffix: "_real",
    }
}

/// The longer letters come first: `cublasCsscal` is `scal` for complex elements and a real factor.
const LETTERS: [Letters; 12] = [
    letters("Is", "Id", "f32"),
    letters("Id", "Is", "f64"),
    letters("Ic", "Iz", "Complex32"),
    letters("Iz", "Ic", "Complex64"),
    letters("Sc", "Dz", "Complex32"),
    letters("Dz", "Sc", "Complex64"),
    with_real_factor("Cs", "Zd", "Complex32"),
    with_real_factor("Zd", "Cs", "Complex64"),
    letters("S", "D", "f32"),
    letters("D", "S", "f64"),
    letters("C", "Z", "Complex32"),
    letters("Z", "C", "Complex64"),
];

/// A function of a routine for one type of elements.
#[derive(Debug, Eq, PartialEq)]
struct Instance {
    routine: String,
    element: &'static str,
}

/// Returns the macro that hands the functions of a routine to a callback macro.
pub(super) fn render(functions: &BTreeMap<&String, &syn::Signature>) -> Result<String> {
    let mut routines = BTreeMap::<_, Vec<_>>::new();
    for (name, signature) in functions {
        if let Some(instance) = instance(name, |name| functions.contains_key(&name.to_owned())) {
            let signature = render_signature(signature)?.replace("$crate::", "");
            routines
                .entry(instance.routine)
                .or_default()
                .push(format!("{}: {signature};", instance.element));
        }
    }
    let mut text = format!(
        "{FIRST_LINE}/// Calls `$callback!` with the functions of a routine of the BLAS, each with its type of elements:\n\
         /// `f32: fn name(parameter: Type, …) -> Type;`. Tokens after the callback's name are put before them.\n\
         macro_rules! functions_of {{\n"
    );
    for (routine, functions) in routines {
        writeln!(
            text,
            "    ({routine}, $callback:ident $($before:tt)*) => {{\n        $callback! {{\n            $($before)*"
        )?;
        for function in functions {
            writeln!(text, "            {function}")?;
        }
        text.push_str("        }\n    };\n");
    }
    text.push_str("}\n\npub(crate) use functions_of;\n");
    Ok(text)
}

/// Returns the routine of a function with its type of elements; `None` if it is not of the BLAS, so that it has no function for the other
/// precision.
fn instance(name: &str, exists: impl Fn(&str) -> bool) -> Option<Instance> {
    let name = name.strip_prefix("cublas")?;
    let stem = name.strip_suffix("_64").unwrap_or(name);
    let stem = stem.strip_suffix("_v2").unwrap_or(stem);
    LETTERS.iter().find_map(|letters| {
        let routine = stem.strip_prefix(letters.letters)?;
        let other = format!(
            "cublas{}{}",
            letters.other_precision,
            name.strip_prefix(letters.letters)?
        );
        (routine.starts_with(|letter: char| letter.is_ascii_lowercase()) && exists(&other)).then(
            || Instance {
                routine: snake_case(routine) + letters.suffix,
                element: letters.element,
            },
        )
    })
}

/// Converts `gemmBatched` to `gemm_batched`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_determine_routines_and_elements() {
        const FUNCTIONS: [&str; 15] = [
            "cublasSscal_v2",
            "cublasDscal_v2",
            "cublasCsscal_v2",
            "cublasZdscal_v2",
            "cublasScopy_v2_64",
            "cublasDcopy_v2_64",
            "cublasScasum_v2",
            "cublasDzasum_v2",
            "cublasIsamax_v2",
            "cublasIdamax_v2",
            "cublasCsymm_v2",
            "cublasZsymm_v2",
            "cublasSgemmBatched",
            "cublasDgemmBatched",
            "cublasSgemmEx",
        ];
        for (name, expected) in [
            ("cublasSscal_v2", Some(("scal", "f32"))),
            ("cublasCsscal_v2", Some(("scal_real", "Complex32"))),
            ("cublasDcopy_v2_64", Some(("copy", "f64"))),
            ("cublasScasum_v2", Some(("asum", "Complex32"))),
            ("cublasIdamax_v2", Some(("amax", "f64"))),
            ("cublasCsymm_v2", Some(("symm", "Complex32"))),
            ("cublasDgemmBatched", Some(("gemm_batched", "f64"))),
            ("cublasSgemmEx", None),
            ("cublasSetStream_v2", None),
        ] {
            let actual = instance(name, |name| FUNCTIONS.contains(&name));
            let expected = expected.map(|(routine, element)| Instance {
                routine: routine.to_owned(),
                element,
            });
            assert_eq!(actual, expected, "{name}");
        }
    }
}
