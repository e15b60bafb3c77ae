//! [`Limit`]: the limits of a context.

use curium_driver::{Context, ContextOptions, Graph, LaunchConfig, Limit, Module};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    TestDriver, TestResult, driver_test, kernels, on_driver, on_simulator, simulator_test,
};

/// A limit is the requested value or the closest that the hardware supports.
#[driver_test]
fn limit_is_the_closest_supported_value(test: &TestDriver) -> TestResult {
    let context = test.device().create_context(ContextOptions::new())?;
    for (limit, value, expected) in [
        (Limit::StackSize, 4096, 4096),
        (Limit::StackSize, 4097, 4112),
        (Limit::PrintfBuffer, 4 << 20, 4 << 20),
        (Limit::MallocHeap, 16 << 20, 16 << 20),
        (Limit::PendingLaunches, 4096, 4096),
        (Limit::L2FetchGranularity, 128, 128),
    ] {
        context.set_limit(limit, value)?;
        assert_eq!(context.limit(limit)?, expected, "{limit:?}");
    }
    context.set_limit(Limit::PrintfBuffer, 1)?;
    assert!(context.limit(Limit::PrintfBuffer)? >= 1024);
    Ok(())
}

#[driver_test]
fn invalid_limit_has_a_hint(test: &TestDriver) {
    let context = test.context();
    let error = context
        .set_limit(Limit::L2FetchGranularity, 129)
        .expect_err("that is too much");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    let text = error.to_string();
    assert!(
        text.contains("L2FetchGranularity of 129") && text.contains("the maximum is 128 bytes"),
        "{text}"
    );
    let error = context
        .set_limit(Limit::PersistingL2, usize::MAX)
        .expect_err("that is too much");
    assert!(
        error.to_string().contains("MAX_PERSISTING_L2_CACHE_SIZE"),
        "{error}"
    );
}

#[driver_test]
fn limit_that_can_only_be_read_is_not_set(test: &TestDriver) -> TestResult {
    let context = test.context();
    let shared = context.limit(Limit::SharedMemory)?;
    assert!(shared >= 48 << 10, "{shared}");
    let error = context
        .set_limit(Limit::SharedMemory, 1024)
        .expect_err("the limit is read-only");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_PERMITTED));
    assert!(
        error.to_string().contains("the limit is read-only"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn every_limit_is_read_or_refused_by_name(test: &TestDriver) {
    let context = test.context();
    let mut count = 0;
    for limit in Limit::ALL {
        match context.limit(limit) {
            Ok(_) => count += 1,
            Err(error) => {
                let refusals = [
                    CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT,
                    CUresult::CUDA_ERROR_INVALID_VALUE,
                ];
                assert!(
                    error.code().is_some_and(|code| refusals.contains(&code)),
                    "{error}"
                );
                assert!(error.to_string().contains(&format!("{limit:?}")), "{error}");
            }
        }
    }
    assert!(count >= 6, "the driver supports {count} limits only");
}

#[test]
fn sync_depth_below_9_0() -> TestResult {
    for model in [DeviceModel::T4, DeviceModel::A100] {
        on_simulator(
            Config::new().with_device_model(model),
            |test, _| -> TestResult {
                let context = test.context();
                assert_eq!(context.limit(Limit::SyncDepth)?, 2);
                context.set_limit(Limit::SyncDepth, 4)?;
                assert_eq!(context.limit(Limit::SyncDepth)?, 4);
                let error = context
                    .set_limit(Limit::SyncDepth, 25)
                    .expect_err("that is too deep");
                assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
                assert!(error.to_string().contains("the maximum is 24"), "{error}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn sync_depth_is_refused_from_9_0() {
    fn refused(test: &TestDriver) {
        let context = test.context();
        if context
            .device()
            .compute_capability()
            .expect("failed to query the compute capability")
            .major
            < 9
        {
            return;
        }
        for error in [
            context.limit(Limit::SyncDepth).map(drop),
            context.set_limit(Limit::SyncDepth, 2),
        ] {
            let error = error.expect_err("the device lacks the limit");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT));
            assert!(
                error
                    .to_string()
                    .contains("compute capability 9.0 and later"),
                "{error}"
            );
        }
    }

    on_driver(refused);
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| refused(test),
    );
}

fn assert_fixed(context: &Context, limit: Limit) -> TestResult {
    let value = context.limit(limit)?;
    for value in [value, 2 * value] {
        let error = context
            .set_limit(limit, value)
            .expect_err("a kernel that uses it was launched");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE),
            "{limit:?}"
        );
        assert!(
            error
                .to_string()
                .contains("before the first launch of a kernel that uses it"),
            "{error}"
        );
    }
    Ok(())
}

/// Printf buffer and heap are fixed by the launch of a kernel that uses them.
#[driver_test]
fn launch_fixes_printf_buffer_and_heap(test: &TestDriver) -> TestResult {
    let context = test.device().create_context(ContextOptions::new())?;
    let stream = context.stream()?;
    let module = |ptx| Module::from_ptx(&context, ptx);
    let printing = module(kernels::PRINT)?;
    let allocating = module(kernels::HEAP)?;
    let filling = module(kernels::FILL)?;
    let mut rows = DeviceBuffer::<u64>::zeroed(&stream, 1)?;
    let mut words = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
    let fill = filling.kernel::<(&mut [u32], u32, u32)>("fill")?;
    // SAFETY: the kernel writes one word, which the buffer has.
    unsafe { fill.launch(&stream, LaunchConfig::new(1, 1), (&mut words, 1, 1)) }?;
    context.set_limit(Limit::PrintfBuffer, 2 << 20)?;
    context.set_limit(Limit::MallocHeap, 16 << 20)?;
    let print = printing.kernel::<(u32,)>("print_threads")?;
    // SAFETY: the kernel accesses no memory of the program.
    unsafe { print.launch(&stream, LaunchConfig::new(1, 1), (1,)) }?;
    assert_fixed(&context, Limit::PrintfBuffer)?;
    context.set_limit(Limit::MallocHeap, 32 << 20)?;
    let keep = allocating.kernel::<(&mut [u64], u32)>("heap_keep")?;
    // SAFETY: the kernel keeps no allocation.
    unsafe { keep.launch(&stream, LaunchConfig::new(1, 1), (&mut rows, 0)) }?;
    assert_fixed(&context, Limit::MallocHeap)?;
    stream.synchronize()?;
    assert_fixed(&context, Limit::PrintfBuffer)?;
    Ok(())
}

#[simulator_test]
fn printf_buffer_is_fixed_by_a_graph_that_prints(test: &TestDriver, _: &Simulator) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let module = Module::from_ptx(&context, kernels::PRINT)?;
    let print = module.kernel::<(u32,)>("print_threads")?;
    let graph = Graph::capture(&context, |scope| {
        // SAFETY: the kernel accesses no memory of the program.
        unsafe { print.launch(scope, LaunchConfig::new(1, 1), (1,)) }
    });
    let mut graph = graph.and_then(|graph| graph.instantiate())?;
    context.set_limit(Limit::PrintfBuffer, 2 << 20)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_fixed(&context, Limit::PrintfBuffer)?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Limit;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Context::limit", |fixture| {
            made(fixture.context.limit(Limit::StackSize)?)
        }),
        ("Context::set_limit", |fixture| {
            made(fixture.context.set_limit(Limit::L2FetchGranularity, 64)?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
