//! Each operation on a buffer's own stream returns an error in a capture, and its alternative on a
//! given stream is captured.

use curium_driver::{Error, Graph, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, on_driver};

use super::assert_refused;

/// An operation on the buffer's own stream, and its alternative on the capturing stream.
type Pair<T> = (
    &'static str,
    fn(&mut T) -> Result<(), Error>,
    fn(&mut T, &Stream) -> Result<(), Error>,
);

/// The hint of operations that write a slice.
const ON_MUT: &str = "`.on_mut(scope)`";

/// Asserts that the first of each pair fails with the hint `on_the_scope`, captures the second, and
/// checks the value that `read` returns after `clear` and a launch.
fn check_pairs<T>(
    test: &TestDriver,
    memory: &mut T,
    pairs: &[Pair<T>],
    on_the_scope: &str,
    clear: impl Fn(&mut T),
    read: impl Fn(&mut T) -> Vec<u32>,
) -> TestResult {
    for (name, own, on) in pairs {
        let graph = Graph::capture(&test.context(), |scope| {
            assert_refused(own(memory), on_the_scope);
            on(memory, scope)
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let before = read(memory);
        for _ in 0..2 {
            clear(memory);
            assert_eq!(read(memory), before, "{name} ran before the launch");
            executable.launch(&test.stream())?;
            assert_eq!(read(memory), [7; 16], "{name}");
        }
        clear(memory);
    }
    Ok(())
}

/// Twins of operations on the own stream are captured and replayed.
#[test]
fn scoped_operations_replay() -> TestResult {
    use curium_memory::{DeviceBox, Extent, HostPitchedSlice, Pitch};

    const SQUARE: Extent = Extent::new_2d(4, 4);
    const TIGHT: Pitch = Pitch::tight::<u32>(SQUARE);
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let source =
            || DeviceBuffer::from_slice(&test.stream(), &[7_u32; 16]).expect("allocation failed");
        let mut buffers = (DeviceBuffer::<u32>::zeroed(&stream, 16)?, source());
        check_pairs(
            test,
            &mut buffers,
            &[
                (
                    "copy_from_slice",
                    |operands| operands.0.copy_from_slice(&[7; 16]),
                    |operands, on| operands.0.on_mut(on).copy_from_slice(&[7; 16]),
                ),
                (
                    "copy_from_device",
                    |operands| operands.0.copy_from_device(&operands.1),
                    |operands, on| operands.0.on_mut(on).copy_from_device(&operands.1),
                ),
                (
                    "fill",
                    |operands| operands.0.fill(7),
                    |operands, on| operands.0.on_mut(on).fill(7),
                ),
                (
                    "fill",
                    |operands| operands.0.pitched_mut(SQUARE, TIGHT)?.fill(7),
                    |operands, on| operands.0.pitched_mut(SQUARE, TIGHT)?.on_mut(on).fill(7),
                ),
                (
                    "copy_from",
                    |operands| {
                        let source = operands.1.pitched(SQUARE, TIGHT)?;
                        operands.0.pitched_mut(SQUARE, TIGHT)?.copy_from(&source)
                    },
                    |operands, on| {
                        let source = operands.1.pitched(SQUARE, TIGHT)?;
                        operands
                            .0
                            .pitched_mut(SQUARE, TIGHT)?
                            .on_mut(on)
                            .copy_from(&source)
                    },
                ),
                (
                    "copy_from_host",
                    |operands| {
                        let source = HostPitchedSlice::new(&[7; 16], SQUARE, TIGHT)?;
                        operands
                            .0
                            .pitched_mut(SQUARE, TIGHT)?
                            .copy_from_host(&source)
                    },
                    |operands, on| {
                        let source = HostPitchedSlice::new(&[7; 16], SQUARE, TIGHT)?;
                        operands
                            .0
                            .pitched_mut(SQUARE, TIGHT)?
                            .on_mut(on)
                            .copy_from_host(&source)
                    },
                ),
                (
                    "copy_from_slice",
                    |operands| {
                        operands
                            .0
                            .pitched_mut(SQUARE, TIGHT)?
                            .copy_from_slice(&[7; 16])
                    },
                    |operands, on| {
                        operands
                            .0
                            .pitched_mut(SQUARE, TIGHT)?
                            .on_mut(on)
                            .copy_from_slice(&[7; 16])
                    },
                ),
            ],
            ON_MUT,
            |operands| {
                operands.0.zero().expect("the owner may write");
            },
            |operands| operands.0.to_vec().expect("read failed"),
        )?;
        let mut zeroed = DeviceBuffer::from_slice(&stream, &[1_u32; 16])?;
        let graph = Graph::capture(&test.context(), |scope| {
            assert_refused(zeroed.zero(), ON_MUT);
            zeroed.on_mut(scope).zero()
        });
        let mut executable = graph.and_then(|graph| graph.instantiate())?;
        executable.launch(&stream)?;
        assert_eq!(zeroed.to_vec()?, [0; 16]);
        let mut value = DeviceBox::new(&stream, 0_u32)?;
        check_pairs(
            test,
            &mut value,
            &[(
                "set",
                |operands| operands.set(7),
                |operands, on| operands.on_mut(on).set(0, 7),
            )],
            ON_MUT,
            |operands| operands.set(0).expect("the owner may write"),
            |operands| vec![operands.get().expect("read failed"); 16],
        )?;
        Ok(())
    })?;
    Ok(())
}

/// Twins of operations of arrays are captured and replayed.
#[test]
#[cfg(not(miri))]
fn array_operations_replay() -> TestResult {
    use curium_memory::{Array, ArrayFlags, ArrayRegion, ArrayShape};

    const SHAPE: ArrayShape = ArrayShape::new_2d(4, 4);
    const WHOLE: ArrayRegion = ArrayRegion::whole(SHAPE);
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let array = |value| -> TestResult<_> {
            Ok(Array::from_slice(
                &stream,
                &[value; 16],
                SHAPE,
                ArrayFlags::empty(),
            )?)
        };
        let buffer = |value| -> TestResult<_> {
            Ok(DeviceBuffer::from_slice(&test.stream(), &[value; 16])?)
        };
        let mut arrays = (array(0_u32)?, array(7)?, buffer(7)?);
        check_pairs(
            test,
            &mut arrays,
            &[
                (
                    "copy_from_slice",
                    |operands| operands.0.copy_from_slice(&[7; 16]),
                    |operands, on| operands.0.on(on).copy_from_slice(&[7; 16]),
                ),
                (
                    "copy_region_from_slice",
                    |operands| operands.0.copy_region_from_slice(WHOLE, &[7; 16]),
                    |operands, on| operands.0.on(on).copy_region_from_slice(WHOLE, &[7; 16]),
                ),
                (
                    "copy_from_device",
                    |operands| operands.0.copy_from_device(WHOLE, &operands.2),
                    |operands, on| operands.0.on(on).copy_from_device(WHOLE, &operands.2),
                ),
                (
                    "copy_from_array",
                    |operands| operands.0.copy_from_array([0; 3], &operands.1, WHOLE),
                    |operands, on| {
                        operands
                            .0
                            .on(on)
                            .copy_from_array([0; 3], &operands.1, WHOLE)
                    },
                ),
            ],
            "`.on(scope)`",
            |operands| {
                operands
                    .0
                    .copy_from_slice(&[0; 16])
                    .expect("the owner may write");
            },
            |operands| operands.0.to_vec().expect("read failed"),
        )?;
        let mut copied = (array(7_u32)?, buffer(0)?);
        check_pairs(
            test,
            &mut copied,
            &[(
                "copy_to_device",
                |operands| operands.0.copy_to_device(WHOLE, &mut operands.1),
                |operands, on| operands.0.on(on).copy_to_device(WHOLE, &mut operands.1),
            )],
            "`.on(scope)`",
            |operands| {
                operands.1.zero().expect("the owner may write");
            },
            |operands| operands.1.to_vec().expect("read failed"),
        )?;
        Ok(())
    })?;
    Ok(())
}
