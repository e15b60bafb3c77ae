//! Every function of the list of routines is reached by the checks of operations, for its type of
//! elements.
//!
//! In a library that lacks all of them, each check reports the function that it needs. So a routine
//! without a check is found, and so is a function that is listed for the wrong type.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::ptr;

use curium_blas::sys::Api;
use curium_blas::{Blas, Complex32, Complex64, CuBlas, Error};
use curium_sim::Simulator;
use curium_sys::FunctionTable;
use curium_tests::{TestDriver, TestResult, address_of, simulator_test};

use super::operations::{Check, checks, real_checks};
use super::random::Random;
use super::reference::Number;

/// Returns the functions with 32-bit sizes, and those with 64-bit sizes, in the list of routines.
pub(super) fn listed() -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    const LIST: &str = include_str!("../../../../crates/blas/src/routines/list.rs");
    let words = LIST.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let functions = Api::FUNCTIONS
        .iter()
        .map(curium_sys::ExportedFunction::name)
        .collect::<BTreeSet<_>>();
    let actual: BTreeSet<_> = words
        .filter_map(|word| functions.get(word).copied())
        .collect();
    actual.into_iter().partition(|name| !name.ends_with("_64"))
}

/// Returns the functions that the checks miss.
fn missed<T: Number>(
    blas: &mut Blas,
    checks: Vec<(&'static str, Check<T>)>,
) -> BTreeSet<&'static str> {
    let mut random = Random::new(7);
    let mut missed = BTreeSet::new();
    for (_, check) in checks {
        // Orders that cuBLAS does not support are refused before a function is called.
        let actual = (0..200).find_map(|_| match check(blas, &mut random) {
            Err(Error::Missing(error)) => Some(error.function),
            _ => None,
        });
        missed.extend(actual);
    }
    missed
}

/// A library for simulated devices has every listed function.
#[test]
fn simulated_library_has_every_listed_function() -> TestResult {
    let library = curium_sim_libraries::cublas();
    let (narrow, wide) = listed();
    let without_sizes: Vec<_> = narrow
        .iter()
        .filter(|name| !wide.contains(format!("{name}_64").as_str()))
        .collect();
    let generators = ["Crotg", "Drotg", "Drotmg", "Srotg", "Srotmg", "Zrotg"]
        .map(|name| format!("cublas{name}_v2"));
    assert_eq!(
        without_sizes,
        generators.iter().collect::<Vec<_>>(),
        "each other function has its 64-bit form"
    );
    assert_eq!(narrow.len(), wide.len() + generators.len());
    assert!(narrow.len() > 100, "{} functions are listed", narrow.len());
    for name in narrow.iter().chain(&wide) {
        let name = CString::new(*name)?;
        assert!(
            !address_of(library.api(), &name).is_null(),
            "{name:?} is not simulated"
        );
    }
    Ok(())
}

#[simulator_test]
fn every_listed_function_is_reached_by_a_check(test: &TestDriver, _: &Simulator) -> TestResult {
    let (narrow, _) = listed();
    let stream = test.stream();
    let mut reached = BTreeSet::new();
    let lacking = without(&narrow)?;
    let mut blas = Blas::new(&lacking, &stream)?;
    blas.set_workspace(0)?;
    reached.extend(missed::<f32>(&mut blas, checks()));
    reached.extend(missed::<f64>(&mut blas, checks()));
    reached.extend(missed::<Complex32>(&mut blas, checks()));
    reached.extend(missed::<Complex64>(&mut blas, checks()));
    reached.extend(missed::<f32>(&mut blas, real_checks()));
    reached.extend(missed::<f64>(&mut blas, real_checks()));
    assert_eq!(
        narrow.difference(&reached).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "no check reaches these"
    );
    Ok(())
}

/// Returns the simulated library without some functions.
pub(super) fn without(names: &BTreeSet<&'static str>) -> TestResult<CuBlas> {
    let library = curium_sim_libraries::cublas();
    let resolve = |name: &CStr| {
        let is_missing = name.to_str().is_ok_and(|name| names.contains(name));
        if is_missing {
            ptr::null()
        } else {
            address_of(library.api(), name)
        }
    };
    // SAFETY: the functions are those of the library, which live as long as the program.
    let api = unsafe { Api::from_resolver(resolve) };
    // SAFETY: the functions are those of the library, which live as long as the program.
    Ok(unsafe { CuBlas::from_api(api) }?)
}

/// A missing function is an error that names it and the version that introduced it.
#[simulator_test]
fn missing_function_names_its_version(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let library = without(&BTreeSet::from(["cublasSetMathMode"]))?;
    let mut blas = Blas::new(&library, &stream)?;
    let error = blas
        .set_math_mode(curium_blas::MathMode::Pedantic)
        .expect_err("the function is missing");
    let text = error.to_string();
    assert_eq!(
        text,
        "cublasSetMathMode: missing function (introduced in CUDA 11.8); use a newer cuBLAS"
    );
    Ok(())
}
