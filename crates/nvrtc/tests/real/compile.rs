//! Compilation with a real NVRTC.

use crate::library::TestResult;
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
fn header_is_compiled() -> TestResult {
    with_nvrtc("header_is_compiled", |nvrtc| {
        let options = CompileOptions::new().with_architecture(Architecture::new(8, 0));
        let compiled = compiled(
            nvrtc,
            &program(SCALE).with_header("scale.h", "#define SCALE 3"),
            &options,
        );
        let ptx = compiled.ptx()?;
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
        Ok(())
    })
}

/// The table of versions has the PTX version of this NVRTC.
#[test]
fn ptx_version_is_in_the_table() -> TestResult {
    with_nvrtc("ptx_version_is_in_the_table", |nvrtc| {
        let compiled = compiled(nvrtc, &program(EMPTY), &CompileOptions::new());
        let newest = nvrtc
            .version()
            .newest_ptx()
            .ok_or("unknown version of NVRTC")?;
        let directive = format!("\n.version {newest}\n");
        let ptx = compiled.ptx()?;
        assert!(ptx.contains(&directive), "{newest}: {ptx}");
        Ok(())
    })
}

#[test]
fn error_shows_its_line() -> TestResult {
    with_nvrtc("error_shows_its_line", |nvrtc| {
        let source = "\n__global__ void bad() {\n\t  nonsense(3);\n}\n";
        let error = compile_error(nvrtc, &program(source), &CompileOptions::new());
        let [found] = &error.errors().collect::<Vec<_>>()[..] else {
            panic!("one error: {error}")
        };
        let location = found.location.as_ref().ok_or("no location")?;
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
        Ok(())
    })
}

#[test]
fn header_error_shows_its_line() -> TestResult {
    with_nvrtc("header_error_shows_its_line", |nvrtc| {
        let program = program(SCALE).with_header("scale.h", "\n#define SCALE 3\n#error stop");
        let error = compile_error(nvrtc, &program, &CompileOptions::new());
        let location = error.diagnostics[0]
            .location
            .as_ref()
            .ok_or("no location")?;
        assert_eq!(
            (
                location.file.as_str(),
                location.line,
                location.source.as_deref()
            ),
            ("scale.h", 3, Some("#error stop"))
        );
        Ok(())
    })
}

/// An error's note is the instantiation that led to it.
#[test]
fn instantiation_is_a_note() -> TestResult {
    with_nvrtc("instantiation_is_a_note", |nvrtc| {
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
        Ok(())
    })
}

#[test]
fn column_counts_characters() -> TestResult {
    with_nvrtc("column_counts_characters", |nvrtc| {
        let source = "__global__ void k() { /* \u{e9}\u{20ac} */ nonsense(3); }";
        let error = compile_error(nvrtc, &program(source), &CompileOptions::new());
        let mark = error
            .to_string()
            .lines()
            .last()
            .map(str::to_owned)
            .ok_or("no line")?;
        if nvrtc.version() >= CudaVersion::new(12, 1) {
            assert!(
                mark.trim_start_matches(['|', ' ']).starts_with("^^^^^^^^"),
                "{error}"
            );
        }
        Ok(())
    })
}

#[test]
fn warning_is_given_with_the_ptx() -> TestResult {
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
        Ok(())
    })
}

#[test]
fn unknown_option_is_named() -> TestResult {
    with_nvrtc("unknown_option_is_named", |nvrtc| {
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
        Ok(())
    })
}

#[test]
fn option_changes_the_code() -> TestResult {
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
            let ptx = compiled.ptx()?;
            assert_eq!(ptx.contains("fma.rn.f32"), is_fused, "{options:?}");
        }
        Ok(())
    })
}

#[test]
fn device_architecture_compiles() -> TestResult {
    with_nvrtc("device_architecture_compiles", |nvrtc| {
        let supported = nvrtc.supported_architectures()?;
        let capability = ComputeCapability { major: 9, minor: 0 };
        assert!(supported.contains(&capability), "{supported:?}");
        let config = Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
        let simulator = Simulator::new(config)?;
        let driver = simulator.driver::<Driver>()?;
        let device = driver.device(0)?;
        let architecture = nvrtc.architecture_for(&device)?;
        assert_eq!(architecture, Architecture::from(capability));
        compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_architecture(architecture),
        );
        Ok(())
    })
}

#[test]
fn real_architecture_gives_a_cubin() -> TestResult {
    with_nvrtc("real_architecture_gives_a_cubin", |nvrtc| {
        let options = CompileOptions::new().with_architecture(Architecture::new(8, 0).real());
        let compiled = compiled(nvrtc, &program(EMPTY), &options);
        assert!(compiled.cubin()?.starts_with(b"\x7fELF"));
        assert_eq!(compiled.image()?.kind(), curium_driver::ImageKind::Cubin);
        Ok(())
    })
}

#[test]
fn intermediate_forms() -> TestResult {
    with_nvrtc("intermediate_forms", |nvrtc| {
        let lto = compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_link_time_optimization(),
        );
        assert!(!lto.lto_ir()?.is_empty());
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
            assert!(!optix.optix_ir()?.is_empty());
        }
        Ok(())
    })
}

#[test]
fn lowered_names() -> TestResult {
    with_nvrtc("lowered_names", |nvrtc| {
        let source = "namespace n { template<class T> __global__ void k(T* x) { *x = 1; } __constant__ int table; }";
        let program = program(source)
            .with_name_expression("n::k<float>")
            .with_name_expression("&n::table");
        let compiled = compiled(nvrtc, &program, &CompileOptions::new());
        let lowered = compiled.lowered_name("n::k<float>")?;
        assert_eq!(lowered, "_ZN1n1kIfEEvPT_");
        assert!(compiled.ptx()?.contains(lowered));
        compiled.lowered_name("&n::table")?;
        let error = compiled
            .lowered_name("n::k<int>")
            .expect_err("it is not")
            .to_string();
        assert!(
            error.contains("`k.cu`: unknown name expression (`n::k<int>`)"),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn unknown_name_expression() -> TestResult {
    with_nvrtc("unknown_name_expression", |nvrtc| {
        let error = compile_error(
            nvrtc,
            &program(EMPTY).with_name_expression("absent<int>"),
            &CompileOptions::new(),
        );
        assert!(error.to_string().contains("absent"), "{error}");
        Ok(())
    })
}

#[test]
fn precompiled_header() -> TestResult {
    with_nvrtc("precompiled_header", |nvrtc| {
        let folder = tempfile::tempdir()?;
        if nvrtc.version() < CudaVersion::new(12, 8) {
            assert!(matches!(
                nvrtc.precompiled_header_heap(),
                Err(Error::Missing(_))
            ));
            return Ok(());
        }
        let header = "namespace n { template<class T> struct S { T value; }; }\n";
        std::fs::write(folder.path().join("a.h"), header)?;
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
        assert_eq!(used.ptx()?, creating.ptx()?);
        assert!(nvrtc.precompiled_header_heap()? > 0);
        Ok(())
    })
}

#[test]
fn compilation_is_cancelled() -> TestResult {
    with_nvrtc("compilation_is_cancelled", |nvrtc| {
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
            return Ok(());
        }
        assert!(matches!(result, Err(Error::Cancelled { .. })), "{result:?}");
        assert!(queries.load(Ordering::Relaxed) > 0);
        let result = nvrtc.compile_unless(&|| false, &program(EMPTY), &CompileOptions::new());
        result?.ptx()?;
        Ok(())
    })
}

#[test]
fn cancellation_panic_resumes() -> TestResult {
    with_nvrtc("cancellation_panic_resumes", |nvrtc| {
        if nvrtc.version() < CudaVersion::new(12, 8) {
            return Ok(());
        }
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            nvrtc
                .compile_unless(&|| panic!("asked"), &program(EMPTY), &CompileOptions::new())
                .map(|_| ())
        }))
        .expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&"asked"));
        Ok(())
    })
}

#[test]
fn time_trace_is_written() -> TestResult {
    with_nvrtc("time_trace_is_written", |nvrtc| {
        if nvrtc.version() < CudaVersion::new(12, 8) {
            return Ok(());
        }
        let folder = tempfile::tempdir()?;
        compiled(
            nvrtc,
            &program(EMPTY),
            &CompileOptions::new().with_time_trace(folder.path().join("trace")),
        );
        let file = ["trace", "trace.json"]
            .map(|name| folder.path().join(name))
            .into_iter()
            .find(|file| file.exists());
        let text = std::fs::read_to_string(file.ok_or("no file")?)?;
        assert!(text.contains("traceEvents"), "{text}");
        Ok(())
    })
}

#[test]
fn bundled_headers_are_available() -> TestResult {
    with_nvrtc("bundled_headers_are_available", |nvrtc| {
        if nvrtc.version() < CudaVersion::new(13, 3) {
            assert!(matches!(nvrtc.bundled_headers(), Err(Error::Missing(_))));
            return Ok(());
        }
        let folder = tempfile::tempdir()?;
        let headers = folder.path().join("headers");
        let Some(bundled) = nvrtc.bundled_headers()? else {
            return Ok(());
        };
        assert!(bundled.files > 100, "{bundled:?}");
        nvrtc.install_bundled_headers(&headers, curium_nvrtc::InstallFlags::new())?;
        let source = "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { *x = __float2half(1.0f); }";
        compiled(
            nvrtc,
            &program(source),
            &CompileOptions::new().with_include_path(&headers),
        );
        nvrtc.remove_bundled_headers(&headers)?;
        let error =
            nvrtc.install_bundled_headers("/proc/nowhere", curium_nvrtc::InstallFlags::new());
        assert!(
            error
                .expect_err("nothing can be creating there")
                .to_string()
                .starts_with("/proc/nowhere: ")
        );
        Ok(())
    })
}

fn refused(nvrtc: &Nvrtc, program: &Program) -> String {
    nvrtc
        .compile(program, &CompileOptions::new())
        .expect_err("there is a NUL")
        .to_string()
}

#[test]
fn nul_is_refused() -> TestResult {
    with_nvrtc("nul_is_refused", |nvrtc| {
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
        Ok(())
    })
}
