//! Every typed option, passed to the real NVRTC.

use crate::library::TestResult;
use std::num::NonZero;

use crate::library::{compiled, program, with_nvrtc};
use curium_driver::CudaVersion;
use curium_nvrtc::{Architecture, CompileOptions, FastCompile, LanguageStandard, WarningKind};

type With = fn(CompileOptions) -> CompileOptions;

/// Options that can be used alone, with the version that introduced each.
const OPTIONS: &[((u32, u32), With)] = &[
    ((11, 8), |options| {
        options.with_architecture(Architecture::new(8, 0))
    }),
    ((11, 8), |options| options.with_relocatable_code(true)),
    ((11, 8), CompileOptions::with_extensible_whole_program),
    ((11, 8), CompileOptions::with_device_debug),
    ((11, 8), CompileOptions::with_line_info),
    ((11, 8), |options| {
        options.with_device_debug().with_device_optimization()
    }),
    ((12, 9), |options| {
        options.with_fast_compile(FastCompile::Max)
    }),
    ((11, 8), |options| {
        options
            .with_architecture(Architecture::new(8, 0).real())
            .with_ptxas_option("--verbose")
            .with_ptxas_option("-O1")
    }),
    ((11, 8), |options| options.with_max_registers(32)),
    ((11, 8), |options| {
        options
            .with_flush_to_zero(true)
            .with_precise_square_root(false)
            .with_precise_division(false)
    }),
    ((11, 8), |options| options.with_fused_multiply_add(false)),
    ((11, 8), CompileOptions::with_fast_math),
    ((13, 4), |options| {
        options.with_no_signed_zeros().with_finite_math_only()
    }),
    ((11, 8), CompileOptions::with_extra_vectorization),
    ((11, 8), |options| options.with_raised_stack_limit(false)),
    ((11, 8), CompileOptions::with_link_time_optimization),
    ((12, 0), |options| {
        options
            .with_link_time_optimization()
            .with_optimized_lto_ir()
    }),
    ((12, 0), CompileOptions::with_optix_ir),
    ((12, 3), |options| options.with_jump_table_density(50)),
    ((12, 6), |options| options.with_stack_protector(true)),
    ((12, 2), |options| options.with_split_compile(2)),
    ((12, 9), |options| options.with_random_seed("7")),
    ((12, 4), CompileOptions::with_syntax_check_only),
    ((12, 9), CompileOptions::without_compiler_cache),
    ((11, 8), |options| {
        options.with_standard(LanguageStandard::Cxx14)
    }),
    ((12, 0), |options| {
        options.with_standard(LanguageStandard::Cxx20)
    }),
    ((11, 8), |options| {
        options
            .with_macro("A")
            .with_macro_value("B", "2")
            .without_macro("A")
    }),
    ((11, 8), |options| {
        options
            .with_include_path("/nowhere")
            .with_include_path("/nowhere/else")
    }),
    ((11, 8), |options| options.with_pre_include("before.h")),
    ((11, 8), CompileOptions::without_source_include),
    ((11, 8), |options| {
        options
            .with_builtin_move_forward(false)
            .with_builtin_initializer_list(false)
    }),
    ((11, 8), CompileOptions::with_restrict),
    ((11, 8), CompileOptions::with_default_device),
    ((11, 8), CompileOptions::with_int128),
    ((12, 8), |options| {
        options
            .with_architecture(Architecture::new(10, 0))
            .with_float128()
    }),
    ((12, 4), CompileOptions::with_minimal),
    ((11, 8), CompileOptions::without_warnings),
    ((13, 1), CompileOptions::with_reorder_warnings),
    ((13, 4), CompileOptions::with_conversion_warnings),
    ((13, 1), |options| {
        options
            .with_warning_as_error(WarningKind::Reorder)
            .with_warning_as_error(WarningKind::Deprecated)
    }),
    ((13, 4), |options| {
        options.with_max_errors(NonZero::<u32>::MIN)
    }),
    ((11, 8), CompileOptions::with_inlining_remarks),
    ((11, 8), CompileOptions::without_warning_numbers),
    ((11, 8), |options| {
        options
            .with_diagnostic_as_error(177)
            .with_diagnostic_as_error(550)
    }),
    ((11, 8), |options| {
        options
            .with_diagnostic_as_warning(177)
            .without_diagnostic(550)
    }),
    ((12, 1), |options| options.with_brief_diagnostics(true)),
    ((12, 1), |options| options.with_times("-")),
    ((12, 8), |options| {
        options
            .with_automatic_precompiled_header()
            .with_precompiled_header_reasons(false)
            .with_precompiled_templates(true)
    }),
    ((12, 8), |options| {
        options
            .with_automatic_precompiled_header()
            .with_precompiled_header_messages(false)
    }),
];

#[test]
fn options_since_their_version() -> TestResult {
    with_nvrtc("options_since_their_version", |nvrtc| {
        let program = program("extern \"C\" __global__ void k(float* x) { *x = 2 * *x; }")
            .with_header("before.h", "");
        for ((major, minor), with) in OPTIONS {
            let options = with(CompileOptions::new());
            if nvrtc.version() >= CudaVersion::new(*major, *minor) {
                compiled(nvrtc, &program, &options);
            }
        }
        Ok(())
    })
}

#[test]
fn newer_option_is_an_error() -> TestResult {
    with_nvrtc("newer_option_is_an_error", |nvrtc| {
        let program = program("extern \"C\" __global__ void k() {}");
        if nvrtc.version() < CudaVersion::new(13, 4) {
            let error = nvrtc
                .compile(&program, &CompileOptions::new().with_utf8())
                .expect_err("it is not known");
            assert!(error.to_string().contains("--utf-8"), "{error}");
        }
        Ok(())
    })
}
