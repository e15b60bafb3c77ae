//! Libraries on drivers before CUDA 12.0, which have modules only.

use curium_driver::{
    ArgumentList, CudaVersion, DiskCache, Error, Function, Graph, Image, JitOptions,
    LaunchAttributes, LaunchConfig, Library, Result,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, kernels, on_simulator};

type Fill = (&'static mut [u32], u32, u32);

curium_driver::kernels! {
    struct Kernels from "../../../kernels/fill.ptx" {
        fn fill(out: &mut [u32], value: u32, n: u32);
        fn fill_index(out: &mut [u32], n: u32);
    }
}

/// Runs a test on the oldest driver, and fails with its error.
fn on_oldest_driver(devices: u32, test: impl FnOnce(&TestDriver, &Simulator) -> Result<()>) {
    let config = Config::new()
        .with_devices(devices)
        .with_driver_version(CudaVersion::OLDEST_SUPPORTED);
    on_simulator(config, |driver, simulator| {
        let outcome = test(driver, simulator);
        assert!(outcome.is_ok(), "{outcome:?}");
    });
}

#[test]
fn kernels_run() {
    on_oldest_driver(1, |test, _| {
        let stream = test.stream();
        let library = Library::from_ptx(&test.device(), kernels::FILL)?;
        let fill = library.kernel::<Fill>("fill")?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 100)?;
        let config = LaunchConfig::for_elements(100);
        // SAFETY: the kernel writes `n` elements, the length of the buffer.
        unsafe { fill.launch(&stream, config, (&mut buffer, 9, 100)) }?;
        assert_eq!(buffer.to_vec()?, [9; 100]);
        library.module(&test.context())?.untyped_kernel("fill")?;
        Ok(())
    });
}

#[test]
fn kernel_struct_loads() {
    on_oldest_driver(1, |test, _| {
        let stream = test.stream();
        let kernels = Kernels::load(&stream)?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 4)?;
        let config = LaunchConfig::for_elements(4);
        // SAFETY: the kernels write `n` elements, the length of the buffer.
        unsafe { kernels.fill.launch(&stream, config, (&mut buffer, 9, 4)) }?;
        assert_eq!(buffer.to_vec()?, [9; 4]);
        // SAFETY: as before.
        unsafe { kernels.fill_index.launch(&stream, config, (&mut buffer, 4)) }?;
        assert_eq!(buffer.to_vec()?, [0, 1, 2, 3]);
        Ok(())
    });
}

/// The library does not belong to a device, so each context gets a module.
#[test]
fn kernel_runs_on_two_devices() {
    on_oldest_driver(2, |test, simulator| {
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let fill = library.kernel::<Fill>("fill")?;
        for ordinal in [0, 1, 0, 1] {
            let stream = test.driver().device(ordinal)?.primary_context()?.stream()?;
            let mut buffer = DeviceBuffer::zeroed(&stream, 8)?;
            let config = LaunchConfig::for_elements(8);
            // SAFETY: the kernel writes `n` elements, the length of the buffer.
            unsafe { fill.launch(&stream, config, (&mut buffer, 7, 8)) }?;
            assert_eq!(buffer.to_vec()?, [7; 8]);
        }
        assert_eq!(simulator.live_handles().modules, 2);
        drop(library);
        drop(fill);
        assert_eq!(simulator.live_handles().modules, 0);
        Ok(())
    });
}

/// Every way to launch, in a stream and in a graph.
#[test]
fn kernel_launches_in_every_way() {
    on_oldest_driver(1, |test, _| {
        let context = test.context();
        let stream = test.stream();
        let library = Library::from_ptx(&context, kernels::FILL)?;
        let fill = library.kernel::<Fill>("fill")?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 8)?;
        let config = LaunchConfig::for_elements(8);
        let attributes = LaunchAttributes::new();
        // SAFETY: the kernel writes `n` elements, the length of the buffer.
        unsafe { fill.launch_with(&stream, config, &attributes, (&mut buffer, 1, 8)) }?;
        assert_eq!(buffer.to_vec()?, [1; 8]);
        // SAFETY: as before.
        unsafe { fill.launch_cooperative(&stream, config, (&mut buffer, 2, 8)) }?;
        assert_eq!(buffer.to_vec()?, [2; 8]);
        let untyped = library.untyped_kernel("fill")?;
        let arguments = ArgumentList::new()
            .write(&mut buffer)
            .value(3_u32)
            .value(8_u32);
        // SAFETY: as before.
        unsafe { untyped.launch(&stream, config, arguments) }?;
        assert_eq!(buffer.to_vec()?, [3; 8]);

        let mut graph = Graph::new(&context)?;
        let pointer = buffer.as_pointer();
        // SAFETY: the buffer outlives the graph, and the kernel writes `n` elements, its length.
        let node = unsafe { graph.add_kernel(&[], &fill, config, (pointer, 4, 8)) }?;
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, [4; 8]);
        // SAFETY: as before.
        unsafe { exec.set_kernel(&node, (pointer, 5, 8)) }?;
        exec.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, [5; 8]);
        stream.synchronize()
    });
}

/// The graph keeps the kernels that a capture launched, each with its code.
#[test]
fn kernels_outlive_their_library() {
    on_oldest_driver(1, |test, _| {
        let context = test.context();
        let stream = test.stream();
        let mut buffer = DeviceBuffer::zeroed(&stream, 4)?;
        let graph = {
            let kernels = Kernels::load(&context)?;
            let config = LaunchConfig::for_elements(4);
            Graph::capture(&context, |scope| {
                // SAFETY: the kernels write `n` elements, the length of the buffer.
                unsafe { kernels.fill.launch(scope, config, (&mut buffer, 9, 4)) }?;
                // SAFETY: as before.
                unsafe { kernels.fill_index.launch(scope, config, (&mut buffer, 3)) }
            })?
        };
        graph.instantiate()?.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, [0, 1, 2, 9]);
        Ok(())
    });
}

#[test]
fn attributes_match_the_device() {
    on_oldest_driver(1, |test, _| {
        let device = test.device();
        let context = test.context();
        let library = Library::from_ptx(&device, kernels::FILL)?;
        let fill = library.kernel::<Fill>("fill")?;
        assert!(fill.max_threads_per_block(&device)? >= 1);
        fill.set_max_dynamic_shared_bytes(&device, 1024)?;
        assert_eq!(fill.max_dynamic_shared_bytes(&device)?, 1024);
        assert!(fill.max_active_blocks(&context, 32, 0)? >= 1);
        assert!(fill.suggested_size(&context, 0, 0)?.block >= 1);
        Ok(())
    });
}

#[test]
fn loading_and_lookup_fail() {
    on_oldest_driver(1, |test, _| {
        let broken = kernels::FILL.replacen("st.global.u32", "st.nowhere.u32", 1);
        let error = Library::from_ptx(test.driver(), &broken).expect_err("the PTX is broken");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_PTX));
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let error = library
            .kernel::<()>("fill_indez")
            .expect_err("there is no such kernel");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
        let error = library
            .kernel::<(u8,)>("fill")
            .expect_err("fill has three parameters");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let error = library
            .kernel::<()>("a\0b")
            .expect_err("the name contains a NUL");
        assert!(
            error.to_string().starts_with("Library::kernel: "),
            "{error}"
        );
        Ok(())
    });
}

/// What needs a library is an error that names the function and the version.
#[test]
fn missing_functions_are_named() {
    on_oldest_driver(1, |test, _| {
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let errors = [
            library.managed::<u32>("table").map(drop),
            library.unified_function("fill").map(drop),
        ];
        let functions = [
            Function::cuLibraryGetManaged,
            Function::cuLibraryGetUnifiedFunction,
        ];
        for (error, function) in errors.into_iter().zip(functions) {
            let error = error.expect_err("CUDA 11.8 has no libraries");
            assert_eq!(
                error.to_string(),
                format!(
                    "{function} needs a driver for CUDA 12.0 or newer, and this one is for CUDA 11.8"
                )
            );
        }
        assert!(library.as_raw().is_null());
        let library = library.into_raw().expect_err("there is no handle");
        library.close()?;
        Ok(())
    });
}

#[test]
fn one_module_per_context() {
    on_oldest_driver(1, |test, simulator| {
        let stream = test.stream();
        let library = Library::from_ptx(&stream, kernels::FILL)?;
        let fill = library.kernel::<Fill>("fill")?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 1)?;
        let config = LaunchConfig::for_elements(1);
        for _ in 0..3 {
            // SAFETY: the kernel writes `n` elements, the length of the buffer.
            unsafe { fill.launch(&stream, config, (&mut buffer, 9, 1)) }?;
        }
        assert_eq!(simulator.calls(Function::cuModuleLoadDataEx), 1);
        let bound = fill.in_context(stream.context())?;
        let before = simulator.calls(Function::cuModuleGetFunction);
        // SAFETY: as before.
        unsafe { bound.launch(&stream, config, (&mut buffer, 9, 1)) }?;
        assert_eq!(simulator.calls(Function::cuModuleGetFunction), before);
        stream.synchronize()
    });
}

/// A device for which the image has no code is skipped.
#[test]
fn image_needs_a_fitting_device() {
    on_oldest_driver(2, |test, simulator| {
        simulator.inject(
            Fault::on(Function::cuModuleLoadDataEx)
                .once()
                .returns(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU),
        );
        let image = Image::from_ptx(kernels::FILL)?;
        let library = Library::from_image(test.driver(), &image, &JitOptions::new())?;
        let kernel = library.kernel::<Fill>("fill")?;
        assert_eq!(simulator.calls(Function::cuModuleLoadDataEx), 2);
        drop(kernel);
        let cached = Library::from_kept_image(test.driver(), image, &JitOptions::new())?;
        cached.kernel::<Fill>("fill")?;
        Ok(())
    });
}

#[test]
fn cached_code_is_loaded() {
    on_oldest_driver(1, |test, _| {
        let folder = std::env::temp_dir().join(format!("curium-modules-{}", std::process::id()));
        let cache = DiskCache::open(&folder)?;
        let context = test.context();
        for _ in 0..2 {
            let options = JitOptions::new();
            let library = Library::from_ptx_cached(&context, kernels::FILL, &options, &cache)?;
            library.kernel::<Fill>("fill")?;
        }
        drop(cache);
        // The folder is in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(folder);
        Ok(())
    });
}
