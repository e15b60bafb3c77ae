//! The public operations of the driver and memory crates that call the driver, for tests that apply
//! to all of them.
//!
//! Each contract test file registers the operations that it tests in a module `operations`; this
//! file collects them.

mod block;
#[cfg(target_os = "linux")]
mod other_process;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use curium_driver::{
    Argument, Context, Device, DevicePointer, Driver, Event, EventFlags, Global, Kernel, Library,
    Module, Parameter, Result, Stream,
};
use curium_memory::{
    DeviceBox, DeviceBuffer, MappedBuffer, PinnedBuffer, PinnedFlags, PitchedBuffer, UnifiedBuffer,
};
use curium_tests::{TestDriver, kernels};

#[cfg(target_os = "linux")]
pub(crate) use self::block::{Block, block};
pub(crate) use self::block::{allocate, allocate_and_free, upkeep};
#[cfg(target_os = "linux")]
pub(crate) use self::other_process::OtherProcess;

/// Operations that a contract test file registers with [`inventory::submit!`].
pub(crate) enum Operations {
    /// Every driver of CUDA 13.0 or newer supports them, with one device.
    Common(&'static [Operation]),
    /// They require a simulator of their own, and may fail: those after which no call succeeds,
    /// those that a simulated machine or an older driver does not support, and those with driver
    /// calls on other threads, which no sweep can count.
    Solitary(&'static [Operation]),
    /// They open objects of another process, which is another simulator.
    Shared(&'static [Operation]),
    /// They require a driver of CUDA 13.1.
    Newer(&'static [Operation]),
}

inventory::collect!(Operations);

/// Returns the operations in the lists that `select` returns, by name.
fn registered(select: impl Fn(&Operations) -> Option<&'static [Operation]>) -> Vec<Operation> {
    let lists = inventory::iter::<Operations>.into_iter().filter_map(select);
    let mut operations: Vec<Operation> = lists.flatten().copied().collect();
    operations.sort_by_key(|(name, _)| *name);
    operations
}

/// Returns all operations.
pub(crate) fn all() -> Vec<Operation> {
    registered(|operations| match operations {
        Operations::Common(list) => Some(list),
        Operations::Shared(list) if !curium_tests::uses_cuda() => Some(list),
        _ => None,
    })
}

/// Returns the operations that require a driver of CUDA 13.1 or newer, which the simulator must be
/// configured for.
pub(crate) fn newer() -> Vec<Operation> {
    registered(|operations| match operations {
        Operations::Newer(list) => Some(list),
        _ => None,
    })
}

/// Returns the operations that require a simulator of their own, and may fail.
#[cfg_attr(miri, expect(dead_code, reason = "Miri is too slow for them"))]
pub(crate) fn solitary() -> Vec<Operation> {
    registered(|operations| match operations {
        Operations::Solitary(list) | Operations::Newer(list) => Some(list),
        _ => None,
    })
}

/// A name and a function.
pub(crate) type Operation = (&'static str, fn(&mut Fixture) -> Result<Made>);

/// The result of an operation, which the test drops when it is ready.
pub(crate) type Made = Box<dyn Any>;

/// The signature of the kernel [`kernels::FILL`].
pub(crate) type Fill = (&'static mut [u32], u32, u32);

/// The number of elements of a buffer.
pub(crate) const LEN: usize = 16;

const VARIABLE: &str =
    ".version 7.8\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 word = 3;\n";

/// The objects that operations use. All are idle: no stream has pending work.
pub(crate) struct Fixture {
    pub(crate) driver: Driver,
    pub(crate) device: Device,
    pub(crate) context: Context,
    pub(crate) stream: Stream,
    pub(crate) other: Stream,
    pub(crate) event: Event,
    pub(crate) later: Event,
    pub(crate) buffer: DeviceBuffer<u32>,
    pub(crate) target: DeviceBuffer<u32>,
    /// The target of stream memory operations, which do not accept memory allocated in stream
    /// order.
    pub(crate) values: PinnedBuffer<u32>,
    pub(crate) mapped: MappedBuffer<u32>,
    pub(crate) unified: UnifiedBuffer<u32>,
    pub(crate) rows: PitchedBuffer<u32>,
    pub(crate) value: DeviceBox<u32>,
    pub(crate) library: Library,
    pub(crate) module: Module,
    pub(crate) fill: Kernel<Fill>,
    /// Code with the variable `word`, as a library and as a module.
    pub(crate) variables: Library,
    pub(crate) module_variables: Module,
    pub(crate) word: Global<u32>,
}

impl Fixture {
    pub(crate) fn new(test: &TestDriver) -> Self {
        Self::prepare(test).expect("the driver works")
    }

    fn prepare(test: &TestDriver) -> Result<Self> {
        let device = test.device();
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let other = context.stream()?;
        let event = Event::new(&context, EventFlags::empty())?;
        let later = Event::new(&context, EventFlags::empty())?;
        event.record(&stream)?;
        later.record(&stream)?;
        let buffer = DeviceBuffer::from_slice(&stream, &[1; LEN])?;
        let target = DeviceBuffer::from_slice(&other, &[2; LEN])?;
        let library = Library::from_ptx(&context, kernels::FILL)?;
        let module_variables = Module::from_ptx(&context, VARIABLE)?;
        let fixture = Self {
            driver: test.driver().clone(),
            values: PinnedBuffer::zeroed(&context, LEN, PinnedFlags::DEVICE_MAP)?,
            mapped: MappedBuffer::zeroed(&stream, LEN)?,
            unified: UnifiedBuffer::zeroed(&stream, LEN)?,
            rows: PitchedBuffer::zeroed(&stream, 4, 4)?,
            value: DeviceBox::new(&stream, 1)?,
            module: Module::from_ptx(&context, kernels::FILL)?,
            fill: library.kernel("fill")?,
            library,
            variables: Library::from_ptx(&context, VARIABLE)?,
            word: module_variables.global("word")?,
            module_variables,
            device,
            context,
            stream,
            other,
            event,
            later,
            buffer,
            target,
        };
        fixture.context.synchronize()?;
        Ok(fixture)
    }

    /// Returns the device pointer of the values, which is equal to their host address.
    pub(crate) fn value_address(&self) -> DevicePointer<u32> {
        DevicePointer::from_raw(self.values.as_ptr().expose_provenance() as u64)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the operations return it")]
pub(crate) fn made<T: 'static>(value: T) -> Result<Made> {
    Ok(boxed(value))
}

pub(crate) fn boxed<T: 'static>(value: T) -> Made {
    Box::new(value)
}

/// Binds an argument and records its access, as a launch does.
pub(crate) fn pass<P: Parameter>(stream: &Stream, mut argument: impl Argument<P>) -> Result<Made> {
    let mut operation = stream.enqueue("test")?;
    // SAFETY: no work is enqueued on the stream, and the argument is not used in between.
    unsafe { argument.bind(&mut operation) }?;
    // SAFETY: the argument was bound to this stream above and has not been used since.
    unsafe { argument.launched(&mut operation) };
    made(())
}

/// Returns the path of a PTX file, written once: the machine that runs the tests need not have the
/// source tree.
pub(crate) fn ptx_file() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("curium-fill-{}.ptx", std::process::id()));
        std::fs::write(&path, kernels::FILL).expect("failed to write the file");
        path
    });
    &FILE
}
