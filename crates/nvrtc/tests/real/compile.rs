//! Compilation with a real NVRTC.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::library::{compile_error, compiled, program, with_nvrtc};
use curium_driver::{ComputeCapability, CudaVersion, Driver};
use curium_nvrtc::{
    Architecture, CompileOptions, Error, Nvrtc, PrecompiledHeader, Program, Severity,
};
use curium_sim::{Config, Simulator};

const SCALE: &str = "#include \"scale.h\"\nextern \"C\" __global__ void scale(float* x) {\n  x[threadIdx.x] *= SCALE;\n}\n";
const EMPTY: &str = "extern \"C\" __global__ void empty() {}";

#[test]
fn source_with_a_header_becomes_ptx() {
    with_nvrtc("source_with_a_header_becomes_ptx", |nvrtc| {
        let options = CompileOptions::new().with_architecture(Architecture::new(8, 0));
        let compiled = compiled(
            nvrtc,
            &program(SCALE).with_header("scale.h", "#define SCALE 3"),
            &options,
        );
        let ptx = compiled.ptx().expect("PTX is what NVRTC makes");
        assert!(ptx.contains(".target sm_80"), "{ptx}");
        assert!(ptx.contains(".visible .entry scale("), "{ptx}");
        assert!(ptx.contains("0f40400000"), "the header's 3 is there: {ptx}");
        assert_eq!(compiled.log(), "");
        let error = compiled
            .cubin()
            .expect_err("the architecture is virtual")
            .to_string();
        assert!(
            error.contains("not compiled to a cubin") && error.contains("real"),
            "{error}"
        );
    });
}

#[test]
fn error_in_the_source_is_found_and_shown() {
    with_nvrtc("error_in_the_source_is_found_and_shown", |nvrtc| {
        let source = "\n__global__ void bad() {\n\t  nonsense(3);\n}\n";
        let error = compile_error(nvrtc, &program(source), &CompileOptions::new());
        let [found] = &error.errors().collect::<Vec<_>>()[..] else {
            panic!("one error: {error}")
        };
        let location = found.location.as_ref().expect("it has a location");
        assert_eq!(
            (location.file.as_str(), location.line, found.severity),
            ("k.cu", 3, Severity::Error)
        );
        assert_eq!(&*error.call.name, "NVRTC_ERROR_COMPILATION");
        let mut expected = String::from(
            "error: identifier \"nonsense\" is undefined\n --> k.cu:3:4\n  |\n3 |       nonsense(3);\n",
        );
        expected.push_str("  |       ^^^^^^^^");
        if nvrtc.version() < CudaVersion::new(12, 1) {
            expected = String::from(
                "error: identifier \"nonsense\" is undefined\n --> k.cu:3\n  |\n3 |       nonsense(3);",
            );
        }
        assert!(
            error.to_string().ends_with(&expected),
            "{error}\nis not\n{expected}"
        );
        assert!(
            error
                .to_string()
                .starts_with("`k.cu`: not compiled (nvrtcCompileProgram: failed"),
            "{error}"
        );
    });
}

#[test]
fn error_in_a_header_shows_its_line() {
    with_nvrtc("error_in_a_header_shows_its_line", |nvrtc| {
        let program = program(SCALE).with_header("scale.h", "\n#define SCALE 3\n#error stop");
        let error = compile_error(nvrtc, &program, &CompileOptions::new());
        let location = error.diagnostics[0]
            .location
            .as_ref()
            .expect("it has a location");
        assert_eq!(
            (
                location.file.as_str(),
                location.line,
                location.source.as_deref()
            ),
            ("scale.h", 3, Some("#error stop"))
        );
    });
}

#[test]
fn instantiation_that_led_to_an_error_is_its_note() {
    with_nvrtc("instantiation_that_led_to_an_error_is_its_note", |nvrtc| {
        let source = "template<class T> __device__ T f(T a) { return a.x; }\n__global__ void k(float* p) { *p = f(*p); }\n";
        let error = compile_error(nvrtc, &program(source), &CompileOptions::new());
        let [diagnostic] = &error.diagnostics[..] else {
            panic!("one error: {error:?}")
        };
        let [note] = &diagnostic.notes[..] else {
            panic!("one note: {diagnostic:?}")
        };
        assert!(
            note.message.contains("instantiation of") && note.message.contains('2'),
            "{note:?}"
        );
        assert!(
            error.to_string().contains("\n  = note: detected during"),
            "{error}"
        );
    });
}

#[test]
fn column_after_multibyte_characters_is_right() {
    with_nvrtc("column_after_multibyte_characters_is_right", |nvrtc| {
        let source = "__global__ void k() { /* \u{e9}\u{20ac} */ nonsense(3); }";
        let error = compile_error(nvrtc, &program(source), &CompileOptions::new());
        let mark = error
            .to_string()
            .lines()
            .last()
            .map(str::to_owned)
            .expect("there are lines");
        if nvrtc.version() >= CudaVersion::new(12, 1) {
            assert!(
                mark.trim_start_matches(['|', ' ']).starts_with("^^^^^^^^"),
                "{error}"
            );
        }
    });
}

#[test]
fn warning_is_given_with_the_ptx() {
    with_nvrtc("warning_is_given_with_the_ptx", |nvrtc| {
        let source = "extern \"C\" __global__ void warned() { int unused; }";
        let warned = compiled(nvrtc, &program(source), &CompileOptions::new());
        let [warning] = warned.diagnostics() else {
            panic!("one warning: {}", warned.log())
        };
        assert_eq!(
            (warning.severity, warning.number.as_deref()),
            (Severity::Warning, Some("177-D")),
            "{warning}"
        );
        let silent = compiled(
            nvrtc,
            &program(source),
            &CompileOptions::new().without_diagnostic(177),
        );
        assert_eq!(silent.diagnostics(), []);
        compile_error(
            nvrtc,
            &program(source),
            &CompileOptions::new().with_diagnostic_as_error(177),
        );
    });
}

#[test]
fn unknown_option_is_an_error_that_names_it() {
    with_nvrtc("unknown_option_is_an_error_that_names_it", |nvrtc| {
        let error = compile_error(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_option("--nonsense"),
        );
        let [found] = &error.errors().collect::<Vec<_>>()[..] else {
            panic!("one error: {error}")
        };
        assert!(
            found.message.contains("--nonsense") && found.location.is_none(),
            "{error}"
        );
    });
}

#[test]
fn option_changes_the_code() {
    with_nvrtc("option_changes_the_code", |nvrtc| {
        let program =
            program("extern \"C\" __global__ void product(float* x) { *x = *x * x[1] + x[2]; }");
        let default = CompileOptions::new();
        let separate = CompileOptions::new().with_fused_multiply_add(false);
        // The last value counts.
        let twice = CompileOptions::new()
            .with_fused_multiply_add(true)
            .with_fused_multiply_add(false);
        for (options, is_fused) in [(default, true), (separate, false), (twice, false)] {
            let compiled = compiled(nvrtc, &program, &options);
            let ptx = compiled.ptx().expect("PTX is there");
            assert_eq!(ptx.contains("fma.rn.f32"), is_fused, "{options:?}");
        }
    });
}

#[test]
fn architecture_for_a_device_compiles() {
    with_nvrtc("architecture_for_a_device_compiles", |nvrtc| {
        let supported = nvrtc.supported_architectures().expect("NVRTC reports them");
        let capability = ComputeCapability { major: 9, minor: 0 };
        assert!(supported.contains(&capability), "{supported:?}");
        let config = Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
        let simulator = Simulator::new(config).expect("the settings are right");
        let driver = simulator.driver::<Driver>().expect("the table is complete");
        let device = driver.device(0).expect("there is one");
        let architecture = nvrtc
            .architecture_for(&device)
            .expect("NVRTC compiles for the device");
        assert_eq!(architecture, Architecture::from(capability));
        compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_architecture(architecture),
        );
    });
}

#[test]
fn real_architecture_gives_a_cubin_that_is_an_image() {
    with_nvrtc(
        "real_architecture_gives_a_cubin_that_is_an_image",
        |nvrtc| {
            let options = CompileOptions::new().with_architecture(Architecture::new(8, 0).real());
            let compiled = compiled(nvrtc, &program(EMPTY), &options);
            assert!(
                compiled
                    .cubin()
                    .expect("it was requested")
                    .starts_with(b"\x7fELF")
            );
            assert_eq!(
                compiled.image().expect("it is whole").kind(),
                curium_driver::ImageKind::Cubin
            );
        },
    );
}

#[test]
fn intermediate_forms_replace_ptx() {
    with_nvrtc("intermediate_forms_replace_ptx", |nvrtc| {
        let lto = compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_link_time_optimization(),
        );
        assert!(!lto.lto_ir().expect("it was requested").is_empty());
        assert!(matches!(
            lto.ptx(),
            Err(Error::NoOutput { wanted: "PTX", .. })
        ));
        if nvrtc.version().major() >= 12 {
            let optix = compiled(
                nvrtc,
                &program(EMPTY),
                &CompileOptions::new().with_optix_ir(),
            );
            assert!(!optix.optix_ir().expect("it was requested").is_empty());
        }
    });
}

#[test]
fn name_expressions_have_lowered_names() {
    with_nvrtc("name_expressions_have_lowered_names", |nvrtc| {
        let source = "namespace n { template<class T> __global__ void k(T* x) { *x = 1; } __constant__ int table; }";
        let program = program(source)
            .with_name_expression("n::k<float>")
            .with_name_expression("&n::table");
        let compiled = compiled(nvrtc, &program, &CompileOptions::new());
        let lowered = compiled
            .lowered_name("n::k<float>")
            .expect("it is one of the program's");
        assert_eq!(lowered, "_ZN1n1kIfEEvPT_");
        assert!(compiled.ptx().expect("PTX is there").contains(lowered));
        compiled
            .lowered_name("&n::table")
            .expect("it is one of the program's");
        let error = compiled
            .lowered_name("n::k<int>")
            .expect_err("it is not")
            .to_string();
        assert!(
            error.contains("`k.cu`: unknown name expression (`n::k<int>`)"),
            "{error}"
        );
    });
}

#[test]
fn name_expression_that_is_nothing_is_an_error() {
    with_nvrtc("name_expression_that_is_nothing_is_an_error", |nvrtc| {
        let error = compile_error(
            nvrtc,
            &program(EMPTY).with_name_expression("absent<int>"),
            &CompileOptions::new(),
        );
        assert!(error.to_string().contains("absent"), "{error}");
    });
}

#[test]
fn precompiled_header_is_created_on_request() {
    with_nvrtc("precompiled_header_is_created_on_request", |nvrtc| {
        let folder = tempfile::tempdir().expect("a folder can be created");
        if nvrtc.version() < CudaVersion::new(12, 8) {
            assert!(matches!(
                nvrtc.precompiled_header_heap(),
                Err(Error::Missing(_))
            ));
            return;
        }
        let header = "namespace n { template<class T> struct S { T value; }; }\n";
        std::fs::write(folder.path().join("a.h"), header).expect("the folder is writable");
        let options = CompileOptions::new()
            .with_include_path(folder.path())
            .with_precompiled_header_folder(folder.path());
        let source = "#include \"a.h\"\nextern \"C\" __global__ void k(int* x) { n::S<int> s{3}; *x = s.value; }";
        let creating = compiled(
            nvrtc,
            &program(source),
            &options.clone().with_created_precompiled_header("a.pch"),
        );
        assert_eq!(
            creating.precompiled_header(),
            PrecompiledHeader::Created,
            "{}",
            creating.log()
        );
        let used = compiled(
            nvrtc,
            &program(source),
            &options.with_used_precompiled_header("a.pch"),
        );
        assert_eq!(
            used.ptx().expect("PTX is there"),
            creating.ptx().expect("PTX is there")
        );
        assert!(nvrtc.precompiled_header_heap().expect("it has a size") > 0);
    });
}

#[test]
fn cancelled_compilation_is_the_error_cancelled() {
    with_nvrtc("cancelled_compilation_is_the_error_cancelled", |nvrtc| {
        let queries = AtomicU32::new(0);
        let result = nvrtc.compile_unless(
            &|| {
                queries.fetch_add(1, Ordering::Relaxed);
                true
            },
            &program(EMPTY),
            &CompileOptions::new(),
        );
        if nvrtc.version() < CudaVersion::new(12, 8) {
            assert!(matches!(result, Err(Error::Missing(_))), "{result:?}");
            return;
        }
        assert!(matches!(result, Err(Error::Cancelled { .. })), "{result:?}");
        assert!(queries.load(Ordering::Relaxed) > 0);
        let result = nvrtc.compile_unless(&|| false, &program(EMPTY), &CompileOptions::new());
        result
            .expect("it is not canceled")
            .ptx()
            .expect("PTX is there");
    });
}

#[test]
fn cancellation_panic_resumes_in_the_caller() {
    with_nvrtc("cancellation_panic_resumes_in_the_caller", |nvrtc| {
        if nvrtc.version() < CudaVersion::new(12, 8) {
            return;
        }
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            nvrtc
                .compile_unless(&|| panic!("asked"), &program(EMPTY), &CompileOptions::new())
                .map(|_| ())
        }))
        .expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&"asked"));
    });
}

#[test]
fn time_trace_is_written() {
    with_nvrtc("time_trace_is_written", |nvrtc| {
        if nvrtc.version() < CudaVersion::new(12, 8) {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder can be created");
        compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_time_trace(folder.path().join("trace")),
        );
        let file = ["trace", "trace.json"]
            .map(|name| folder.path().join(name))
            .into_iter()
            .find(|file| file.exists());
        let text = std::fs::read_to_string(file.expect("it is written")).expect("it is readable");
        assert!(text.contains("traceEvents"), "{text}");
    });
}

#[test]
fn headers_that_nvrtc_brings_are_installed_and_found() {
    with_nvrtc(
        "headers_that_nvrtc_brings_are_installed_and_found",
        |nvrtc| {
            if nvrtc.version() < CudaVersion::new(13, 3) {
                assert!(matches!(nvrtc.bundled_headers(), Err(Error::Missing(_))));
                return;
            }
            let folder = tempfile::tempdir().expect("a folder can be created");
            let headers = folder.path().join("headers");
            let Some(bundled) = nvrtc.bundled_headers().expect("NVRTC reports them") else {
                return;
            };
            assert!(bundled.files > 100, "{bundled:?}");
            nvrtc
                .install_bundled_headers(&headers, curium_nvrtc::InstallFlags::new())
                .expect("the folder is writable");
            let source = "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { *x = __float2half(1.0f); }";
            compiled(
                nvrtc,
                &program(source),
                &CompileOptions::new().with_include_path(&headers),
            );
            nvrtc
                .remove_bundled_headers(&headers)
                .expect("they are there");
            let error =
                nvrtc.install_bundled_headers("/proc/nowhere", curium_nvrtc::InstallFlags::new());
            assert!(
                error
                    .expect_err("nothing can be creating there")
                    .to_string()
                    .starts_with("/proc/nowhere: ")
            );
        },
    );
}

fn refused(nvrtc: &Nvrtc, program: &Program) -> String {
    nvrtc
        .compile(program, &CompileOptions::new())
        .expect_err("there is a NUL")
        .to_string()
}

#[test]
fn nul_in_a_text_is_refused_with_its_location() {
    with_nvrtc("nul_in_a_text_is_refused_with_its_location", |nvrtc| {
        assert_eq!(
            refused(nvrtc, &program("int x;\0")),
            "the source of `k.cu`: NUL character (byte 6)"
        );
        let error = refused(nvrtc, &program("").with_header("a.h", "//\0"));
        assert!(
            error.contains("header") && error.contains("byte 2"),
            "{error}"
        );
        let error = refused(nvrtc, &program("").with_name_expression("a\0b"));
        assert!(error.contains("name expression"), "{error}");
    });
}
