//! [`Library`]: code that is loaded without a context.

mod without_libraries;

use curium_driver::{Error, Function, LaunchConfig, Library, Module};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, kernels, on_simulator, resume_panic, simulator_test,
};

/// A library loads from a driver device context or stream.
#[driver_test]
fn library_loads_from_every_loader(test: &TestDriver) -> TestResult {
    let device = test.device();
    let context = test.context();
    let stream = test.stream();
    for library in [
        Library::from_ptx(test.driver(), kernels::FILL),
        Library::from_ptx(&device, kernels::FILL),
        Library::from_ptx(&context, kernels::FILL),
        Library::from_ptx(&stream, kernels::FILL),
    ] {
        let library = library?;
        assert!(!library.as_raw().is_null());
        library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    }
    Ok(())
}

#[driver_test]
fn library_needs_no_current_context(test: &TestDriver) -> TestResult {
    test.assert_calls(Function::cuCtxPushCurrent_v2, 0, || -> TestResult<_> {
        Library::from_ptx(test.driver(), kernels::SAXPY)?;
        Ok(())
    })?;
    Ok(())
}

#[simulator_test]
fn kernel_is_looked_up_without_any_context(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::SAXPY)?;
    let error = library
        .kernel::<(f32,)>("saxpy")
        .map(drop)
        .expect_err("saxpy has four parameters");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert_eq!(simulator.live_handles().contexts, 0);
    Ok(())
}

#[driver_test]
fn broken_ptx_is_an_error_with_the_compilers_log(test: &TestDriver) -> TestResult {
    let broken = kernels::FILL.replacen("st.global.u32", "st.nowhere.u32", 1);
    assert_ne!(broken, kernels::FILL, "the test breaks the PTX");
    let error = Library::from_ptx(test.driver(), &broken).expect_err("the PTX is broken");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_PTX));
    // Some drivers report the error at the first call, others at the second.
    let functions = [
        Some(Function::cuLibraryLoadData),
        Some(Function::cuLibraryGetKernel),
    ];
    assert!(functions.contains(&error.function()), "{error}");
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    let log = error.log.as_deref().ok_or("no compiler log")?;
    let line = broken
        .lines()
        .position(|line| line.contains("st.nowhere"))
        .ok_or("no line with `st.nowhere`")?
        + 1;
    assert!(log.contains(&format!("line {line}")), "{log}");
    assert!(error.to_string().contains(log.trim_end()), "{error}");
    Ok(())
}

/// A PTX that is too new is an error that names both versions.
#[driver_test]
fn too_new_ptx_names_both_versions(test: &TestDriver) {
    let driver = test.driver().version();
    for directive in [".version 9.9", ".version 9.9 // by hand", ".version\t9.9"] {
        let ptx = format!(
            "{directive}\n.target sm_75\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n"
        );
        let error =
            Library::from_ptx(test.driver(), &ptx).expect_err("no driver supports this version");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!(
                "PTX 9.9 needs a driver for a CUDA newer than {}",
                CudaVersion::NEWEST_KNOWN
            )),
            "{directive}: {text}"
        );
        assert!(
            text.contains(&format!("this one is for CUDA {driver}")),
            "{directive}: {text}"
        );
    }
}

/// Text that is no PTX is an error before any driver call.
#[driver_test]
fn invalid_ptx_makes_no_driver_call(test: &TestDriver) {
    test.assert_calls(Function::cuLibraryLoadData, 0, || {
        for (text, reason) in [
            ("", "the text is empty"),
            ("\u{7f}ELF\u{2}\u{1}", "expected a directive or a comment"),
            ("__global__ void f() {}", "not \"__global__ void f() {}\""),
            (".version 7.8\0.target sm_75", "NUL at byte 12"),
            (".version 7.8\n\0", "NUL at byte 13 of 14"),
        ] {
            let error = Library::from_ptx(test.driver(), text).expect_err("this is not PTX");
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(
                error.to_string().starts_with("Library::from_ptx: "),
                "{error}"
            );
            assert!(error.to_string().contains(reason), "{error}");
        }
    });
}

#[driver_test]
fn library_in_use_is_given_back_by_close(test: &TestDriver) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let kernel = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let (library, error) = library
        .close()
        .expect_err("the kernel keeps the library")
        .into_parts();
    assert!(matches!(error, Error::Argument(_)), "{error}");
    drop(kernel);
    library.close()?;
    Ok(())
}

/// A library that the driver does not unload is returned by close.
#[simulator_test]
fn close_returns_an_unloaded_library(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    simulator.inject(
        Fault::on(Function::cuLibraryUnload).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (library, error) = library
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuLibraryUnload));
    library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    Ok(())
}

/// Code dropped while its kernel is queued stays until the kernel has run.
#[test]
fn dropped_code_stays_loaded() -> TestResult {
    // Hardware loads code lazily, and waits for the work that the gate blocks.
    on_simulator(Config::new(), |test, _| -> TestResult {
        type Fill = (&'static mut [u32], u32, u32);
        let context = test.context();
        let stream = test.stream();
        let config = LaunchConfig::for_elements(64);
        for from_library in [true, false] {
            let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
            let gate = Gate::on(&stream);
            let code: Box<dyn std::any::Any + Send> = if from_library {
                let library = Library::from_ptx(test.driver(), kernels::FILL)?;
                let kernel = library.kernel::<Fill>("fill")?;
                // SAFETY: the kernel writes only elements below the length argument, which is the
                // length of the buffer.
                unsafe { kernel.launch(&stream, config, (&mut buffer, 7, 64)) }?;
                Box::new((kernel, library))
            } else {
                let module = Module::from_ptx(&context, kernels::FILL)?;
                let kernel = module.kernel::<Fill>("fill")?;
                // SAFETY: the kernel writes only elements below the length argument, which is the
                // length of the buffer.
                unsafe { kernel.launch(&stream, config, (&mut buffer, 7, 64)) }?;
                Box::new((kernel, module))
            };
            std::thread::scope(|scope| {
                let dropping = scope.spawn(move || drop(code));
                std::thread::sleep(std::time::Duration::from_millis(20));
                gate.open();
                resume_panic(dropping.join());
            });
            assert_eq!(buffer.to_vec()?, [7; 64]);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Library;
    use curium_tests::kernels;

    use crate::operations::{Fill, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Library::from_ptx", |fixture| {
            made(Library::from_ptx(&fixture.driver, kernels::FILL)?)
        }),
        ("Library::kernel", |fixture| {
            made(fixture.library.kernel::<Fill>("fill")?)
        }),
        ("Library::close", |fixture| {
            Library::from_ptx(&fixture.driver, kernels::FILL)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Library::module", |fixture| {
            made(fixture.library.module(&fixture.context)?)
        }),
        ("Library::untyped_kernel", |fixture| {
            made(fixture.library.untyped_kernel("fill")?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
