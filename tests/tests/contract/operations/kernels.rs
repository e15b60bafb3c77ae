//! The operations on kernels other than launches and occupancy.

use curium_driver::{ClusterScheduling, Kernel, LaunchAttributes, LaunchConfig, SharedMemoryMode, Untyped};
use curium_memory::DeviceBuffer;
use curium_sys::CUfunction_attribute;

use super::{LEN, Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Kernel::attribute", |fixture| {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        made(fixture.code.fill.attribute(&fixture.device, attribute)?)
    }),
    ("Kernel::set_attribute", |fixture| {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        made(fixture.code.fill.set_attribute(&fixture.device, attribute, 1024)?)
    }),
    ("Kernel::max_threads_per_block", |fixture| made(fixture.code.fill.max_threads_per_block(&fixture.device)?)),
    ("Kernel::static_shared_bytes", |fixture| made(fixture.code.fill.static_shared_bytes(&fixture.device)?)),
    ("Kernel::constant_bytes", |fixture| made(fixture.code.fill.constant_bytes(&fixture.device)?)),
    ("Kernel::local_bytes", |fixture| made(fixture.code.fill.local_bytes(&fixture.device)?)),
    ("Kernel::ptx_version", |fixture| made(fixture.code.fill.ptx_version(&fixture.device)?)),
    ("Kernel::binary_version", |fixture| made(fixture.code.fill.binary_version(&fixture.device)?)),
    ("Kernel::caches_loads", |fixture| made(fixture.code.fill.caches_loads(&fixture.device)?)),
    ("Kernel::max_dynamic_shared_bytes", |fixture| made(fixture.code.fill.max_dynamic_shared_bytes(&fixture.device)?)),
    ("Kernel::preferred_carveout", |fixture| made(fixture.code.fill.preferred_carveout(&fixture.device)?)),
    ("Kernel::cluster_size_must_be_set", |fixture| made(fixture.code.fill.cluster_size_must_be_set(&fixture.device)?)),
    ("Kernel::non_portable_cluster_size_allowed", |fixture| {
        made(fixture.code.fill.non_portable_cluster_size_allowed(&fixture.device)?)
    }),
    ("Kernel::set_non_portable_cluster_size_allowed", |fixture| {
        made(fixture.code.fill.set_non_portable_cluster_size_allowed(&fixture.device, false)?)
    }),
    ("Kernel::cluster_scheduling", |fixture| made(fixture.code.fill.cluster_scheduling(&fixture.device)?)),
    ("Kernel::suggested_config", |fixture| made(fixture.code.fill.suggested_config(&fixture.context, LEN as u32)?)),
    ("Kernel::typed", |fixture| made(fixture.code.library.untyped_kernel("fill")?.typed::<super::code::Fill>()?)),
    ("Kernel::from_raw_kernel", |fixture| {
        let raw = fixture.code.fill.as_raw().cast();
        // SAFETY: the fixture keeps the kernel.
        made(unsafe { Kernel::<Untyped>::from_raw_kernel(&fixture.driver, raw) }?)
    }),
    ("Kernel::from_raw_function", |fixture| {
        let function = fixture.code.fill.in_context(&fixture.context)?;
        // SAFETY: the fixture keeps the kernel's library, and so its module in the context.
        made(unsafe { Kernel::<Untyped>::from_raw_function(&fixture.context, function.as_raw()) }?)
    }),
    ("Kernel::launch_raw", |fixture| {
        let kernel = fixture.code.library.untyped_kernel("fill")?;
        let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
        let (mut address, mut value, mut len) = (buffer.as_pointer().as_raw(), 7_u32, LEN as u32);
        let mut arguments = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut len).cast()];
        let (config, attributes) = (LaunchConfig::new(1, 32), LaunchAttributes::new());
        // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream, which orders it.
        made(unsafe { kernel.launch_raw(&fixture.stream, config, &attributes, &mut arguments) }?)
    }),
    ("SafeKernel::launch", |fixture| {
        let kernel = fixture.code.library.kernel::<super::code::Fill>("fill")?;
        // SAFETY: `fill` writes the number of words in its last argument, which is the length of the buffer.
        let kernel = unsafe { kernel.declare_safe() };
        made(kernel.launch(&fixture.other, LaunchConfig::new(1, 32), (&mut fixture.buffer, 8, LEN as u32))?)
    }),
];

/// Operations that a simulated or a small device may not support.
pub(super) const SOLITARY: &[Operation] = &[
    ("Kernel::parameter_count", |fixture| made(fixture.code.fill.parameter_count()?)),
    ("Kernel::set_cluster_scheduling", |fixture| {
        made(fixture.code.fill.set_cluster_scheduling(&fixture.device, ClusterScheduling::Default)?)
    }),
    ("Kernel::device_node_update_supported", |fixture| {
        made(fixture.code.fill.device_node_update_supported(&fixture.device)?)
    }),
    ("Kernel::shared_memory_mode", |fixture| made(fixture.code.fill.shared_memory_mode(&fixture.device)?)),
    ("Kernel::set_shared_memory_mode", |fixture| {
        made(fixture.code.fill.set_shared_memory_mode(&fixture.device, SharedMemoryMode::Default)?)
    }),
    ("Kernel::set_required_cluster", |fixture| made(fixture.code.fill.set_required_cluster(&fixture.device, 1)?)),
    ("Kernel::launch_raw_updatable", |fixture| {
        let kernel = fixture.code.library.untyped_kernel("fill")?;
        let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
        let (mut address, mut value, mut len) = (buffer.as_pointer().as_raw(), 7_u32, LEN as u32);
        let mut arguments = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut len).cast()];
        let (config, attributes) = (LaunchConfig::new(1, 32), LaunchAttributes::new());
        // SAFETY: `fill` writes exactly the words of the buffer, on the buffer's own stream, which orders it.
        made(unsafe { kernel.launch_raw_updatable(&fixture.stream, config, &attributes, &mut arguments) }?)
    }),
];
