//! The kernels of loaded code, their parameters, and their loading state in a context.

use std::ffi::{CStr, c_char, c_void};

use curium_driver::{
    Driver, Function, KernelParameter, LaunchAttributes, LaunchConfig, Library, LoadState,
    LoadingMode, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::{CUlibrary, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_simulator, simulator_test};

type Fill<'a> = (&'a mut [u32], u32, u32);

#[driver_test]
fn every_kernel_is_listed_by_its_name(test: &TestDriver) -> TestResult {
    let context = test.context();
    let library = Library::from_ptx(&context, kernels::REDUCE)?;
    let module = Module::from_ptx(&context, kernels::REDUCE)?;
    let expected = ["reduce_max_i32", "reduce_sum_f32", "reduce_sum_u32"];
    for (names, listed) in [
        (library.kernel_names(), library.kernels()),
        (module.kernel_names(), module.kernels()),
    ] {
        let mut names = names?;
        names.sort();
        assert_eq!(names, expected);
        for kernel in listed? {
            assert!(expected.contains(&kernel.name()), "{kernel:?}");
            kernel.typed::<(&[u32], &mut [u32], u32)>()?;
        }
    }
    Ok(())
}

/// Listing kernels on an older driver names the missing function.
#[simulator_test(Config::new().without(Function::cuLibraryEnumerateKernels))]
fn kernel_listing_names_the_missing_function(test: &TestDriver, _: &Simulator) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let error = library.kernels().expect_err("the driver cannot list them");
    assert_eq!(error.function(), Some(Function::cuLibraryEnumerateKernels));
    Ok(())
}

#[driver_test]
fn parameters_have_offsets_and_sizes(test: &TestDriver) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::SAXPY)?;
    let saxpy = library.untyped_kernel("saxpy")?;
    let parameters = saxpy.parameters()?.ok_or("unknown parameters")?;
    let offsets: Vec<_> = parameters
        .iter()
        .map(|KernelParameter { offset, size, .. }| (*offset, *size))
        .collect();
    assert_eq!(offsets, [(0, 4), (8, 8), (16, 8), (24, 4)]);
    match saxpy.parameter_count() {
        Ok(count) => assert_eq!(count, 4),
        Err(error) => assert_eq!(error.function(), Some(Function::cuKernelGetParamCount)),
    }
    Ok(())
}

#[driver_test]
fn untyped_kernel_runs_with_argument_addresses(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let fill = library.untyped_kernel("fill")?;
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 10)?;
    let mut pointer = buffer.as_pointer().as_raw();
    let mut value = 6_u32;
    let mut count = 10_u32;
    let arguments: &mut [*mut c_void] = &mut [
        (&raw mut pointer).cast(),
        (&raw mut value).cast(),
        (&raw mut count).cast(),
    ];
    let config = LaunchConfig::for_elements(10);
    // SAFETY: these are the arguments of `fill`, which writes the 10 words of the buffer on the
    // buffer's own stream.
    unsafe { fill.launch_raw(&stream, config, &LaunchAttributes::new(), arguments) }?;
    assert_eq!(buffer.to_vec()?, [6; 10]);
    Ok(())
}

#[driver_test]
fn library_kernel_is_a_function_in_each_context(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let fill = library.kernel::<Fill>("fill")?;
    let function = fill.in_context(&context)?;
    drop((library, fill));
    function.load(&context)?;
    assert_eq!(function.load_state(&context)?, LoadState::Loaded);
    let mut buffer = DeviceBuffer::zeroed(&stream, 10)?;
    // SAFETY: `fill` writes the first 10 words, which the buffer has.
    unsafe {
        function.launch(
            &stream,
            LaunchConfig::for_elements(10),
            (&mut buffer, 5, 10),
        )
    }?;
    assert_eq!(buffer.to_vec()?, [5; 10]);
    assert_ne!(test.driver().loading_mode()?, LoadingMode::Unknown(0));
    Ok(())
}

#[simulator_test(Config::new().with_devices(2))]
fn function_is_refused_in_another_context(test: &TestDriver, _: &Simulator) -> TestResult {
    let other = test
        .driver()
        .device(1)
        .and_then(|device| device.primary_context())?;
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    let fill = module.kernel::<Fill>("fill")?;
    let error = fill
        .in_context(&other)
        .map(drop)
        .expect_err("the module is in the first context");
    assert!(
        error
            .to_string()
            .contains("kernel `fill` belongs to another context"),
        "{error}"
    );
    fill.load_state(&other).expect_err("as above");
    Ok(())
}

#[driver_test]
fn library_module_is_unloaded_with_it(test: &TestDriver) -> TestResult {
    let context = test.context();
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let module = library.module(&context)?;
    let library = library
        .close()
        .expect_err("the module keeps the library")
        .value;
    module.kernel::<Fill>("fill")?;
    test.assert_calls(Function::cuModuleUnload, 0, || {
        module.close().map_err(|returned| returned.error)
    })?;
    library.close()?;
    Ok(())
}

/// A unified function that is absent is an error that names it.
#[driver_test]
fn absent_unified_function_is_named(test: &TestDriver) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let error = library
        .unified_function("absent")
        .expect_err("there is none");
    assert_eq!(
        error.function(),
        Some(Function::cuLibraryGetUnifiedFunction)
    );
    assert!(
        error.to_string().contains("unified function `absent`"),
        "{error}"
    );
    let error = library.managed::<u32>("absent").expect_err("there is none");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
    Ok(())
}

/// A unified function is that of the driver with the name.
#[test]
fn unified_function_has_a_name() -> TestResult {
    /// Resolves one function by name.
    unsafe extern "C" fn known(
        output: *mut *mut c_void,
        library: CUlibrary,
        name: *const c_char,
    ) -> CUresult {
        assert!(!library.is_null());
        // SAFETY: the caller passes a NUL-terminated string.
        if unsafe { CStr::from_ptr(name) } != c"half" {
            return CUresult::CUDA_ERROR_NOT_FOUND;
        }
        // SAFETY: the caller passes a pointer that is valid for writes.
        unsafe { output.write(std::ptr::without_provenance_mut(0x700)) };
        CUresult::CUDA_SUCCESS
    }
    on_simulator(Config::new(), |_, simulator| -> TestResult {
        let mut api = simulator.api();
        api.cuLibraryGetUnifiedFunction = Some(known);
        // SAFETY: the functions are the simulator's, which outlives the driver, and the one above.
        let driver = unsafe { Driver::from_api(api) }?;
        let library = Library::from_ptx(&driver, kernels::FILL)?;
        assert_eq!(library.unified_function("half")?.addr(), 0x700);
        let error = library
            .unified_function("other")
            .expect_err("there is none");
        assert!(
            error.to_string().contains("unified function `other`"),
            "{error}"
        );
        Ok(())
    })?;
    Ok(())
}

/// Code is loaded with its module unless loading is lazy.
#[driver_test]
fn code_loads_with_its_module_unless_lazy(test: &TestDriver) -> TestResult {
    let context = test.context();
    let module = Module::from_ptx(&context, kernels::FILL)?;
    let fill = module.kernel::<Fill>("fill")?;
    let state = || fill.load_state(&context);
    match test.driver().loading_mode()? {
        LoadingMode::Eager => assert_eq!(state()?, LoadState::Loaded),
        mode => assert_eq!(mode, LoadingMode::Lazy),
    }
    fill.load(&context)?;
    assert_eq!(state()?, LoadState::Loaded);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig};
    use curium_memory::DeviceBuffer;

    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::load_state", |fixture| {
            made(fixture.fill.load_state(&fixture.context)?)
        }),
        ("Library::kernels", |fixture| {
            made(fixture.library.kernels()?)
        }),
        ("Library::kernel_names", |fixture| {
            made(fixture.library.kernel_names()?)
        }),
        ("Module::kernels", |fixture| made(fixture.module.kernels()?)),
        ("Module::kernel_names", |fixture| {
            made(fixture.module.kernel_names()?)
        }),
        ("Driver::loading_mode", |fixture| {
            made(fixture.driver.loading_mode()?)
        }),
        ("Kernel::launch_raw", |fixture| {
            let kernel = fixture.library.untyped_kernel("fill")?;
            let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
            let mut address = buffer.as_pointer().as_raw();
            let mut value = 7_u32;
            let mut len = LEN as u32;
            let mut arguments = [
                (&raw mut address).cast(),
                (&raw mut value).cast(),
                (&raw mut len).cast(),
            ];
            let config = LaunchConfig::new(1, 32);
            let attributes = LaunchAttributes::new();
            // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream,
            // which orders it.
            made(unsafe {
                kernel.launch_raw(&fixture.stream, config, &attributes, &mut arguments)
            }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("Kernel::parameter_count", |fixture| {
            made(fixture.fill.parameter_count()?)
        }),
        ("Kernel::launch_raw_updatable", |fixture| {
            let kernel = fixture.library.untyped_kernel("fill")?;
            let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
            let mut address = buffer.as_pointer().as_raw();
            let mut value = 7_u32;
            let mut len = LEN as u32;
            let mut arguments = [
                (&raw mut address).cast(),
                (&raw mut value).cast(),
                (&raw mut len).cast(),
            ];
            let config = LaunchConfig::new(1, 32);
            let attributes = LaunchAttributes::new();
            // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream,
            // which orders it.
            made(unsafe {
                kernel.launch_raw_updatable(&fixture.stream, config, &attributes, &mut arguments)
            }?)
        }),
        ("Library::unified_function", |fixture| {
            made(fixture.library.unified_function("fill")?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
