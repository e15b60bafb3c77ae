//! [`BorrowedBuffer`]: memory of an external owner is used like a buffer, and the owner is dropped after every access.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::{DevicePointer, Error, Function, Graph, LaunchConfig, Library};
use curium_memory::{
    AddressRange, BorrowedBuffer, DeviceBuffer, Mapping, MemoryAccess, PhysicalMemory,
};
use curium_tests::{Gate, TestDriver, TestResult, driver_test, kernels, resume_panic};

const LEN: usize = 1024;
const BYTES: usize = 2 << 20;

/// A mapping that records its drop.
#[derive(Debug)]
struct Owner {
    _mapping: Mapping,
    has_ended: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

fn mapping(test: &TestDriver) -> TestResult<Mapping> {
    let memory = PhysicalMemory::new(&test.device(), BYTES)?;
    let mapping =
        AddressRange::reserve(test.driver(), BYTES).and_then(|range| range.map(0, &memory))?;
    mapping.set_access(&test.device(), MemoryAccess::ReadWrite)?;
    Ok(mapping)
}

/// Returns a buffer in a mapping, and a flag that is set when the mapping is dropped.
fn buffer(test: &TestDriver) -> TestResult<(BorrowedBuffer<u32, Owner>, Arc<AtomicBool>)> {
    let mapping = mapping(test)?;
    let has_ended = Arc::default();
    let pointer = mapping.as_pointer().cast();
    let owner = Owner {
        _mapping: mapping,
        has_ended: Arc::clone(&has_ended),
    };
    // SAFETY: the mapping has this many bytes, is accessible to the device, and is not used
    // elsewhere.
    let buffer = unsafe { BorrowedBuffer::new(&test.stream(), pointer, LEN, owner) };
    Ok((buffer?, has_ended))
}

/// A borrowed buffer is copied filled and passed to kernels.
#[driver_test]
fn borrowed_buffer_is_copied_filled_and_launched(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let (mut buffer, _) = buffer(test)?;
    let source: Vec<u32> = (0..LEN as u32).collect();
    buffer.copy_from_slice(&source)?;
    assert_eq!(buffer.to_vec()?, source);
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    target.copy_from_device(&buffer)?;
    assert_eq!(target.to_vec()?, source);
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let config = LaunchConfig::for_elements(LEN);
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { fill.launch(&stream, config, (&mut buffer, 9, LEN as u32)) }?;
    assert_eq!(buffer.slice(1000..)?.to_vec()?, [9; 24]);
    Ok(())
}

/// An owner of a buffer dropped while pending is dropped after the work.
#[driver_test]
fn owner_is_dropped_after_pending_work(test: &TestDriver) -> TestResult {
    let other = test.stream();
    let (mut buffer, has_ended) = buffer(test)?;
    let gate = Gate::on(&other);
    buffer.on_mut(&other).fill(5)?;
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| drop(buffer));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(
            !has_ended.load(Ordering::Acquire),
            "the memory was unmapped while the device used it"
        );
        gate.open();
        resume_panic(dropping.join());
    });
    assert!(has_ended.load(Ordering::Acquire));
    Ok(())
}

#[driver_test]
fn owner_is_returned_once_the_work_is_done(test: &TestDriver) -> TestResult {
    let (mut buffer, has_ended) = buffer(test)?;
    buffer.fill(5)?;
    let owner = buffer.into_owner()?;
    assert!(!has_ended.load(Ordering::Acquire));
    test.assert_calls(Function::cuMemUnmap, 1, || drop(owner));
    Ok(())
}

#[driver_test]
fn graph_keeps_the_memory_owner(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let (mut buffer, has_ended) = buffer(test)?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    buffer.fill(5)?;
    let graph = Graph::capture(&test.context(), |scope| {
        target.on_mut(scope).copy_from_device(&buffer)
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    let (buffer, error) = buffer
        .into_owner()
        .expect_err("a graph uses the memory")
        .into_parts();
    assert!(
        error
            .to_string()
            .contains("BorrowedBuffer::into_owner: a graph uses the memory"),
        "{error}"
    );
    drop(buffer);
    assert!(
        !has_ended.load(Ordering::Acquire),
        "the graph still uses it"
    );
    executable.launch(&stream)?;
    assert_eq!(target.to_vec()?, [5; LEN]);
    drop(executable);
    assert!(has_ended.load(Ordering::Acquire));
    Ok(())
}

/// Pointers that are null or not aligned make no buffer.
#[driver_test]
fn null_and_misaligned_pointers_are_refused(test: &TestDriver) -> TestResult {
    let (stream, scope_error) = (test.stream(), "the stream is being captured");
    for (address, len, expected) in [
        (0, 4, "null pointer"),
        (2, 4, "misaligned address (0x2, alignment 4)"),
        (256, 0, "zero length"),
    ] {
        // SAFETY: the pointer is not used.
        let buffer = unsafe {
            BorrowedBuffer::<u32, _>::new(&stream, DevicePointer::from_raw(address), len, ())
        };
        let error = buffer.expect_err("there is no such memory");
        assert!(
            matches!(error, Error::Argument(_)) && error.to_string().contains(expected),
            "{error}"
        );
    }
    let graph = Graph::capture(&test.context(), |scope| {
        // SAFETY: the pointer is not used.
        let buffer =
            unsafe { BorrowedBuffer::<u32, _>::new(scope, DevicePointer::from_raw(256), 4, ()) };
        assert!(
            buffer
                .expect_err("the stream belongs to a capture")
                .to_string()
                .contains(scope_error)
        );
        Ok::<_, Error>(())
    });
    drop(graph?);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{BorrowedBuffer, Mapping, MemoryAccess};

    use crate::operations::{Fixture, LEN, Operation, Operations, boxed, made, pass};
    use crate::virtual_memory::operations::map;

    const OPERATIONS: &[Operation] = &[
        ("BorrowedBuffer::into_owner", |fixture| {
            foreign(fixture)?
                .into_owner()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("BorrowedBuffer::bind", |fixture| {
            let mut buffer = foreign(fixture)?;
            pass::<&mut [u32]>(&fixture.other, &mut buffer)?;
            made(buffer)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    /// Returns a buffer of words in a mapping.
    fn foreign(fixture: &Fixture) -> Result<BorrowedBuffer<u32, Mapping>> {
        let mapping = map(fixture)?;
        mapping.set_access(&fixture.device, MemoryAccess::ReadWrite)?;
        // SAFETY: the mapping has this many words, is accessible to the device, and is not used
        // elsewhere.
        let mut buffer = unsafe {
            BorrowedBuffer::new(&fixture.stream, mapping.as_pointer().cast(), LEN, mapping)
        }?;
        buffer.fill(3)?;
        Ok(buffer)
    }
}
