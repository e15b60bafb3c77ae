//! Compiling with a real NVRTC. Where there is none, the tests say that they are skipped; if `CURIUM_NVRTC_PATH` is set, they fail.

use std::io::Write as _;

use curium_driver::ComputeCapability;
use curium_nvrtc::{Architecture, CompileError, CompileOptions, Error, Nvrtc, Severity};

const SCALE: &str =
    "#include \"scale.h\"\nextern \"C\" __global__ void scale(float* x) {\n  x[threadIdx.x] *= SCALE;\n}\n";

/// Runs `test` if there is an NVRTC.
fn with_nvrtc(name: &str, test: impl FnOnce(&Nvrtc)) {
    match Nvrtc::load() {
        Ok(nvrtc) => test(&nvrtc),
        Err(error) if std::env::var_os("CURIUM_NVRTC_PATH").is_some() => panic!("{error}"),
        Err(_) => {
            // Straight to the stream: what goes through the macros is not shown for tests that pass.
            let said =
                writeln!(std::io::stderr(), "SKIPPED {name}: no NVRTC on this machine; name one in CURIUM_NVRTC_PATH");
            said.expect("standard error is open");
        }
    }
}

fn compile_error(nvrtc: &Nvrtc, source: &str, options: &CompileOptions) -> Box<CompileError> {
    match nvrtc.compile(source, "bad.cu", options) {
        Err(Error::Compile(error)) => error,
        other => panic!("this must not compile: {other:?}"),
    }
}

#[test]
fn source_with_a_header_becomes_ptx_for_the_architecture() {
    with_nvrtc("source_with_a_header_becomes_ptx_for_the_architecture", |nvrtc| {
        let options =
            CompileOptions::new().with_architecture(Architecture::new(8, 0)).with_header("scale.h", "#define SCALE 3");
        let ptx = nvrtc.compile(SCALE, "scale.cu", &options).expect("the source is right");
        assert!(ptx.as_str().contains(".target sm_80"), "{ptx}");
        assert!(ptx.as_str().contains(".visible .entry scale("), "{ptx}");
        assert!(ptx.as_str().contains("0f40400000"), "the header's 3 is there: {ptx}");
        assert_eq!(ptx.log(), "");
    });
}

#[test]
fn error_in_the_source_is_found_in_its_line() {
    with_nvrtc("error_in_the_source_is_found_in_its_line", |nvrtc| {
        let error = compile_error(nvrtc, "\n__global__ void bad() {\n\t  nonsense(3);\n}\n", &CompileOptions::new());
        let [found] = &error.errors().collect::<Vec<_>>()[..] else { panic!("one error: {error}") };
        assert_eq!((found.file.as_str(), found.line, found.severity), ("bad.cu", 3, Severity::Error));
        assert!(found.message.contains("nonsense"), "{found}");
        if nvrtc.version().major() >= 12 {
            assert_eq!(found.column, Some(4), "{error}");
        }
        assert_eq!(&*error.call.name, "NVRTC_ERROR_COMPILATION");
        assert!(
            error.to_string().contains("`bad.cu` was not compiled") && error.to_string().contains("nonsense"),
            "{error}"
        );
    });
}

#[test]
fn error_in_a_header_names_the_header() {
    with_nvrtc("error_in_a_header_names_the_header", |nvrtc| {
        let options = CompileOptions::new().with_header("scale.h", "\n#define SCALE 3\n#error stop");
        let error = compile_error(nvrtc, SCALE, &options);
        assert_eq!((error.diagnostics[0].file.as_str(), error.diagnostics[0].line), ("scale.h", 3), "{error}");
    });
}

#[test]
fn warning_is_given_with_the_ptx() {
    with_nvrtc("warning_is_given_with_the_ptx", |nvrtc| {
        let source = "extern \"C\" __global__ void warned() { int unused; }";
        let ptx = nvrtc.compile(source, "warned.cu", &CompileOptions::new()).expect("a warning is no error");
        let [warning] = ptx.diagnostics() else { panic!("one warning: {}", ptx.log()) };
        assert_eq!((warning.severity, warning.number.as_deref()), (Severity::Warning, Some("177-D")), "{warning}");
    });
}

#[test]
fn unknown_option_is_an_error_that_names_it() {
    with_nvrtc("unknown_option_is_an_error_that_names_it", |nvrtc| {
        let error = compile_error(nvrtc, SCALE, &CompileOptions::new().with_option("--nonsense"));
        assert!(error.to_string().contains("--nonsense"), "{error}");
        assert!(error.diagnostics.is_empty(), "{error}");
    });
}

#[test]
fn option_changes_the_code() {
    with_nvrtc("option_changes_the_code", |nvrtc| {
        let source = "extern \"C\" __global__ void product(float* x) { *x = *x * x[1] + x[2]; }";
        let compiled =
            |options: CompileOptions| nvrtc.compile(source, "product.cu", &options).expect("the source is right");
        assert!(compiled(CompileOptions::new()).as_str().contains("fma.rn.f32"));
        assert!(!compiled(CompileOptions::new().with_option("--fmad=false")).as_str().contains("fma.rn.f32"));
    });
}

#[test]
fn architecture_for_a_device_compiles() {
    with_nvrtc("architecture_for_a_device_compiles", |nvrtc| {
        let supported = nvrtc.supported_architectures().expect("NVRTC knows them");
        assert!(supported.contains(&ComputeCapability { major: 9, minor: 0 }), "{supported:?}");
        let future = ComputeCapability { major: 99, minor: 0 };
        let architecture = nvrtc.architecture_for(future).expect("a newer device runs older PTX");
        assert_eq!(supported.last(), Some(&architecture.capability()));
        let options = CompileOptions::new().with_architecture(architecture).with_header("scale.h", "#define SCALE 3");
        nvrtc.compile(SCALE, "scale.cu", &options).expect("the architecture is supported");
    });
}

#[test]
fn nul_in_a_text_is_refused_with_its_place() {
    with_nvrtc("nul_in_a_text_is_refused_with_its_place", |nvrtc| {
        let refused = |source: &str, options: CompileOptions| {
            nvrtc.compile(source, "nul.cu", &options).expect_err("there is a NUL").to_string()
        };
        assert_eq!(refused("int x;\0", CompileOptions::new()), "the source of `nul.cu` has a NUL at byte 6");
        let error = refused("", CompileOptions::new().with_header("a.h", "//\0"));
        assert!(error.contains("header") && error.contains("byte 2"), "{error}");
    });
}
