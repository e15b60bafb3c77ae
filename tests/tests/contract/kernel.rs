//! [`Kernel`](curium_driver::Kernel): look-up, launch configurations and arguments.

use curium_driver::{ByValue, CudaVersion, Dimensions, Error, Function, LaunchConfig, Library};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::{CUdevice_attribute, CUresult};
use curium_tests::{
    TestDriver, TestResult, driver_test, kernels, on_driver, on_simulator, simulator_test,
};

type Fill<'a> = (&'a mut [u32], u32, u32);

fn library(test: &TestDriver, ptx: &str) -> TestResult<Library> {
    Ok(Library::from_ptx(test.driver(), ptx)?)
}

#[driver_test]
fn kernel_with_its_own_signature_is_found(test: &TestDriver) -> TestResult {
    let kernel =
        library(test, kernels::SAXPY)?.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;
    assert_eq!(kernel.name(), "saxpy");
    assert!(!kernel.as_raw().is_null());
    assert!(format!("{:?}", kernel.clone()).starts_with("Kernel(saxpy "));
    Ok(())
}

/// A kernel with wrong number of parameters is an error at look up.
#[driver_test]
fn lookup_checks_the_parameter_count(test: &TestDriver) -> TestResult {
    let library = library(test, kernels::SAXPY)?;
    let fewer = library
        .kernel::<(f32, &[f32], &mut [f32])>("saxpy")
        .map(drop);
    let more = library
        .kernel::<(f32, &[f32], &mut [f32], u32, u32)>("saxpy")
        .map(drop);
    let none = library.kernel::<()>("saxpy").map(drop);
    let declarations = [
        (fewer, "`(f32, &[f32], &mut [f32])` declares 3"),
        (more, "`(f32, &[f32], &mut [f32], u32, u32)` declares 5"),
        (none, "`()` declares 0"),
    ];
    for (result, declared) in declarations {
        let error = result.expect_err("saxpy has four parameters");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let text = format!("(kernel `saxpy` has 4 parameters, and {declared})");
        assert!(error.to_string().contains(&text), "{error}");
    }
    Ok(())
}

/// A kernel with parameter of wrong size is an error at look up.
#[driver_test]
fn lookup_checks_parameter_sizes(test: &TestDriver) -> TestResult {
    let error = library(test, kernels::SAXPY)?.kernel::<(f64, &[f32], &mut [f32], u32)>("saxpy");
    let error = error
        .map(drop)
        .expect_err("the first parameter has four bytes");
    let text = "(parameter 0 (counting from 0) of kernel `saxpy` has 4 bytes, and `f64` has 8)";
    assert!(error.to_string().contains(text), "{error}");
    let error = library(test, kernels::SAXPY)?.kernel::<(f32, &[f32], &mut [f32], u64)>("saxpy");
    let error = error
        .map(drop)
        .expect_err("the last parameter has four bytes");
    assert!(
        error
            .to_string()
            .contains("parameter 3 (counting from 0) of kernel `saxpy`"),
        "{error}"
    );
    Ok(())
}

/// A kernel without parameters is distinguished from one with some.
#[driver_test]
fn lookup_distinguishes_empty_parameters(test: &TestDriver) -> TestResult {
    let ptx = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    let library = library(test, ptx)?;
    let nothing = library.kernel::<()>("nothing")?;
    let error = library
        .kernel::<(u32,)>("nothing")
        .map(drop)
        .expect_err("the kernel has no parameters");
    assert!(
        error
            .to_string()
            .contains("has 0 parameters, and `(u32)` declares 1"),
        "{error}"
    );
    let stream = test.stream();
    // SAFETY: the kernel accesses no memory.
    unsafe { nothing.launch(&stream, LaunchConfig::new((2, 3, 4), (5, 6)), ()) }?;
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn kernel_that_is_absent_is_an_error_that_names_it(test: &TestDriver) -> TestResult {
    let library = library(test, kernels::FILL)?;
    let error = library
        .kernel::<Fill>("absent")
        .map(drop)
        .expect_err("there is no such kernel");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
    assert_eq!(error.function(), Some(Function::cuLibraryGetKernel));
    assert!(error.to_string().contains("kernel `absent`"), "{error}");
    let error = library
        .kernel::<Fill>("fil")
        .map(drop)
        .expect_err("there is no such kernel");
    assert!(
        error
            .to_string()
            .contains("the image has `fill`, `fill_index`"),
        "{error}"
    );
    let error = library
        .kernel::<Fill>("fi\0ll")
        .map(drop)
        .expect_err("a name has no NUL");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    library
        .kernel::<Fill>("")
        .map(drop)
        .expect_err("a name is not empty");
    Ok(())
}

#[driver_test]
fn kernel_keeps_its_library(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 10)?;
    // SAFETY: `fill` writes the first 10 words, which the buffer has.
    unsafe { fill.launch(&stream, LaunchConfig::new(1, 32), (&mut buffer, 5, 10)) }?;
    assert_eq!(buffer.to_vec()?, [5; 10]);
    Ok(())
}

#[driver_test]
fn kernel_declared_safe_is_launched_by_safe_code(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let ptx = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .u32 n) { ret; }\n";
    let nothing = library(test, ptx)?.kernel::<(u32,)>("nothing")?;
    // SAFETY: the kernel accesses no memory.
    let nothing = unsafe { nothing.declare_safe() };
    nothing
        .clone()
        .launch(&stream, LaunchConfig::new(1, 1), (7,))?;
    assert_eq!(nothing.name(), "nothing");
    stream.synchronize()?;
    Ok(())
}

/// A launch with a dimension of zero is an argument error and leaves the stream usable.
#[driver_test]
fn zero_dimension_is_an_argument_error(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 1)?;
    for dimension in 0..6 {
        let mut sizes = [1_u32; 6];
        sizes[dimension] = 0;
        let [a, b, c, d, e, f] = sizes;
        let config = LaunchConfig::new((a, b, c), (d, e, f));
        // SAFETY: `fill` writes one word, which the buffer has.
        let result = unsafe { fill.launch(&stream, config, (&mut buffer, 5, 1)) };
        let error = result.expect_err("nothing can be launched in this way");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(error.to_string().contains("a dimension is zero"), "{error}");
    }
    // SAFETY: `fill` writes one word, which the buffer has.
    unsafe { fill.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 5, 1)) }?;
    assert_eq!(buffer.to_vec()?, [5]);
    Ok(())
}

/// A launch beyond a limit is an error with the limit and the request.
#[driver_test]
fn launch_beyond_a_limit_reports_both_numbers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 1)?;
    let limit = |attribute| -> TestResult<_> { Ok(test.device().attribute(attribute)? as u32) };
    let threads = limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    let shared = limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
    let rows = limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?;
    for (config, text) in [
        (
            LaunchConfig::new(1, threads + 1),
            format!("{threads} threads in a block, but {} were", threads + 1),
        ),
        (
            LaunchConfig::new(1, (threads, 2)),
            format!("{threads} threads in a block, but {} were", threads * 2),
        ),
        (
            LaunchConfig::new((1, rows + 1), 1),
            format!("{rows} blocks along y, but {} were", rows + 1),
        ),
        (
            LaunchConfig::new(1, 1).with_shared_bytes(shared + 1),
            format!("{shared} bytes of shared memory"),
        ),
    ] {
        // SAFETY: `fill` writes one word, which the buffer has.
        let error = unsafe { fill.launch(&stream, config, (&mut buffer, 5, 1)) }
            .expect_err("the limit is exceeded");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE),
            "{error}"
        );
        assert_eq!(error.function(), Some(Function::cuLaunchKernel));
        let message = error.to_string();
        assert!(
            message.contains("kernel `fill`") && message.contains(&text),
            "{message}"
        );
    }
    // SAFETY: `fill` writes one word, which the buffer has.
    unsafe { fill.launch(&stream, LaunchConfig::new(1, threads), (&mut buffer, 5, 1)) }?;
    assert_eq!(buffer.to_vec()?, [5]);
    Ok(())
}

#[simulator_test]
fn launch_makes_one_call(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    let total = || {
        Function::all()
            .map(|function| simulator.calls(function))
            .sum::<u64>()
    };
    let before = total();
    // SAFETY: `fill` writes the first 64 words, which the buffer has.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(64),
            (&mut buffer, 5, 64),
        )
    }?;
    assert_eq!(total() - before, 1);
    Ok(())
}

/// A kernel on an older driver is compared with the PTX and runs.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 3)))]
fn old_driver_kernel_is_checked_by_its_ptx(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let library = library(test, kernels::FILL)?;
    let error = library
        .kernel::<(u8,)>("fill")
        .map(drop)
        .expect_err("fill has three parameters");
    assert!(
        error
            .to_string()
            .contains("kernel `fill` has 3 parameters, and `(u8)` declares 1"),
        "{error}"
    );
    let error = library
        .kernel::<(&mut [u32], u64, u32)>("fill")
        .map(drop)
        .expect_err("the second has four bytes");
    assert!(
        error.to_string().contains(
            "parameter 1 (counting from 0) of kernel `fill` has 4 bytes, and `u64` has 8"
        ),
        "{error}"
    );
    let fill = library.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 10)?;
    // SAFETY: `fill` writes the first 10 words, which the buffer has.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(10),
            (&mut buffer, 5, 10),
        )
    }?;
    assert_eq!(buffer.to_vec()?, [5; 10]);
    Ok(())
}

/// Parameters from the driver and from the PTX agree.
#[test]
fn parameter_sources_agree() {
    let parameters = |version| {
        let mut actual = Vec::new();
        on_simulator(Config::new().with_driver_version(version), |test, _| {
            for ptx in [
                kernels::PARAMS,
                kernels::SAXPY,
                kernels::MATMUL,
                kernels::SPIN,
                kernels::FAULTS,
            ] {
                let context = test.context();
                let module =
                    curium_driver::Module::from_ptx(&context, ptx).expect("the PTX is valid");
                let names = [
                    "params",
                    "saxpy",
                    "matmul",
                    "spin",
                    "write_at",
                    "read_at",
                    "write_misaligned",
                    "trap",
                ];
                for name in names {
                    let Ok(kernel) = module.untyped_kernel(name) else {
                        continue;
                    };
                    actual.push((
                        name,
                        kernel
                            .parameters()
                            .expect("they are known")
                            .expect("they are known"),
                    ));
                }
            }
        });
        actual
    };
    assert_eq!(
        parameters(CudaVersion::new(11, 8)),
        parameters(CudaVersion::new(13, 0))
    );
}

/// A kernel runs on a stream of any context of its library.
#[simulator_test(Config::new().with_devices(2))]
fn library_kernel_runs_in_any_context(test: &TestDriver, _: &Simulator) -> TestResult {
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    for device in test.driver().devices()? {
        let stream = device
            .primary_context()
            .and_then(|context| context.stream())?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 10)?;
        // SAFETY: `fill` writes the first 10 words, which the buffer has.
        unsafe {
            fill.launch(
                &stream,
                LaunchConfig::for_elements(10),
                (&mut buffer, 5, 10),
            )
        }?;
        assert_eq!(buffer.to_vec()?, [5; 10]);
    }
    Ok(())
}

#[test]
fn parameters_arrive_whole() -> TestResult {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Triple {
        x: u32,
        y: u32,
        z: u32,
    }
    // SAFETY: `Triple` is `repr(C)`, and the kernel declares the same struct.
    unsafe impl ByValue for Triple {}
    type Params<'a> = (u8, u16, u32, u64, f32, f64, &'a mut [u64], Triple);

    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let params = library(test, kernels::PARAMS)?.kernel::<Params>("params")?;
        let mut words = DeviceBuffer::zeroed(&stream, 10)?;
        let address = words.as_pointer().as_raw();
        let triple = Triple {
            x: 0x0123_4567,
            y: u32::MAX,
            z: 1 << 31,
        };
        let arguments = (
            0xab,
            0xcdef,
            0x1234_5678,
            u64::MAX - 1,
            -0.5,
            f64::MIN_POSITIVE,
            &mut words,
            triple,
        );
        // SAFETY: `params` writes 10 words, which the buffer has.
        unsafe { params.launch(&stream, LaunchConfig::new(1, 1), arguments) }?;
        let expected = [
            0xab,
            0xcdef,
            0x1234_5678,
            u64::MAX - 1,
            u64::from((-0.5_f32).to_bits()),
            f64::MIN_POSITIVE.to_bits(),
            address,
            0x0123_4567,
            u64::from(u32::MAX),
            1 << 31,
        ];
        assert_eq!(words.to_vec()?, expected);
        let array =
            library(test, kernels::PARAMS)?
                .kernel::<(u8, u16, u32, u64, f32, f64, &mut [u64], [u32; 3])>("params");
        array?;
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn arguments_are_copied_at_the_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = library(test, kernels::FILL)?.kernel::<Fill>("fill")?;
    let mut buffers: Vec<_> = (0..20)
        .map(|_| DeviceBuffer::zeroed(&stream, 4))
        .collect::<Result<_, _>>()?;
    let gate = curium_tests::Gate::on(&stream);
    for (value, buffer) in buffers.iter_mut().enumerate() {
        // SAFETY: `fill` writes 4 words, which the buffer has.
        unsafe { fill.launch(&stream, LaunchConfig::new(1, 4), (buffer, value as u32, 4)) }?;
    }
    gate.open();
    for (value, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.to_vec()?, [value as u32; 4]);
    }
    Ok(())
}

#[test]
fn every_element_has_a_thread() {
    for count in [0, 1, 255, 256, 257, 1 << 20, u32::MAX as usize] {
        let LaunchConfig { grid, block, .. } = LaunchConfig::for_elements(count);
        assert!(grid.total() * block.total() >= count as u128, "{count}");
        assert!(
            grid.total() * block.total() < count as u128 + 512,
            "{count}"
        );
        assert!(grid.x > 0);
    }
    assert_eq!(Dimensions::from((2, 3)).total(), 6);
    assert_eq!(Dimensions::from(u32::MAX).total(), u128::from(u32::MAX));
    let config = LaunchConfig::new((2, 3, 4), 32).with_shared_bytes(64);
    assert_eq!(
        config.to_string(),
        "2×3×4 blocks of 32×1×1 threads with 64 bytes of shared memory"
    );
}

pub(crate) mod operations {
    use curium_driver::LaunchConfig;

    use crate::operations::{Fill, LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::launch", |fixture| {
            let config = LaunchConfig::for_elements(LEN);
            let arguments = (&mut fixture.buffer, 6, LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe { fixture.fill.launch(&fixture.other, config, arguments) }?)
        }),
        ("Kernel::parameters", |fixture| {
            made(fixture.fill.parameters()?)
        }),
        ("Kernel::in_context", |fixture| {
            made(fixture.fill.in_context(&fixture.context)?)
        }),
        ("Kernel::load", |fixture| {
            made(fixture.fill.load(&fixture.context)?)
        }),
        ("Kernel::typed", |fixture| {
            made(fixture.library.untyped_kernel("fill")?.typed::<Fill>()?)
        }),
        ("SafeKernel::launch", |fixture| {
            let kernel = fixture.library.kernel::<Fill>("fill")?;
            // SAFETY: `fill` writes the number of words in its last argument, which is the length
            // of the buffer.
            let kernel = unsafe { kernel.declare_safe() };
            made(kernel.launch(
                &fixture.other,
                LaunchConfig::new(1, 32),
                (&mut fixture.buffer, 8, LEN as u32),
            )?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
