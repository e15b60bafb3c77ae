//! The generic loader, with a library that Curium does not bind.

use curium_tests::TestResult;
use std::ffi::{c_int, c_void};
use std::path::Path;

use curium_sys::load::{LibraryDescription, LoadError, LoadedLibrary, Origin, Package, Rejection};

use super::{build, folder};

curium_sys::declare_api! {
    fn exampleVersion() -> c_int = 11080;
    fn exampleCreate() -> c_int = 12000;
    fn exampleDestroy() -> c_int = 12040;
}

static EXAMPLE: LibraryDescription = LibraryDescription {
    name: "example",
    variable: "CURIUM_EXAMPLE_PATH",
    files: &["libcuriumexample.so.13", "libcuriumexample.so.12"],
    origin: Origin::Toolkit(&[Package {
        name: "nvidia-example-cu12",
        folder: "nvidia/example/lib",
    }]),
    companions: &[],
    required: &[c"exampleVersion"],
    symbol_versions: &["_12_1", "_12_0"],
    check,
};

/// Rejects version 0, as a binding rejects a stub library.
fn check(library: &LoadedLibrary) -> Result<(), Rejection> {
    let address = library.address(c"exampleVersion");
    // SAFETY: the function is required, and the libraries of these tests export it with this
    // signature.
    let version =
        unsafe { std::mem::transmute::<*const c_void, extern "C" fn() -> c_int>(address) };
    if version() == 0 {
        Err(Rejection::Stub)
    } else {
        Ok(())
    }
}

/// Builds a library of this version that exports `exampleCreate` under the name `create`.
fn build_example(path: &Path, version: i32, create: &str) {
    let functions = [("exampleVersion", version), (create, 7)];
    let source = functions.map(|(name, result)| {
        format!("#[unsafe(no_mangle)] pub extern \"C\" fn {name}() -> i32 {{ {result} }}\n")
    });
    build(path, &source.concat());
}

fn load(path: &Path) -> Result<Api, LoadError> {
    // SAFETY: the libraries of these tests have functions of the declared signatures.
    let library = unsafe { EXAMPLE.load_from(path) }?;
    // SAFETY: the libraries of these tests have functions of the declared signatures.
    Ok(unsafe { library.table() })
}

/// The table has the exported functions and lacks the others.
#[test]
fn library_fills_its_table() -> TestResult {
    for (name, symbol) in [
        ("plain", "exampleCreate"),
        ("versioned", "__exampleCreate_12_0"),
    ] {
        let path = folder("described").join(name);
        build_example(&path, 12, symbol);
        let api = load(&path)?;
        let create = api.exampleCreate.ok_or("no `exampleCreate`")?;
        // SAFETY: the function has no precondition.
        assert_eq!(unsafe { create() }, 7, "{symbol}");
        assert!(api.exampleDestroy.is_none());
    }
    Ok(())
}

#[test]
fn failed_check_rejects_a_library() -> TestResult {
    let path = folder("described").join("stub");
    build_example(&path, 0, "exampleCreate");
    let error = load(&path).err().ok_or("version 0 was accepted")?;
    assert!(
        matches!(error.attempts[0].rejection, Rejection::Stub),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.starts_with("no example could be loaded; tried\n  "),
        "{text}"
    );
    let advice = "to fix it: `pip install nvidia-example-cu12`, or install the CUDA toolkit, or set CURIUM_EXAMPLE_PATH";
    assert!(text.contains(advice), "{text}");
    Ok(())
}

#[test]
fn incomplete_library_is_rejected() -> TestResult {
    let path = folder("described").join("other");
    build(
        &path,
        "#[unsafe(no_mangle)] pub extern \"C\" fn nothing() {}",
    );
    let error = load(&path)
        .err()
        .ok_or("a library without functions was accepted")?;
    assert!(
        matches!(
            error.attempts[0].rejection,
            Rejection::OtherLibrary {
                missing: "exampleVersion",
                ..
            }
        ),
        "{error}"
    );
    Ok(())
}

#[test]
fn missing_library_names_each_file() {
    // SAFETY: no library has these names.
    let error = unsafe { EXAMPLE.load() }.expect_err("no library has these names");
    let tried: Vec<_> = error
        .attempts
        .iter()
        .map(|attempt| attempt.path.as_path())
        .collect();
    assert_eq!(
        tried,
        EXAMPLE.files.iter().map(Path::new).collect::<Vec<_>>(),
        "{error}"
    );
}
