//! [`Limit`]: the limits of a context.

use curium_driver::{Context, ContextOptions, Graph, LaunchConfig, Limit, Module};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel};
use curium_sys::CUresult;
use curium_tests::{TestDriver, kernels, on_driver, on_simulator};

#[test]
fn limit_is_the_requested_value_or_the_closest_that_the_hardware_supports() {
    on_driver(|test| {
        let context = test
            .device()
            .create_context(ContextOptions::new())
            .expect("a context can be created");
        for (limit, value, expected) in [
            (Limit::StackSize, 4096, 4096),
            (Limit::StackSize, 4097, 4112),
            (Limit::PrintfBuffer, 4 << 20, 4 << 20),
            (Limit::MallocHeap, 16 << 20, 16 << 20),
            (Limit::PendingLaunches, 4096, 4096),
            (Limit::L2FetchGranularity, 128, 128),
        ] {
            context
                .set_limit(limit, value)
                .expect("the value is in range");
            assert_eq!(
                context.limit(limit).expect("the limit is known"),
                expected,
                "{limit:?}"
            );
        }
        context
            .set_limit(Limit::PrintfBuffer, 1)
            .expect("the value is raised");
        assert!(
            context
                .limit(Limit::PrintfBuffer)
                .expect("the limit is known")
                >= 1024
        );
    });
}

#[test]
fn limit_out_of_range_is_an_error_with_a_hint() {
    on_driver(|test| {
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
    });
}

#[test]
fn limit_that_can_only_be_read_is_not_set() {
    on_driver(|test| {
        let context = test.context();
        let shared = context
            .limit(Limit::SharedMemory)
            .expect("the limit is known");
        assert!(shared >= 48 << 10, "{shared}");
        let error = context
            .set_limit(Limit::SharedMemory, 1024)
            .expect_err("the limit is read-only");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_PERMITTED));
        assert!(
            error.to_string().contains("the limit is read-only"),
            "{error}"
        );
    });
}

#[test]
fn every_limit_is_read_or_refused_by_name() {
    on_driver(|test| {
        let context = test.context();
        let mut known = 0;
        for limit in Limit::ALL {
            match context.limit(limit) {
                Ok(_) => known += 1,
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
        assert!(known >= 6, "the driver supports {known} limits only");
    });
}

#[test]
fn sync_depth_exists_below_compute_capability_9() {
    for model in [DeviceModel::T4, DeviceModel::A100] {
        on_simulator(Config::new().with_device_model(model), |test, _| {
            let context = test.context();
            assert_eq!(
                context
                    .limit(Limit::SyncDepth)
                    .expect("the device has the limit"),
                2
            );
            context
                .set_limit(Limit::SyncDepth, 4)
                .expect("the value is in range");
            assert_eq!(
                context
                    .limit(Limit::SyncDepth)
                    .expect("the device has the limit"),
                4
            );
            let error = context
                .set_limit(Limit::SyncDepth, 25)
                .expect_err("that is too deep");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
            assert!(error.to_string().contains("the maximum is 24"), "{error}");
        });
    }
}

#[test]
fn sync_depth_is_refused_from_compute_capability_9_on() {
    let refused = |test: &TestDriver| {
        let context = test.context();
        if context
            .device()
            .compute_capability()
            .expect("it can be read")
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
    };
    on_driver(refused);
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| refused(test),
    );
}

fn assert_fixed(context: &Context, limit: Limit) {
    let value = context.limit(limit).expect("the limit is known");
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
}

#[test]
fn printf_buffer_and_heap_are_fixed_by_the_launch_of_a_kernel_that_uses_them() {
    on_driver(|test| {
        let context = test
            .device()
            .create_context(ContextOptions::new())
            .expect("a context can be created");
        let stream = context.stream().expect("a stream can be created");
        let module = |ptx| Module::from_ptx(&context, ptx).expect("the PTX is valid");
        let (printing, allocating, filling) = (
            module(kernels::PRINT),
            module(kernels::HEAP),
            module(kernels::FILL),
        );
        let mut rows = DeviceBuffer::<u64>::zeroed(&stream, 1).expect("memory suffices");
        let mut words = DeviceBuffer::<u32>::zeroed(&stream, 1).expect("memory suffices");
        let fill = filling
            .kernel::<(&mut [u32], u32, u32)>("fill")
            .expect("the module has the kernel");
        // SAFETY: the kernel writes one word, which the buffer has.
        unsafe { fill.launch(&stream, LaunchConfig::new(1, 1), (&mut words, 1, 1)) }
            .expect("it launches");
        context
            .set_limit(Limit::PrintfBuffer, 2 << 20)
            .expect("no kernel printed");
        context
            .set_limit(Limit::MallocHeap, 16 << 20)
            .expect("no kernel allocated");

        let print = printing
            .kernel::<(u32,)>("print_threads")
            .expect("the module has the kernel");
        // SAFETY: the kernel accesses no memory of the program.
        unsafe { print.launch(&stream, LaunchConfig::new(1, 1), (1,)) }.expect("it launches");
        assert_fixed(&context, Limit::PrintfBuffer);
        context
            .set_limit(Limit::MallocHeap, 32 << 20)
            .expect("no kernel allocated");

        let keep = allocating
            .kernel::<(&mut [u64], u32)>("heap_keep")
            .expect("the module has the kernel");
        // SAFETY: the kernel keeps no allocation.
        unsafe { keep.launch(&stream, LaunchConfig::new(1, 1), (&mut rows, 0)) }
            .expect("it launches");
        assert_fixed(&context, Limit::MallocHeap);
        stream.synchronize().expect("the kernels are correct");
        assert_fixed(&context, Limit::PrintfBuffer);
    });
}

#[test]
fn printf_buffer_is_fixed_by_a_graph_that_prints() {
    on_simulator(Config::new(), |test, _| {
        let (context, stream) = (test.context(), test.stream());
        let module = Module::from_ptx(&context, kernels::PRINT).expect("the PTX is valid");
        let print = module
            .kernel::<(u32,)>("print_threads")
            .expect("the module has the kernel");
        let graph = Graph::capture(&context, |scope| {
            // SAFETY: the kernel accesses no memory of the program.
            unsafe { print.launch(scope, LaunchConfig::new(1, 1), (1,)) }
        });
        let mut graph = graph
            .and_then(|graph| graph.instantiate())
            .expect("the launch can be captured");
        context
            .set_limit(Limit::PrintfBuffer, 2 << 20)
            .expect("no kernel was launched");
        graph.launch(&stream).expect("the graph launches");
        stream.synchronize().expect("the kernel is correct");
        assert_fixed(&context, Limit::PrintfBuffer);
    });
}

pub(crate) mod operations {
    use curium_driver::Limit;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Context::limit", |fixture| {
            made(fixture.context.limit(Limit::StackSize)?)
        }),
        ("Context::set_limit", |fixture| {
            made(fixture.context.set_limit(Limit::L2FetchGranularity, 64)?)
        }),
    ];
}
