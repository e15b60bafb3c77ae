//! [`JitOptions`](curium_driver::JitOptions) and the logs of the JIT compiler.

use std::time::Duration;

use curium_driver::{
    Error, HostSymbol, Image, JitCacheMode, JitFallback, JitOptions, JitTarget, Library,
    LtoOptions, Module,
};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

#[driver_test]
fn module_with_options_is_compiled_and_reported(test: &TestDriver) -> TestResult {
    let capability = test.device().compute_capability()?;
    let options = JitOptions::new()
        .with_max_registers(64)
        .with_optimization_level(1)
        .with_target(JitTarget::new(capability))
        .with_fallback(JitFallback::PreferPtx)
        .with_line_info(true)
        .with_verbose(true)
        .with_measure_time(true)
        .with_cache_mode(JitCacheMode::L2);
    let image = Image::from_ptx(kernels::FILL)?;
    let module = Module::from_image(&test.context(), &image, &options)?;
    assert!(
        module
            .report()
            .wall_time
            .is_some_and(|time| time < Duration::from_secs(60)),
        "{:?}",
        module.report()
    );
    assert_eq!(&*module.report().errors, "");
    module.kernel::<(&mut [u32], u32, u32)>("fill")?;
    Ok(())
}

/// Symbols are refused for libraries which would outlive them.
#[driver_test]
fn borrowed_symbols_are_refused_for_libraries(test: &TestDriver) -> TestResult {
    let image = Image::from_ptx(kernels::FILL)?;
    let mut word = 0_u32;
    // SAFETY: no loaded code refers to this symbol.
    let symbols = [unsafe { HostSymbol::new(c"word", (&raw mut word).cast()) }];
    let names = [c"fill"];
    let lto = LtoOptions::new().with_referenced_kernels(&names);
    for options in [
        JitOptions::new().with_symbols(&symbols),
        JitOptions::new().with_lto(lto),
    ] {
        let error = Library::from_image(test.driver(), &image, &options)
            .expect_err("the library does not store names");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    Ok(())
}

#[driver_test]
fn broken_ptx_in_a_library_is_an_error_with_the_log(test: &TestDriver) {
    let broken = kernels::SAXPY.replacen("fma.rn.f32", "fma.xx.f32", 1);
    let error = Library::from_ptx(test.driver(), &broken).expect_err("the PTX is broken");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_PTX));
    assert!(error.to_string().contains("Image(Ptx, "), "{error}");
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert!(
        error
            .log
            .as_deref()
            .is_some_and(|log| log.contains("line ")),
        "{:?}",
        error.log
    );
}
