//! Device memory that a handle of a library uses on its own account: its accesses are ordered, and
//! graphs lease it.

use std::error::Error;

use curium_driver::{Graph, Stream};
use curium_memory::{DeviceBuffer, LibraryMemory};
use curium_tests::{TestDriver, on_driver};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn on_any_driver(test: fn(&TestDriver) -> Result) -> Result {
    let mut result = Ok(());
    on_driver(|driver| result = test(driver));
    result
}

/// Enqueues an operation of a handle, which fills `output` in addition to its own memory.
fn operate(
    memory: &mut LibraryMemory,
    stream: &Stream,
    output: &mut DeviceBuffer<u32>,
) -> curium_driver::Result<()> {
    let mut operation = stream.enqueue("test")?;
    // SAFETY: `launched` follows.
    unsafe { memory.bind(&mut operation) }?;
    let filled = output.on_mut(stream).fill(1);
    // SAFETY: `bind` succeeded with this operation.
    unsafe { memory.launched(&mut operation) };
    filled
}

fn each_kind(stream: &Stream) -> Result<[LibraryMemory; 2]> {
    Ok([
        LibraryMemory::allocate(stream, 256)?,
        LibraryMemory::opaque(stream),
    ])
}

/// An operation on another stream waits for the earlier one, and one on the same stream does not.
#[test]
fn operations_on_one_handle_wait() -> Result {
    on_any_driver(|test| {
        let stream = test.stream();
        let other = test.stream();
        let mut one = DeviceBuffer::<u32>::zeroed(&stream, 16)?;
        let mut two = DeviceBuffer::<u32>::zeroed(&other, 16)?;
        for mut memory in each_kind(&stream)? {
            let waits = other.inserted_waits();
            operate(&mut memory, &stream, &mut one)?;
            operate(&mut memory, &stream, &mut one)?;
            assert_eq!(other.inserted_waits(), waits);
            operate(&mut memory, &other, &mut two)?;
            assert_eq!(other.inserted_waits(), waits + 1);
        }
        Ok(())
    })
}

/// A direct operation waits for the launch of a graph that captured another one, in either order of
/// the drops.
#[test]
fn operations_wait_for_launches() -> Result {
    on_any_driver(|test| {
        let stream = test.stream();
        let other = test.stream();
        let mut one = DeviceBuffer::<u32>::zeroed(&stream, 16)?;
        let mut two = DeviceBuffer::<u32>::zeroed(&other, 16)?;
        for mut memory in each_kind(&stream)? {
            let graph = Graph::capture(stream.context(), |scope| {
                operate(&mut memory, scope, &mut one)
            })?;
            let mut executable = graph.instantiate()?;
            executable.launch(&stream)?;
            let waits = other.inserted_waits();
            operate(&mut memory, &other, &mut two)?;
            assert!(other.inserted_waits() > waits);
            executable.launch(&stream)?;
            drop(memory);
            executable.launch(&stream)?;
        }
        for mut memory in each_kind(&stream)? {
            let graph = Graph::capture(stream.context(), |scope| {
                operate(&mut memory, scope, &mut one)
            })?;
            drop(graph);
            operate(&mut memory, &other, &mut two)?;
        }
        Ok(())
    })
}

/// Memory that was created in a capture belongs to it.
#[test]
fn captured_memory_is_refused() -> Result {
    on_any_driver(|test| {
        let stream = test.stream();
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 16)?;
        for is_opaque in [true, false] {
            let mut retained = None;
            let graph = Graph::capture(stream.context(), |scope| {
                let memory = if is_opaque {
                    LibraryMemory::opaque(scope)
                } else {
                    LibraryMemory::allocate(scope, 256)?
                };
                operate(retained.insert(memory), scope, &mut output)
            })?;
            let mut memory = retained.ok_or("the closure was not called")?;
            assert!(operate(&mut memory, &stream, &mut output).is_err());
            drop(graph);
            assert!(operate(&mut memory, &stream, &mut output).is_err());
        }
        Ok(())
    })
}

#[test]
fn opaque_memory_has_no_address() -> Result {
    on_any_driver(|test| {
        let [buffer, opaque] = each_kind(&test.stream())?;
        assert_eq!(buffer.byte_len(), 256);
        assert!(
            buffer
                .as_pointer()
                .is_some_and(|pointer| !pointer.is_null())
        );
        assert_eq!(opaque.byte_len(), 0);
        assert!(opaque.as_pointer().is_none());
        assert!(format!("{opaque:?}").contains("allocated by the library"));
        Ok(())
    })
}

pub(crate) mod operations {
    use curium_memory::LibraryMemory;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("LibraryMemory::allocate", |fixture| {
            made(LibraryMemory::allocate(&fixture.stream, 256)?)
        }),
        ("LibraryMemory::bind", |fixture| {
            let mut memory = LibraryMemory::opaque(&fixture.stream);
            let mut operation = fixture.other.enqueue("test")?;
            // SAFETY: no operation is enqueued.
            unsafe { memory.bind(&mut operation) }?;
            drop(operation);
            made(memory)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
