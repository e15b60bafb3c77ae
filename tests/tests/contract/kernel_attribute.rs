//! Attributes of kernels, of libraries and of modules.
#![cfg(not(miri))]

use curium_driver::{
    CacheConfig, Carveout, Device, Error, Kernel, LaunchConfig, Library, Module, Untyped,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::{CUdevice_attribute, CUfunction_attribute, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

fn reduce(test: &TestDriver) -> TestResult<[Kernel<Untyped>; 3]> {
    let context = test.context();
    let library = Library::from_ptx(&context, kernels::REDUCE)?;
    let of_library = library.untyped_kernel("reduce_sum_f32")?;
    let module = Module::from_ptx(&context, kernels::REDUCE)?;
    let in_context = of_library.in_context(&context)?;
    Ok([
        of_library,
        module.untyped_kernel("reduce_sum_f32")?,
        in_context,
    ])
}

fn limit(device: &Device, attribute: CUdevice_attribute) -> TestResult<usize> {
    Ok(device.attribute(attribute)?.try_into()?)
}

#[driver_test]
fn attributes_report_kernel_resources(test: &TestDriver) -> TestResult {
    let device = test.device();
    let capability = device.compute_capability()?;
    for kernel in reduce(test)? {
        let most = limit(
            &device,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        )?;
        let threads = kernel.max_threads_per_block(&device)? as usize;
        assert!((32..=most).contains(&threads), "{threads}");
        assert!((1..=255).contains(&kernel.registers(&device)?));
        assert!(
            kernel.static_shared_bytes(&device)? > 0,
            "reduce has shared memory"
        );
        assert!(kernel.binary_version(&device)? <= capability);
        assert!(kernel.ptx_version(&device)? <= capability);
        assert_eq!(kernel.preferred_carveout(&device)?, Carveout::Default);
        assert_eq!(kernel.required_cluster(&device)?, None);
        assert!(!kernel.cluster_size_must_be_set(&device)?);
        kernel.constant_bytes(&device)?;
        kernel.local_bytes(&device)?;
    }
    Ok(())
}

/// A kernel with ten words of shared memory.
const TEN_WORDS: &str = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry ten_words(.param .u64 out)\n{\n\
    .reg .b32 %r<3>;\n .reg .b64 %rd<3>;\n .shared .align 4 .b8 words[40];\n ld.param.u64 %rd1, [out];\n \
    cvta.to.global.u64 %rd2, %rd1;\n mov.u32 %r1, 7;\n st.volatile.shared.u32 [words+36], %r1;\n \
    ld.volatile.shared.u32 %r2, [words+36];\n st.global.u32 [%rd2], %r2;\n ret;\n}\n";

#[driver_test]
fn static_shared_memory_is_exact_to_the_byte(test: &TestDriver) -> TestResult {
    let library = Library::from_ptx(&test.context(), TEN_WORDS)?;
    let kernel = library.untyped_kernel("ten_words")?;
    assert_eq!(kernel.static_shared_bytes(&test.device())?, 40);
    Ok(())
}

/// A kernel that calls two functions, each with a shared word of its own. It stores 7 in the word
/// of the first and 9 in that of the second, and then writes the word of the first to `place`.
const TWO_WORDS: &str = "
.version 7.0
.target sm_52
.address_size 64
.func (.param .b32 out) first(.param .b32 given)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .shared .align 4 .b32 first_word;
    ld.param.u32 %r1, [given];
    setp.ne.u32 %p, %r1, 0;
    @%p st.volatile.shared.u32 [first_word], %r1;
    ld.volatile.shared.u32 %r2, [first_word];
    st.param.b32 [out], %r2;
    ret;
}
.func second(.param .b32 given)
{
    .reg .b32 %r<3>;
    .shared .align 4 .b32 second_word;
    ld.param.u32 %r1, [given];
    st.volatile.shared.u32 [second_word], %r1;
    ret;
}
.visible .entry two_words(.param .u64 place)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    mov.u32 %r1, 7;
    mov.u32 %r2, 9;
    mov.u32 %r3, 0;
    {
        .param .b32 given;
        .param .b32 out;
        st.param.b32 [given], %r1;
        call.uni (out), first, (given);
        ld.param.b32 %r4, [out];
    }
    {
        .param .b32 given;
        st.param.b32 [given], %r2;
        call.uni second, (given);
    }
    {
        .param .b32 given;
        .param .b32 out;
        st.param.b32 [given], %r3;
        call.uni (out), first, (given);
        ld.param.b32 %r5, [out];
    }
    ld.param.u64 %rd1, [place];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r5;
    ret;
}
";

/// Shared memory of functions is their own and counts for the kernel.
#[driver_test]
fn function_shared_memory_counts_for_the_kernel(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let library = Library::from_ptx(&context, TWO_WORDS)?;
    let kernel = library.kernel::<(&mut [u32],)>("two_words")?;
    assert_eq!(kernel.static_shared_bytes(&test.device())?, 8);
    let mut output = DeviceBuffer::zeroed(&stream, 1)?;
    // SAFETY: the kernel writes one word, which the buffer has.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut output,)) }?;
    assert_eq!(output.to_vec()?, [7]);
    Ok(())
}

#[driver_test]
fn attributes_that_are_set_are_read_back(test: &TestDriver) -> TestResult {
    let device = test.device();
    let most = limit(
        &device,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    )?;
    for kernel in reduce(test)? {
        let dynamic = most - kernel.static_shared_bytes(&device)?;
        kernel.set_max_dynamic_shared_bytes(&device, dynamic as u32)?;
        assert_eq!(kernel.max_dynamic_shared_bytes(&device)?, dynamic);
        let error = kernel
            .set_max_dynamic_shared_bytes(&device, dynamic as u32 + 1)
            .expect_err("this is too much");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(
            error.to_string().contains("kernel `reduce_sum_f32`"),
            "{error}"
        );
        kernel.set_preferred_carveout(&device, Carveout::Percent(50))?;
        assert_eq!(kernel.preferred_carveout(&device)?, Carveout::Percent(50));
        kernel
            .set_preferred_carveout(&device, Carveout::Percent(101))
            .expect_err("a percentage is at most 100");
        kernel.set_cache_config(&device, CacheConfig::PreferL1)?;
    }
    Ok(())
}

#[driver_test]
fn unknown_attribute_is_an_error_that_names_it(test: &TestDriver) -> TestResult {
    for kernel in reduce(test)? {
        let error = kernel
            .attribute(&test.device(), CUfunction_attribute(9999))
            .expect_err("there is none");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(
            error
                .to_string()
                .contains("attribute 9999 of kernel `reduce_sum_f32`"),
            "{error}"
        );
    }
    Ok(())
}

/// A kernel of a module has no attributes on another device.
#[simulator_test(Config::new().with_devices(2))]
fn module_kernel_has_no_foreign_attributes(test: &TestDriver, _: &Simulator) -> TestResult {
    let other = test.driver().device(1)?;
    let [of_library, of_module, in_context] = reduce(test)?;
    of_library.registers(&other)?;
    for kernel in [of_module, in_context] {
        let error = kernel
            .registers(&other)
            .expect_err("the kernel is on the first device");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let error = kernel
            .set_cache_config(&other, CacheConfig::PreferL1)
            .expect_err("as above");
        assert!(
            error.to_string().contains("is on device 0, not 1"),
            "{error}"
        );
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{CacheConfig, Carveout, ClusterScheduling, SharedMemoryMode};
    use curium_sys::CUfunction_attribute;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::registers", |fixture| {
            made(fixture.fill.registers(&fixture.device)?)
        }),
        ("Kernel::required_cluster", |fixture| {
            made(fixture.fill.required_cluster(&fixture.device)?)
        }),
        ("Kernel::set_max_dynamic_shared_bytes", |fixture| {
            made(
                fixture
                    .fill
                    .set_max_dynamic_shared_bytes(&fixture.device, 1024)?,
            )
        }),
        ("Kernel::set_preferred_carveout", |fixture| {
            made(
                fixture
                    .fill
                    .set_preferred_carveout(&fixture.device, Carveout::Default)?,
            )
        }),
        ("Kernel::set_cache_config", |fixture| {
            made(
                fixture
                    .fill
                    .set_cache_config(&fixture.device, CacheConfig::NoPreference)?,
            )
        }),
        ("Kernel::attribute", |fixture| {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
            made(fixture.fill.attribute(&fixture.device, attribute)?)
        }),
        ("Kernel::set_attribute", |fixture| {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a higher limit changes no launch.
            made(unsafe { fixture.fill.set_attribute(&fixture.device, attribute, 1024) }?)
        }),
        ("Kernel::max_threads_per_block", |fixture| {
            made(fixture.fill.max_threads_per_block(&fixture.device)?)
        }),
        ("Kernel::static_shared_bytes", |fixture| {
            made(fixture.fill.static_shared_bytes(&fixture.device)?)
        }),
        ("Kernel::constant_bytes", |fixture| {
            made(fixture.fill.constant_bytes(&fixture.device)?)
        }),
        ("Kernel::local_bytes", |fixture| {
            made(fixture.fill.local_bytes(&fixture.device)?)
        }),
        ("Kernel::ptx_version", |fixture| {
            made(fixture.fill.ptx_version(&fixture.device)?)
        }),
        ("Kernel::binary_version", |fixture| {
            made(fixture.fill.binary_version(&fixture.device)?)
        }),
        ("Kernel::caches_loads", |fixture| {
            made(fixture.fill.caches_loads(&fixture.device)?)
        }),
        ("Kernel::max_dynamic_shared_bytes", |fixture| {
            made(fixture.fill.max_dynamic_shared_bytes(&fixture.device)?)
        }),
        ("Kernel::preferred_carveout", |fixture| {
            made(fixture.fill.preferred_carveout(&fixture.device)?)
        }),
        ("Kernel::cluster_size_must_be_set", |fixture| {
            made(fixture.fill.cluster_size_must_be_set(&fixture.device)?)
        }),
        ("Kernel::non_portable_cluster_size_allowed", |fixture| {
            made(
                fixture
                    .fill
                    .non_portable_cluster_size_allowed(&fixture.device)?,
            )
        }),
        ("Kernel::set_non_portable_cluster_size_allowed", |fixture| {
            made(
                fixture
                    .fill
                    .set_non_portable_cluster_size_allowed(&fixture.device, false)?,
            )
        }),
        ("Kernel::cluster_scheduling", |fixture| {
            made(fixture.fill.cluster_scheduling(&fixture.device)?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("Kernel::set_cluster_scheduling", |fixture| {
            made(
                fixture
                    .fill
                    .set_cluster_scheduling(&fixture.device, ClusterScheduling::Default)?,
            )
        }),
        ("Kernel::device_node_update_supported", |fixture| {
            made(fixture.fill.device_node_update_supported(&fixture.device)?)
        }),
        ("Kernel::shared_memory_mode", |fixture| {
            made(fixture.fill.shared_memory_mode(&fixture.device)?)
        }),
        ("Kernel::set_shared_memory_mode", |fixture| {
            made(
                fixture
                    .fill
                    .set_shared_memory_mode(&fixture.device, SharedMemoryMode::Default)?,
            )
        }),
        ("Kernel::set_required_cluster", |fixture| {
            // SAFETY: a cluster of one block is a launch without clusters.
            made(unsafe { fixture.fill.set_required_cluster(&fixture.device, 1) }?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Solitary(SOLITARY) }
}
