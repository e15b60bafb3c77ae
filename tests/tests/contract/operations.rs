//! The list of public operations of the driver and memory crates that call the driver, for tests that apply to all of
//! them.

#[cfg(not(miri))]
mod arrays;
mod captures;
#[cfg(not(miri))]
mod graph_execs;
#[cfg(not(miri))]
mod graphs;
mod hazards;
#[cfg(not(miri))]
mod kernels;
#[cfg(not(miri))]
mod loading;
mod memory;
#[cfg(not(miri))]
mod on_streams;
#[cfg(all(target_os = "linux", not(miri)))]
mod other_process;
#[cfg(not(miri))]
mod pools;
#[cfg(not(miri))]
mod refused;
mod resources;
#[cfg(not(miri))]
mod solitary;
mod streams;
#[cfg(not(miri))]
mod virtual_memory;

use std::any::Any;

use curium_driver::{Context, Device, DevicePointer, Driver, Event, EventFlags, Result, Stream, StreamOptions};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sys::CUdevice_attribute;
use curium_tests::{TestDriver, stream_work};

use crate::context_operations;

/// The objects that operations use. All are idle: no stream has pending work.
pub(crate) struct Fixture {
    pub(crate) driver: Driver,
    pub(crate) device: Device,
    pub(crate) context: Context,
    stream: Stream,
    other: Stream,
    event: Event,
    later: Event,
    buffer: DeviceBuffer<u32>,
    target: DeviceBuffer<u32>,
    /// The target of stream memory operations, which do not accept memory allocated in stream order.
    values: PinnedBuffer<u32>,
    /// Memory without stream order.
    kinds: memory::Kinds,
    #[cfg(not(miri))]
    pub(crate) code: code::Code,
}

/// The result of an operation, which the test drops when it is ready.
pub(crate) type Made = Box<dyn Any>;

/// A name and a function.
pub(crate) type Operation = (&'static str, fn(&mut Fixture) -> Result<Made>);

const LEN: usize = 16;

impl Fixture {
    pub(crate) fn new(test: &TestDriver) -> Self {
        Self::prepare(test).expect("the driver works")
    }

    fn prepare(test: &TestDriver) -> Result<Self> {
        let device = test.device();
        let context = device.primary_context()?;
        let (stream, other) = (context.stream()?, context.stream()?);
        let event = Event::new(&context, EventFlags::empty())?;
        let later = Event::new(&context, EventFlags::empty())?;
        event.record(&stream)?;
        later.record(&stream)?;
        let buffer = DeviceBuffer::from_slice(&stream, &[1; LEN])?;
        let target = DeviceBuffer::from_slice(&other, &[2; LEN])?;
        let values = PinnedBuffer::zeroed(&context, LEN, PinnedFlags::DEVICE_MAP)?;
        let kinds = memory::Kinds::new(&stream)?;
        context.synchronize()?;
        Ok(Self {
            driver: test.driver().clone(),
            #[cfg(not(miri))]
            code: code::Code::new(&context)?,
            device,
            context,
            stream,
            other,
            event,
            later,
            buffer,
            target,
            values,
            kinds,
        })
    }

    /// Returns the device pointer of the values, which is equal to their host address.
    fn value_address(&self) -> DevicePointer<u32> {
        DevicePointer::from_raw(self.values.as_ptr().expose_provenance() as u64)
    }
}

/// The operations that need no device code.
pub(crate) const OPERATIONS: &[Operation] = &[
    ("Driver::from_api", |fixture| {
        // SAFETY: the table is that of the fixture's driver, which outlives every object created from it here.
        made(unsafe { Driver::from_api(fixture.driver.api().clone()) }?)
    }),
    ("Driver::from_api_with_owner", |fixture| {
        let owner = fixture.driver.clone();
        // SAFETY: `owner` keeps the functions of the table callable.
        made(unsafe { Driver::from_api_with_owner(fixture.driver.api().clone(), owner) }?)
    }),
    ("Driver::device_count", |fixture| made(fixture.driver.device_count()?)),
    ("Driver::device", |fixture| made(fixture.driver.device(0)?)),
    ("Driver::devices", |fixture| made(fixture.driver.devices()?)),
    ("Device::name", |fixture| made(fixture.device.name()?)),
    ("Device::uuid", |fixture| made(fixture.device.uuid()?)),
    ("Device::pci_bus_id", |fixture| made(fixture.device.pci_bus_id()?)),
    ("Device::total_memory", |fixture| made(fixture.device.total_memory()?)),
    ("Device::attribute", |fixture| made(fixture.device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?)),
    ("Device::compute_capability", |fixture| made(fixture.device.compute_capability()?)),
    ("Device::primary_context", |fixture| made(fixture.device.primary_context()?)),
    ("Context::stream", |fixture| made(fixture.context.stream()?)),
    ("Context::synchronize", |fixture| made(fixture.context.synchronize()?)),
    ("Context::memory_info", |fixture| made(fixture.context.memory_info()?)),
    ("Context::profile", |fixture| made(fixture.context.profile()?)),
    ("Profiling::close", |fixture| fixture.context.profile()?.close().map_err(|returned| returned.error).map(boxed)),
    ("Driver::log_reader", |fixture| made(fixture.driver.log_reader()?)),
    ("LogReader::read", |fixture| made(fixture.driver.log_from_start().read()?)),
    ("LogReader::write_to", |fixture| {
        let path = std::env::temp_dir().join(format!("curium-log-{:?}", std::thread::current().id()));
        let result = fixture.driver.log_reader()?.write_to(&path);
        std::fs::remove_file(path).unwrap_or_default();
        made(result?)
    }),
    ("Driver::on_log", |fixture| made(fixture.driver.on_log(|_, _| {})?)),
    ("LogListener::close", |fixture| {
        fixture.driver.on_log(|_, _| {})?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("Context::close", |fixture| {
        fixture.device.primary_context()?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("Stream::new", |fixture| made(Stream::new(&fixture.context, StreamOptions::new())?)),
    ("Stream::synchronize", |fixture| made(fixture.stream.synchronize()?)),
    ("Stream::is_finished", |fixture| made(fixture.stream.is_finished()?)),
    ("Stream::wait_event", |fixture| made(fixture.other.wait_event(&fixture.event)?)),
    ("Stream::close", |fixture| fixture.context.stream()?.close().map_err(|returned| returned.error).map(boxed)),
    ("Event::new", |fixture| made(Event::new(&fixture.context, EventFlags::empty())?)),
    ("Event::record", |fixture| made(fixture.event.record(&fixture.other)?)),
    ("Event::is_finished", |fixture| made(fixture.event.is_finished()?)),
    ("Event::synchronize", |fixture| made(fixture.event.synchronize()?)),
    ("Event::milliseconds_since", |fixture| made(fixture.later.milliseconds_since(&fixture.event)?)),
    ("Event::elapsed_since", |fixture| made(fixture.later.elapsed_since(&fixture.event)?)),
    ("Event::close", |fixture| {
        Event::new(&fixture.context, EventFlags::empty())?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("DeviceBuffer::uninit", |fixture| made(DeviceBuffer::<u32>::uninit(&fixture.stream, LEN)?)),
    ("DeviceBuffer::zeroed", |fixture| made(DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?)),
    ("DeviceBuffer::from_slice", |fixture| made(DeviceBuffer::from_slice(&fixture.stream, &[3_u32; LEN])?)),
    ("DeviceBuffer::copy_from_slice", |fixture| made(fixture.buffer.copy_from_slice(&[4; LEN])?)),
    ("DeviceBuffer::copy_to_slice", |fixture| made(fixture.buffer.copy_to_slice(&mut [0; LEN])?)),
    ("DeviceBuffer::to_vec", |fixture| made(fixture.buffer.to_vec()?)),
    ("DeviceBuffer::copy_from_device", |fixture| made(fixture.target.copy_from_device(&fixture.buffer)?)),
    ("DeviceBuffer::bind and DeviceBuffer::launched", |fixture| {
        made(stream_work::copy(&fixture.stream, &mut fixture.target, &fixture.buffer)?)
    }),
    ("DeviceBuffer::close", |fixture| {
        let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
        buffer.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("PinnedBuffer::zeroed", |fixture| made(PinnedBuffer::<u32>::zeroed(&fixture.context, LEN, PinnedFlags::empty())?)),
    ("PinnedBuffer::from_slice", |fixture| {
        made(PinnedBuffer::from_slice(&fixture.context, &[5_u32; LEN], PinnedFlags::empty())?)
    }),
    ("PinnedBuffer::close", |fixture| {
        let buffer = PinnedBuffer::<u32>::zeroed(&fixture.context, LEN, PinnedFlags::empty())?;
        buffer.close().map_err(|returned| returned.error).map(boxed)
    }),
];

/// Returns all operations.
pub(crate) fn all() -> Vec<Operation> {
    #[cfg(not(miri))]
    return [
        &common()[..],
        code::OPERATIONS,
        kernels::OPERATIONS,
        loading::OPERATIONS,
        virtual_memory::OPERATIONS,
        pools::OPERATIONS,
        if curium_tests::uses_cuda() { &[] } else { pools::SHARED },
        arrays::OPERATIONS,
        graphs::OPERATIONS,
        graph_execs::OPERATIONS,
        on_streams::OPERATIONS,
    ]
    .concat();
    #[cfg(miri)]
    return common();
}

/// Returns the operations that require a driver of CUDA 13.1 or newer, which the simulator must be configured for.
pub(crate) fn newer() -> Vec<Operation> {
    #[cfg(not(miri))]
    return pools::NEWER.to_vec();
    #[cfg(miri)]
    return vec![];
}

/// Returns the operations that require a simulator of their own, and may fail.
#[cfg(not(miri))]
pub(crate) fn solitary() -> Vec<Operation> {
    [
        solitary::OPERATIONS,
        kernels::SOLITARY,
        loading::SOLITARY,
        resources::SOLITARY,
        virtual_memory::SOLITARY,
        graphs::SOLITARY,
        graph_execs::SOLITARY,
        pools::SOLITARY,
        refused::OPERATIONS,
        pools::NEWER,
    ]
    .concat()
}

fn common() -> Vec<Operation> {
    [
        OPERATIONS,
        memory::OPERATIONS,
        memory::PENDING,
        streams::OPERATIONS,
        hazards::OPERATIONS,
        captures::OPERATIONS,
        resources::OPERATIONS,
        context_operations::OPERATIONS,
    ]
    .concat()
}

#[expect(clippy::unnecessary_wraps, reason = "the operations return it")]
pub(crate) fn made<T: 'static>(value: T) -> Result<Made> {
    Ok(boxed(value))
}

pub(crate) fn boxed<T: 'static>(value: T) -> Made {
    Box::new(value)
}

#[cfg(not(miri))]
mod code {
    //! The operations on device code, which Miri is too slow for.

    use curium_driver::{
        ArgumentList, CacheConfig, Carveout, Context, Global, Image, JitOptions, Kernel, LaunchAttributes,
        LaunchConfig, Library, Linker, Module, OccupancyFlags, Result,
    };
    use curium_tests::kernels;

    use super::{Operation, boxed, made};

    pub(super) type Fill = (&'static mut [u32], u32, u32);

    const VARIABLE: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 word = 3;\n";

    pub(crate) struct Code {
        pub(crate) library: Library,
        pub(super) module: Module,
        pub(super) fill: Kernel<Fill>,
        pub(super) variables: Library,
        pub(super) module_variables: Module,
        pub(super) word: Global<u32>,
    }

    impl Code {
        pub(super) fn new(context: &Context) -> Result<Self> {
            let library = Library::from_ptx(context, kernels::FILL)?;
            let fill = library.kernel("fill")?;
            let variables = Library::from_ptx(context, VARIABLE)?;
            let module_variables = Module::from_ptx(context, VARIABLE)?;
            let word = module_variables.global("word")?;
            let module = Module::from_ptx(context, kernels::FILL)?;
            Ok(Self { library, module, fill, variables, module_variables, word })
        }
    }

    pub(super) const OPERATIONS: &[Operation] = &[
        ("Library::from_ptx", |fixture| made(Library::from_ptx(&fixture.driver, kernels::FILL)?)),
        ("Library::kernel", |fixture| made(fixture.code.library.kernel::<Fill>("fill")?)),
        ("Library::close", |fixture| {
            Library::from_ptx(&fixture.driver, kernels::FILL)?.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("Module::from_ptx", |fixture| made(Module::from_ptx(&fixture.context, kernels::FILL)?)),
        ("Module::kernel", |fixture| made(fixture.code.module.kernel::<Fill>("fill")?)),
        ("Module::close", |fixture| {
            Module::from_ptx(&fixture.context, kernels::FILL)?.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("Kernel::launch", |fixture| {
            let config = LaunchConfig::for_elements(super::LEN as u32);
            let arguments = (&mut fixture.buffer, 6, super::LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe { fixture.code.fill.launch(&fixture.other, config, arguments) }?)
        }),
        ("Kernel::launch_with", |fixture| {
            let config = LaunchConfig::for_elements(super::LEN as u32);
            let arguments = (&mut fixture.buffer, 6, super::LEN as u32);
            let attributes = LaunchAttributes::new().with_priority(0);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe { fixture.code.fill.launch_with(&fixture.other, config, &attributes, arguments) }?)
        }),
        ("Kernel::launch_cooperative", |fixture| {
            let config = LaunchConfig::new(1, 32);
            let arguments = (&mut fixture.buffer, 6, super::LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe { fixture.code.fill.launch_cooperative(&fixture.other, config, arguments) }?)
        }),
        ("ArgumentList::check and ArgumentList::launch_with", |fixture| {
            let kernel = fixture.code.library.untyped_kernel("fill")?;
            let arguments = ArgumentList::new().write(&mut fixture.buffer).value(6_u32).value(super::LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe { kernel.launch(&fixture.other, LaunchConfig::for_elements(super::LEN as u32), arguments) }?)
        }),
        ("Kernel::parameters", |fixture| made(fixture.code.fill.parameters()?)),
        ("Kernel::in_context", |fixture| made(fixture.code.fill.in_context(&fixture.context)?)),
        ("Kernel::load", |fixture| made(fixture.code.fill.load(&fixture.context)?)),
        ("Kernel::load_state", |fixture| made(fixture.code.fill.load_state(&fixture.context)?)),
        ("Kernel::registers", |fixture| made(fixture.code.fill.registers(&fixture.device)?)),
        ("Kernel::required_cluster", |fixture| made(fixture.code.fill.required_cluster(&fixture.device)?)),
        ("Kernel::set_max_dynamic_shared_bytes", |fixture| {
            made(fixture.code.fill.set_max_dynamic_shared_bytes(&fixture.device, 1024)?)
        }),
        ("Kernel::set_preferred_carveout", |fixture| {
            made(fixture.code.fill.set_preferred_carveout(&fixture.device, Carveout::Default)?)
        }),
        ("Kernel::set_cache_config", |fixture| {
            made(fixture.code.fill.set_cache_config(&fixture.device, CacheConfig::NoPreference)?)
        }),
        ("Kernel::active_blocks", |fixture| made(fixture.code.fill.active_blocks(&fixture.context, 128, 0)?)),
        ("Kernel::active_blocks_with_flags", |fixture| {
            let flags = OccupancyFlags::empty();
            made(fixture.code.fill.active_blocks_with_flags(&fixture.context, 128, 0, flags)?)
        }),
        ("Kernel::available_dynamic_shared_bytes", |fixture| {
            made(fixture.code.fill.available_dynamic_shared_bytes(&fixture.context, 1, 128)?)
        }),
        ("Kernel::suggested_size", |fixture| made(fixture.code.fill.suggested_size(&fixture.context, 0, 0)?)),
        ("Kernel::suggested_size_with", |fixture| {
            let flags = OccupancyFlags::empty();
            made(fixture.code.fill.suggested_size_with(&fixture.context, |_| 0, 0, flags)?)
        }),
        ("Kernel::max_cluster_size", |fixture| {
            let (config, attributes) = (LaunchConfig::new(8, 32), LaunchAttributes::new());
            made(fixture.code.fill.max_cluster_size(&fixture.context, config, &attributes)?)
        }),
        ("Kernel::active_clusters", |fixture| {
            let (config, attributes) = (LaunchConfig::new(8, 32), LaunchAttributes::new().with_cluster(2));
            made(fixture.code.fill.active_clusters(&fixture.context, config, &attributes)?)
        }),
        ("Library::kernels", |fixture| made(fixture.code.library.kernels()?)),
        ("Library::kernel_names", |fixture| made(fixture.code.library.kernel_names()?)),
        ("Library::module", |fixture| made(fixture.code.library.module(&fixture.context)?)),
        ("Library::global", |fixture| made(fixture.code.variables.global::<u32>(&fixture.context, "word")?)),
        ("Library::from_kept_image", |fixture| {
            let image = Image::from_ptx(kernels::FILL)?;
            made(Library::from_kept_image(&fixture.driver, image, &JitOptions::new())?)
        }),
        ("Module::kernels", |fixture| made(fixture.code.module.kernels()?)),
        ("Module::kernel_names", |fixture| made(fixture.code.module.kernel_names()?)),
        ("Module::global", |fixture| made(fixture.code.module_variables.global::<u32>("word")?)),
        ("Driver::loading_mode", |fixture| made(fixture.driver.loading_mode()?)),
        ("Global::write", |fixture| {
            // SAFETY: no kernel uses the variable.
            made(unsafe { fixture.code.word.write(&fixture.other, &[4]) }?)
        }),
        ("Global::read", |fixture| {
            // SAFETY: no kernel uses the variable, and any bytes are a number.
            made(unsafe { fixture.code.word.read(&fixture.other, &mut [0]) }?)
        }),
        ("Linker::complete", |fixture| {
            let options = JitOptions::new();
            let mut linker = Linker::new(&fixture.context, &options)?;
            linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &options)?;
            linker.complete()?.close().map_err(|returned| returned.error).map(boxed)
        }),
    ];
}
