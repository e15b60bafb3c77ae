//! [`BorrowedBuffer`]: memory of an external owner is used like a buffer, and the owner is dropped after every access.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::{DevicePointer, Error, Function, Graph, LaunchConfig, Library};
use curium_memory::{
    AddressRange, BorrowedBuffer, DeviceBuffer, DeviceSlice, Mapping, MemoryAccess, PhysicalMemory,
};
use curium_tests::{Gate, TestDriver, kernels, on_driver};

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

fn mapping(test: &TestDriver) -> Mapping {
    let memory = PhysicalMemory::new(&test.device(), BYTES).expect("memory suffices");
    let mapping =
        AddressRange::reserve(test.driver(), BYTES).and_then(|range| range.map(0, &memory));
    let mapping = mapping.expect("it fits");
    mapping
        .set_access(&test.device(), MemoryAccess::ReadWrite)
        .expect("the device can be given access");
    mapping
}

/// Returns a buffer in a mapping, and a flag that is set when the mapping is dropped.
fn buffer(test: &TestDriver) -> (BorrowedBuffer<u32, Owner>, Arc<AtomicBool>) {
    let (mapping, has_ended) = (mapping(test), Arc::default());
    let pointer = mapping.as_pointer().cast();
    let owner = Owner {
        _mapping: mapping,
        has_ended: Arc::clone(&has_ended),
    };
    // SAFETY: the mapping has this many bytes, is accessible to the device, and is not used elsewhere.
    let buffer = unsafe { BorrowedBuffer::new(&test.stream(), pointer, LEN, owner) };
    (buffer.expect("the pointer is aligned"), has_ended)
}

#[test]
fn borrowed_buffer_is_copied_filled_and_passed_to_kernels() {
    on_driver(|test| {
        let (stream, (mut buffer, _)) = (test.stream(), buffer(test));
        let source: Vec<u32> = (0..LEN as u32).collect();
        buffer
            .as_slice_mut()
            .copy_from_slice(&source)
            .expect("the lengths are equal");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), source);
        let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
        target
            .as_slice_mut()
            .copy_from_device(&buffer)
            .expect("the lengths are equal");
        assert_eq!(target.to_vec().expect("the buffer can be read"), source);
        let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the kernels load");
        let fill = library
            .kernel::<(&mut [u32], u32, u32)>("fill")
            .expect("there is such a kernel");
        let config = LaunchConfig::for_elements(LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { fill.launch(&stream, config, (&mut buffer, 9, LEN as u32)) }
            .expect("it can be launched");
        assert_eq!(
            buffer
                .slice(1000..)
                .and_then(DeviceSlice::to_vec)
                .expect("it can be read"),
            [9; 24]
        );
    });
}

#[test]
fn owner_of_a_buffer_dropped_while_pending_is_dropped_after_the_work() {
    on_driver(|test| {
        let (other, (mut buffer, has_ended)) = (test.stream(), buffer(test));
        let gate = Gate::on(&other);
        buffer
            .as_slice_mut()
            .fill_on(&other, 5)
            .expect("memory can be filled");
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| drop(buffer));
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(
                !has_ended.load(Ordering::Acquire),
                "the memory was unmapped while the device used it"
            );
            gate.open();
            dropping.join().expect("dropping does not panic");
        });
        assert!(has_ended.load(Ordering::Acquire));
    });
}

#[test]
fn owner_is_returned_once_the_work_is_done() {
    on_driver(|test| {
        let (mut buffer, has_ended) = buffer(test);
        buffer.as_slice_mut().fill(5).expect("memory can be filled");
        let owner = buffer.into_owner().expect("no graph uses the memory");
        assert!(!has_ended.load(Ordering::Acquire));
        test.assert_calls(Function::cuMemUnmap, 1, || drop(owner));
    });
}

#[test]
fn graph_keeps_the_owner_of_the_memory_that_it_uses() {
    on_driver(|test| {
        let (stream, (mut buffer, has_ended)) = (test.stream(), buffer(test));
        let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
        buffer.as_slice_mut().fill(5).expect("memory can be filled");
        let graph = Graph::capture(&test.context(), |scope| {
            target.as_slice_mut().copy_from_device_on(scope, &buffer)
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the copy can be captured");
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
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(target.to_vec().expect("the buffer can be read"), [5; LEN]);
        drop(executable);
        assert!(has_ended.load(Ordering::Acquire));
    });
}

#[test]
fn pointers_that_are_null_or_not_aligned_make_no_buffer() {
    on_driver(|test| {
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
            // SAFETY: as above.
            let buffer = unsafe {
                BorrowedBuffer::<u32, _>::new(scope, DevicePointer::from_raw(256), 4, ())
            };
            assert!(
                buffer
                    .expect_err("the stream belongs to a capture")
                    .to_string()
                    .contains(scope_error)
            );
            Ok::<_, Error>(())
        });
        drop(graph.expect("the capture ends"));
    });
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{BorrowedBuffer, Mapping, MemoryAccess};

    use crate::operations::{Fixture, LEN, Operation, boxed, made, pass};
    use crate::virtual_memory::operations::map;

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("BorrowedBuffer::to_vec_on", |fixture| {
            let buffer = foreign(fixture)?;
            buffer.to_vec_on(&fixture.other)?;
            made(buffer)
        }),
        ("BorrowedBuffer::to_vec", |fixture| {
            let buffer = foreign(fixture)?;
            buffer.to_vec()?;
            made(buffer)
        }),
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

    /// Returns a buffer of words in a mapping.
    fn foreign(fixture: &Fixture) -> Result<BorrowedBuffer<u32, Mapping>> {
        let mapping = map(fixture)?;
        mapping.set_access(&fixture.device, MemoryAccess::ReadWrite)?;
        // SAFETY: the mapping has this many words, is accessible to the device, and is not used elsewhere.
        let mut buffer = unsafe {
            BorrowedBuffer::new(&fixture.stream, mapping.as_pointer().cast(), LEN, mapping)
        }?;
        buffer.as_slice_mut().fill(3)?;
        Ok(buffer)
    }
}
