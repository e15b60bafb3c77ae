//! [`Module`]: loading code into a context.

use curium_driver::{CudaVersion, Error, Function, LaunchConfig, Module};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

#[driver_test]
fn module_kernel_runs(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let module = Module::from_ptx(stream.context(), kernels::FILL)?;
    assert_eq!(module.context(), stream.context());
    assert!(!module.as_raw().is_null());
    let fill = module.kernel::<(&mut [u32], u32, u32)>("fill")?;
    drop(module);
    let mut buffer = DeviceBuffer::zeroed(&stream, 100)?;
    // SAFETY: `fill` writes the first 100 words, which the buffer has.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(100),
            (&mut buffer, 9, 100),
        )
    }?;
    assert_eq!(buffer.to_vec()?, [9; 100]);
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(11, 8)))]
fn modules_work_on_the_oldest_driver(test: &TestDriver, _: &Simulator) -> TestResult {
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    module.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let error = module
        .kernel::<(u8,)>("fill")
        .expect_err("the PTX declares the parameters");
    assert!(
        error
            .to_string()
            .contains("kernel `fill` has 3 parameters, and `(u8)` declares 1"),
        "{error}"
    );
    let error = module
        .kernel::<()>("fill_indez")
        .expect_err("there is no such kernel");
    assert!(
        error
            .to_string()
            .contains("the image has `fill`, `fill_index`"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn broken_ptx_is_an_error_with_the_compilers_log(test: &TestDriver) -> TestResult {
    let broken = kernels::SAXPY.replacen("fma.rn.f32", "fma.xx.f32", 1);
    assert_ne!(broken, kernels::SAXPY, "the test breaks the PTX");
    let error = Module::from_ptx(&test.context(), &broken).expect_err("the PTX is broken");
    assert_eq!(error.function(), Some(Function::cuModuleLoadDataEx));
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    let log = error.log.as_deref().ok_or("no compiler log")?;
    let line = broken
        .lines()
        .position(|line| line.contains("fma.xx"))
        .ok_or("no line with `fma.xx`")?
        + 1;
    assert!(log.contains(&format!("line {line}")), "{log}");
    Ok(())
}

#[driver_test]
fn missing_kernel_is_an_error_that_names_it(test: &TestDriver) -> TestResult {
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    let error = module
        .kernel::<()>("absent")
        .expect_err("there is no such kernel");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
    assert_eq!(error.function(), Some(Function::cuModuleGetFunction));
    assert!(error.to_string().contains("kernel `absent`"), "{error}");
    Ok(())
}

#[driver_test]
fn module_in_use_is_given_back_by_close(test: &TestDriver) -> TestResult {
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    let clone = module.clone();
    let (module, error) = module
        .close()
        .expect_err("the clone keeps the module")
        .into_parts();
    assert!(matches!(error, Error::Argument(_)), "{error}");
    drop(clone);
    module.close()?;
    Ok(())
}

/// A module that the driver does not unload is returned by close.
#[simulator_test]
fn close_returns_an_unloaded_module(test: &TestDriver, simulator: &Simulator) -> TestResult {
    for function in [
        Function::cuModuleUnload,
        Function::cuCtxGetCurrent,
        Function::cuCtxPushCurrent_v2,
    ] {
        let module = Module::from_ptx(&test.context(), kernels::FILL)?;
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (module, error) = module
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(function));
        module.kernel::<(&mut [u32], u32, u32)>("fill")?;
    }
    Ok(())
}

/// A module is unloaded once though its context cannot be left.
#[simulator_test]
fn module_is_unloaded_once_if_the_pop_fails(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    simulator.inject(
        Fault::on(Function::cuCtxPopCurrent_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let before = simulator.calls(Function::cuModuleUnload);
    drop(module);
    assert_eq!(simulator.calls(Function::cuModuleUnload) - before, 1);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Module;
    use curium_tests::kernels;

    use crate::operations::{Fill, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Module::from_ptx", |fixture| {
            made(Module::from_ptx(&fixture.context, kernels::FILL)?)
        }),
        ("Module::kernel", |fixture| {
            made(fixture.module.kernel::<Fill>("fill")?)
        }),
        ("Module::close", |fixture| {
            Module::from_ptx(&fixture.context, kernels::FILL)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Module::untyped_kernel", |fixture| {
            made(fixture.module.untyped_kernel("fill")?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
