//! The kernels of loaded code, their parameters, and their loading state in a context.

use std::ffi::{CStr, c_char, c_void};

use curium_driver::{
    Driver, Function, KernelParameter, LaunchAttributes, LaunchConfig, Library, LoadState,
    LoadingMode, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_sys::{CUlibrary, CUresult};
use curium_tests::{kernels, on_driver, on_simulator};

type Fill<'a> = (&'a mut [u32], u32, u32);

#[test]
fn every_kernel_is_listed_by_its_name() {
    on_driver(|test| {
        let context = test.context();
        let library = Library::from_ptx(&context, kernels::REDUCE).expect("the PTX is valid");
        let module = Module::from_ptx(&context, kernels::REDUCE).expect("the PTX is valid");
        let expected = ["reduce_max_i32", "reduce_sum_f32", "reduce_sum_u32"];
        for (names, listed) in [
            (library.kernel_names(), library.kernels()),
            (module.kernel_names(), module.kernels()),
        ] {
            let mut names = names.expect("the driver lists kernels");
            names.sort();
            assert_eq!(names, expected);
            for kernel in listed.expect("the driver lists kernels") {
                assert!(expected.contains(&kernel.name()), "{kernel:?}");
                kernel
                    .typed::<(&[u32], &mut [u32], u32)>()
                    .expect("these are the parameters of all three");
            }
        }
    });
}

#[test]
fn listing_kernels_on_an_older_driver_names_the_missing_function() {
    on_simulator(
        Config::new().without(Function::cuLibraryEnumerateKernels),
        |test, _| {
            let library =
                Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
            let error = library.kernels().expect_err("the driver cannot list them");
            assert_eq!(error.function(), Some(Function::cuLibraryEnumerateKernels));
        },
    );
}

#[test]
fn parameters_have_offsets_and_sizes() {
    on_driver(|test| {
        let library = Library::from_ptx(test.driver(), kernels::SAXPY).expect("the PTX is valid");
        let saxpy = library
            .untyped_kernel("saxpy")
            .expect("the library has the kernel");
        let parameters = saxpy
            .parameters()
            .expect("the driver works")
            .expect("the parameters are known");
        let places: Vec<_> = parameters
            .iter()
            .map(|KernelParameter { offset, size, .. }| (*offset, *size))
            .collect();
        assert_eq!(places, [(0, 4), (8, 8), (16, 8), (24, 4)]);
        match saxpy.parameter_count() {
            Ok(count) => assert_eq!(count, 4),
            Err(error) => assert_eq!(error.function(), Some(Function::cuKernelGetParamCount)),
        }
    });
}

#[test]
fn untyped_kernel_runs_with_addresses_of_values() {
    on_driver(|test| {
        let stream = test.stream();
        let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
        let fill = library
            .untyped_kernel("fill")
            .expect("the library has the kernel");
        let buffer = DeviceBuffer::<u32>::zeroed(&stream, 10).expect("memory suffices");
        let (mut pointer, mut value, mut count) = (buffer.as_pointer().as_raw(), 6_u32, 10_u32);
        let arguments: &mut [*mut c_void] = &mut [
            (&raw mut pointer).cast(),
            (&raw mut value).cast(),
            (&raw mut count).cast(),
        ];
        let config = LaunchConfig::for_elements(10);
        // SAFETY: these are the arguments of `fill`, which writes the 10 words of the buffer on the buffer's own
        // stream.
        unsafe { fill.launch_raw(&stream, config, &LaunchAttributes::new(), arguments) }
            .expect("it launches");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [6; 10]);
    });
}

#[test]
fn kernel_of_a_library_is_a_function_in_each_context() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
        let fill = library
            .kernel::<Fill>("fill")
            .expect("the library has the kernel");
        let function = fill
            .in_context(&context)
            .expect("the library can be loaded");
        drop((library, fill));
        function.load(&context).expect("there is room for the code");
        assert_eq!(
            function
                .load_state(&context)
                .expect("the driver reports it"),
            LoadState::Loaded
        );
        let mut buffer = DeviceBuffer::zeroed(&stream, 10).expect("memory suffices");
        // SAFETY: `fill` writes the first 10 words, which the buffer has.
        unsafe {
            function.launch(
                &stream,
                LaunchConfig::for_elements(10),
                (&mut buffer, 5, 10),
            )
        }
        .expect("it launches");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [5; 10]);
        assert_ne!(
            test.driver().loading_mode().expect("the driver reports it"),
            LoadingMode::Unknown(0)
        );
    });
}

#[test]
fn function_of_one_context_is_refused_in_another() {
    on_simulator(Config::new().with_devices(2), |test, _| {
        let other = test
            .driver()
            .device(1)
            .and_then(|device| device.primary_context())
            .expect("there are two");
        let module = Module::from_ptx(&test.context(), kernels::FILL).expect("the PTX is valid");
        let fill = module
            .kernel::<Fill>("fill")
            .expect("the module has the kernel");
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
    });
}

#[test]
fn module_of_a_library_is_unloaded_with_it() {
    on_driver(|test| {
        let context = test.context();
        let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
        let module = library.module(&context).expect("the library can be loaded");
        let library = library
            .close()
            .expect_err("the module keeps the library")
            .value;
        module
            .kernel::<Fill>("fill")
            .expect("the module has the kernel");
        test.assert_calls(Function::cuModuleUnload, 0, || {
            module.close().map_err(|returned| returned.error)
        })
        .expect("nothing is unloaded");
        library.close().expect("nothing keeps the library any more");
    });
}

#[test]
fn unified_function_that_is_absent_is_an_error_that_names_it() {
    on_driver(|test| {
        let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
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
    });
}

#[test]
fn unified_function_is_that_of_the_driver_with_the_name() {
    /// Resolves one function by name.
    unsafe extern "C" fn known(
        place: *mut *mut c_void,
        library: CUlibrary,
        name: *const c_char,
    ) -> CUresult {
        assert!(!library.is_null());
        // SAFETY: the caller passes a NUL-terminated string.
        if unsafe { CStr::from_ptr(name) } != c"half" {
            return CUresult::CUDA_ERROR_NOT_FOUND;
        }
        // SAFETY: the caller passes a pointer that is valid for writes.
        unsafe { place.write(std::ptr::without_provenance_mut(0x700)) };
        CUresult::CUDA_SUCCESS
    }
    on_simulator(Config::new(), |_, simulator| {
        let mut api = simulator.api();
        api.cuLibraryGetUnifiedFunction = Some(known);
        // SAFETY: the functions are the simulator's, which outlives the driver, and the one above.
        let driver = unsafe { Driver::from_api(api) }.expect("the simulator initializes");
        let library = Library::from_ptx(&driver, kernels::FILL).expect("the PTX is valid");
        assert_eq!(
            library
                .unified_function("half")
                .expect("there is one")
                .addr(),
            0x700
        );
        let error = library
            .unified_function("other")
            .expect_err("there is none");
        assert!(
            error.to_string().contains("unified function `other`"),
            "{error}"
        );
    });
}

#[test]
fn code_is_loaded_with_its_module_unless_loading_is_lazy() {
    on_driver(|test| {
        let context = test.context();
        let module = Module::from_ptx(&context, kernels::FILL).expect("the PTX is valid");
        let fill = module
            .kernel::<Fill>("fill")
            .expect("the module has the kernel");
        let state = || fill.load_state(&context).expect("the driver reports it");
        match test.driver().loading_mode().expect("the driver reports it") {
            LoadingMode::Eager => assert_eq!(state(), LoadState::Loaded),
            mode => assert_eq!(mode, LoadingMode::Lazy),
        }
        fill.load(&context).expect("there is room for the code");
        assert_eq!(state(), LoadState::Loaded);
    });
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig};
    use curium_memory::DeviceBuffer;

    use crate::operations::{LEN, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
            let (mut address, mut value, mut len) =
                (buffer.as_pointer().as_raw(), 7_u32, LEN as u32);
            let mut arguments = [
                (&raw mut address).cast(),
                (&raw mut value).cast(),
                (&raw mut len).cast(),
            ];
            let (config, attributes) = (LaunchConfig::new(1, 32), LaunchAttributes::new());
            // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream, which orders it.
            made(unsafe {
                kernel.launch_raw(&fixture.stream, config, &attributes, &mut arguments)
            }?)
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
        ("Kernel::parameter_count", |fixture| {
            made(fixture.fill.parameter_count()?)
        }),
        ("Kernel::launch_raw_updatable", |fixture| {
            let kernel = fixture.library.untyped_kernel("fill")?;
            let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
            let (mut address, mut value, mut len) =
                (buffer.as_pointer().as_raw(), 7_u32, LEN as u32);
            let mut arguments = [
                (&raw mut address).cast(),
                (&raw mut value).cast(),
                (&raw mut len).cast(),
            ];
            let (config, attributes) = (LaunchConfig::new(1, 32), LaunchAttributes::new());
            // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream, which orders it.
            made(unsafe {
                kernel.launch_raw_updatable(&fixture.stream, config, &attributes, &mut arguments)
            }?)
        }),
        ("Library::unified_function", |fixture| {
            made(fixture.library.unified_function("fill")?)
        }),
    ];
}
