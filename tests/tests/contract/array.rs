//! [`Array`] and [`MipmappedArray`]: shapes, copies and destruction.

mod sparse;

use curium_driver::{Error, Event, EventFlags, Function};
use curium_memory::copy::CopyBatch;
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, DeviceVec, Extent, MappedBuffer,
    MipmappedArray, Pitch,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, on_driver, on_simulator, simulator_test,
};

/// Returns consecutive numbers.
fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

#[driver_test]
fn arrays_hold_copied_elements_in_every_shape(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for shape in [
        ArrayShape::new_1d(37),
        ArrayShape::new_2d(37, 11),
        ArrayShape::new_3d(8, 5, 3),
        ArrayShape::layered_1d(16, 4),
        ArrayShape::layered_2d(16, 8, 3),
        ArrayShape::cubemap(8),
        ArrayShape::layered_cubemap(4, 2),
    ] {
        let source = numbers(shape.len());
        let array = Array::from_slice(&stream, &source, shape, ArrayFlags::empty())?;
        assert_eq!((array.len(), array.shape()), (shape.len(), shape));
        assert_eq!(array.to_vec()?, source, "{shape}");
        array.close()?;
    }
    Ok(())
}

#[driver_test]
fn arrays_hold_every_element_format(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shape = ArrayShape::new_2d(5, 3);
    macro_rules! check {
            ($($value:expr),*) => {$({
                let source = [$value; 15];
                let array = Array::from_slice(&stream, &source, shape, ArrayFlags::SURFACE)?;
                assert_eq!(array.to_vec()?, source);
            })*};
        }
    check!(
        7_u8,
        [1_i8, -2],
        [1_u16, 2, 3, 4],
        -5_i16,
        [1_u32, 2],
        [-1_i32, 2, -3, 4],
        0.5_f32,
        [0.5_f32; 4]
    );
    Ok(())
}

#[driver_test]
fn regions_are_copied_and_nothing_else(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shape = ArrayShape::new_3d(6, 4, 3);
    let array = Array::from_slice(&stream, &numbers(72), shape, ArrayFlags::empty())?;
    let region = ArrayRegion {
        origin: [2, 1, 1],
        extent: [3, 2, 2],
    };
    array.copy_region_from_slice(region, &[900; 12])?;
    let mut expected = numbers(72);
    for (z, y, x) in (1..3).flat_map(|z| (1..3).flat_map(move |y| (2..5).map(move |x| (z, y, x)))) {
        expected[z * 24 + y * 6 + x] = 900;
    }
    assert_eq!(array.to_vec()?, expected);
    let mut target = [0; 4];
    let corner = ArrayRegion {
        origin: [4, 2, 0],
        extent: [2, 2, 1],
    };
    array.copy_region_to_slice(corner, &mut target)?;
    assert_eq!(target, [16, 17, 22, 23]);
    let other = Array::from_slice(&stream, &[0; 72], shape, ArrayFlags::empty())?;
    other.copy_from_array([0, 0, 2], &array, corner)?;
    other.copy_region_to_slice(
        ArrayRegion {
            origin: [0, 0, 2],
            extent: [2, 2, 1],
        },
        &mut target,
    )?;
    assert_eq!(target, [16, 17, 22, 23]);
    Ok(())
}

/// Buffers are copied to arrays and back on any stream.
#[driver_test]
fn buffers_and_arrays_copy_on_any_stream(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let shape = ArrayShape::new_2d(10, 10);
    let source = DeviceBuffer::from_slice(&other, &numbers(100))?;
    let mut target = DeviceBuffer::<u32>::zeroed(&other, 100)?;
    let array = Array::new(&stream, shape, ArrayFlags::empty())?;
    let gate = Gate::on(&other);
    let whole = ArrayRegion::whole(shape);
    array.copy_from_device(whole, &source)?;
    array.copy_to_device(whole, &mut target)?;
    drop(source);
    gate.open();
    assert_eq!(target.to_vec()?, numbers(100));
    Ok(())
}

#[driver_test]
fn arrays_accept_every_memory_view(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let region = ArrayRegion {
        origin: [2, 1, 0],
        extent: [3, 2, 1],
    };
    let array = Array::from_slice(
        &stream,
        &[0_u32; 24],
        ArrayShape::new_2d(6, 4),
        ArrayFlags::empty(),
    )?;
    let mut vector = DeviceVec::from_slice(&stream, &numbers(12))?;
    array.copy_from_device(region, &vector.slice(4..10)?)?;
    let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 6)?;
    array.copy_to_device(region, &mut mapped)?;
    assert_eq!(mapped.host_view()?[..], [4, 5, 6, 7, 8, 9]);
    array.copy_to_device(region, &mut vector.slice_mut(..6)?)?;
    assert_eq!(vector.to_vec()?[..7], [4, 5, 6, 7, 8, 9, 6]);
    let error = array
        .copy_from_device(region, &vector)
        .expect_err("too long");
    assert!(
        error
            .to_string()
            .contains("the region has 6 elements, the other operand has 12"),
        "{error}"
    );
    Ok(())
}

#[test]
fn batch_copies_array_regions() -> TestResult {
    for (version, function) in [
        (CudaVersion::new(13, 0), Function::cuMemcpy3DBatchAsync_v2),
        (CudaVersion::new(12, 0), Function::cuMemcpy3DAsync_v2),
    ] {
        on_simulator(
            Config::new().with_driver_version(version),
            |test, simulator| -> TestResult {
                let before = simulator.calls(function);
                batch_with_arrays(test)?;
                assert!(
                    simulator.calls(function) > before,
                    "{version} has {function}"
                );
                Ok(())
            },
        )?;
    }
    on_driver(batch_with_arrays)
}

/// Copies a region of an array to linear memory and pitched rows to another array, in one batch
/// that waits for another stream.
fn batch_with_arrays(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let shape = ArrayShape::new_2d(8, 4);
    let array = |value| Array::from_slice(&stream, &[value; 32], shape, ArrayFlags::empty());
    let source = array([1_u16, 2])?;
    let target = array([0; 2])?;
    let mut rows = DeviceBuffer::<[u16; 2]>::filled(&stream, 20, [7; 2])?;
    let extent = Extent::new_2d(3, 2);
    let pitch = Pitch::from_row_len::<[u16; 2]>(5);
    let gate = Gate::on(&stream);
    rows.fill([5, 6])?;
    let (mut low, high) = rows.split_at_mut(10)?;
    let from = high.pitched(extent, pitch)?;
    let to = low.pitched_mut(extent, pitch)?;
    let batch = CopyBatch::new().copy_to_array(&target, [4, 1, 0], from)?;
    let batch = batch.copy_from_array(to, &source, [0, 2, 0])?;
    assert_eq!(batch.len(), 2);
    batch.enqueue(&other)?;
    gate.open();
    let region = ArrayRegion {
        origin: [4, 1, 0],
        extent: [3, 2, 1],
    };
    let mut read = [[0; 2]; 6];
    target.copy_region_to_slice(region, &mut read)?;
    assert_eq!(read, [[5, 6]; 6]);
    assert_eq!(
        target
            .to_vec()?
            .iter()
            .filter(|texel| texel[0] == 5)
            .count(),
        6
    );
    let values = rows.to_vec()?;
    fn is_copied(index: usize) -> bool {
        index < 10 && index % 5 < 3
    }

    assert!(
        values
            .iter()
            .enumerate()
            .all(|(index, value)| *value == if is_copied(index) { [1, 2] } else { [5, 6] })
    );
    let grid = rows.pitched(extent, pitch)?;
    let error = CopyBatch::new()
        .copy_to_array(&target, [6, 0, 0], grid)
        .expect_err("it reaches beyond the array");
    assert!(
        error.to_string().contains("region out of bounds"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn dropped_array_waits_for_its_accesses(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let shape = ArrayShape::new_1d(16);
    let array = Array::<u32>::new(&stream, shape, ArrayFlags::empty())?;
    let source = DeviceBuffer::from_slice(&other, &numbers(16))?;
    let done = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&stream);
    array.copy_from_device(ArrayRegion::whole(shape), &source)?;
    done.record(&stream)?;
    std::thread::scope(|scope| {
        let end = scope.spawn(|| drop(array));
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(!end.is_finished(), "the array did not wait");
        gate.open();
    });
    assert!(done.is_finished()?);
    Ok(())
}

#[driver_test]
fn levels_halve_and_keep_the_array_alive(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shape = ArrayShape::new_2d(16, 8);
    let array = MipmappedArray::<f32>::new(&stream, shape, 5, ArrayFlags::empty())?;
    assert_eq!((array.levels(), array.shape()), (5, shape));
    let sizes = [(16, 8), (8, 4), (4, 2), (2, 1), (1, 1)];
    let levels: Vec<_> = (0..5)
        .map(|level| array.level(level))
        .collect::<Result<_, _>>()?;
    for (index, (level, (width, height))) in levels.iter().zip(sizes).enumerate() {
        assert_eq!(level.shape(), ArrayShape::new_2d(width, height));
        level.copy_from_slice(&vec![index as f32; width * height])?;
    }
    let error = array.level(5).expect_err("there are five");
    assert!(
        error
            .to_string()
            .contains("level 5 of an array of 5 levels"),
        "{error}"
    );
    let (array, error) = array
        .close()
        .expect_err("its levels are in use")
        .into_parts();
    assert!(error.to_string().contains("still in use"), "{error}");
    drop(array);
    test.assert_calls(Function::cuMipmappedArrayDestroy, 1, || -> TestResult<_> {
        for (index, level) in levels.into_iter().enumerate() {
            let expected = vec![index as f32; level.len()];
            assert_eq!(level.to_vec()?, expected);
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn borrowed_arrays_are_not_destroyed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shape = ArrayShape::new_2d(16, 8);
    let owner = MipmappedArray::<u32>::new(&stream, shape, 3, ArrayFlags::SURFACE)?;
    // SAFETY: the array outlives the borrowed objects, and all accesses are on one stream.
    let borrowed = unsafe { MipmappedArray::<u32>::borrow_raw(&stream, owner.as_raw(), 3) }?;
    assert_eq!(
        (borrowed.shape(), borrowed.levels(), borrowed.flags()),
        (shape, 3, ArrayFlags::SURFACE)
    );
    borrowed
        .level(1)
        .and_then(|level| level.copy_from_slice(&numbers(32)))?;
    let level = owner.level(1)?;
    // SAFETY: the array outlives the borrowed objects, and all accesses are on one stream.
    let part = unsafe { Array::<u32>::borrow_raw(&stream, level.as_raw()) }?;
    assert_eq!(part.to_vec()?, numbers(32));
    drop((borrowed, part));
    assert_eq!(level.to_vec()?, numbers(32));

    // SAFETY: the array outlives the borrowed objects, and all accesses are on one stream.
    let error = unsafe { MipmappedArray::<u8>::borrow_raw(&stream, owner.as_raw(), 3) };
    let error = error.expect_err("the elements are words").to_string();
    assert!(error.contains("elements of 1 × u32, not 1 × u8"), "{error}");
    for levels in [0, 6] {
        // SAFETY: as above; the call checks the number of levels.
        let error = unsafe { MipmappedArray::<u32>::borrow_raw(&stream, owner.as_raw(), levels) };
        let error = error.expect_err("there are 1 to 5").to_string();
        assert!(
            error.contains(&format!(
                "invalid number of levels ({levels} for a 2D array of 16 × 8"
            )),
            "{error}"
        );
    }
    Ok(())
}

/// Invalid shapes and regions are errors before any driver call.
#[driver_test]
fn invalid_shapes_and_regions_make_no_driver_call(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let array = Array::<u8>::new(&stream, ArrayShape::new_2d(4, 3), ArrayFlags::empty())?;
    test.assert_calls(Function::cuArray3DCreate_v2, 0, || {
        for shape in [
            ArrayShape::new_1d(0),
            ArrayShape::new_3d(2, 0, 2),
            ArrayShape::layered_1d(2, 0),
        ] {
            let error =
                Array::<u8>::new(&stream, shape, ArrayFlags::empty()).expect_err("no element");
            assert!(
                error
                    .to_string()
                    .contains(&format!("empty shape ({shape})")),
                "{error}"
            );
        }
    });
    let levels = |levels| {
        MipmappedArray::<u8>::new(
            &stream,
            ArrayShape::new_2d(4, 3),
            levels,
            ArrayFlags::empty(),
        )
        .expect_err("too many")
    };
    for error in [levels(0), levels(4)] {
        assert!(error.to_string().contains("allowed: 1 to 3"), "{error}");
    }
    test.assert_calls(Function::cuMemcpy3DAsync_v2, 0, || {
        let regions = [
            ([0, 0, 0], [5, 1, 1]),
            ([4, 0, 0], [1, 1, 1]),
            ([0, 0, 1], [1, 1, 1]),
            ([0, 0, 0], [1, 0, 1]),
        ];
        for (origin, extent) in regions.into_iter().chain([([usize::MAX, 0, 0], [2, 1, 1])]) {
            let error = array
                .copy_region_from_slice(ArrayRegion { origin, extent }, &[0; 5])
                .expect_err("outside");
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(
                error.to_string().contains(" of 2D array of 4 × 3)"),
                "{error}"
            );
        }
        let error = array.copy_from_slice(&[1; 11]).expect_err("too short");
        assert!(
            error
                .to_string()
                .contains("the region has 12 elements, the other operand has 11"),
            "{error}"
        );
    });
    Ok(())
}

/// An array that is neither sparse nor deferred has no requirements.
#[driver_test]
fn ordinary_array_has_no_memory_requirements(test: &TestDriver) -> TestResult {
    let array = Array::<u8>::new(
        &test.stream(),
        ArrayShape::new_2d(64, 64),
        ArrayFlags::empty(),
    )?;
    assert!(array.memory_requirements(&test.device()).is_err());
    assert!(array.sparse_properties().is_err());
    Ok(())
}

/// An array that the driver does not destroy is returned.
#[simulator_test]
fn array_is_returned_if_destruction_fails(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let array = Array::from_slice(
        &test.stream(),
        &[1_u8, 2, 3],
        ArrayShape::new_1d(3),
        ArrayFlags::empty(),
    )?;
    simulator
        .inject(Fault::on(Function::cuArrayDestroy).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (array, error) = array
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuArrayDestroy));
    assert_eq!(array.to_vec()?, [1, 2, 3]);
    simulator.inject(
        Fault::on(Function::cuMemcpy3DAsync_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let error = Array::from_slice(
        &test.stream(),
        &[1_u8],
        ArrayShape::new_1d(1),
        ArrayFlags::empty(),
    );
    assert!(
        error
            .expect_err("the copy fails")
            .to_string()
            .contains("1 × u8")
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{Array, ArrayFlags, ArrayRegion, ArrayShape, MipmappedArray};

    use crate::operations::{Fixture, LEN, Made, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Array::new", |fixture| made(array(fixture)?)),
        ("Array::copy_from_slice", |fixture| {
            keep(fixture, |array, _| array.copy_from_slice(&[1; LEN]))
        }),
        ("Array::to_vec", |fixture| {
            keep(fixture, |array, _| array.to_vec().map(|_| ()))
        }),
        ("Array::copy_from_device", |fixture| {
            keep(fixture, |array, fixture| {
                array.copy_from_device(ArrayRegion::whole(SHAPE), &fixture.buffer)
            })
        }),
        ("Array::copy_to_device", |fixture| {
            keep(fixture, |array, fixture| {
                array.copy_to_device(ArrayRegion::whole(SHAPE), &mut fixture.target)
            })
        }),
        ("Array::from_slice", |fixture| {
            made(Array::from_slice(
                &fixture.stream,
                &[1_u32; LEN],
                SHAPE,
                ArrayFlags::empty(),
            )?)
        }),
        ("Array::copy_to_slice", |fixture| {
            keep(fixture, |array, _| array.copy_to_slice(&mut [0; LEN]))
        }),
        ("Array::copy_region_from_slice", |fixture| {
            keep(fixture, |array, _| {
                array.copy_region_from_slice(ArrayRegion::whole(SHAPE), &[1; LEN])
            })
        }),
        ("Array::copy_region_to_slice", |fixture| {
            keep(fixture, |array, _| {
                array.copy_region_to_slice(ArrayRegion::whole(SHAPE), &mut [0; LEN])
            })
        }),
        ("Array::copy_from_array", |fixture| {
            let source = array(fixture)?;
            let target = array(fixture)?;
            target.copy_from_array([0; 3], &source, ArrayRegion::whole(SHAPE))?;
            made((source, target))
        }),
        ("Array::close", |fixture| {
            array(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("MipmappedArray::new", |fixture| made(levels(fixture)?)),
        ("MipmappedArray::level", |fixture| {
            made(levels(fixture)?.level(1)?)
        }),
        ("MipmappedArray::close", |fixture| {
            levels(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("Array::memory_requirements", |fixture| {
            made(array(fixture)?.memory_requirements(&fixture.device)?)
        }),
        ("Array::sparse_properties", |fixture| {
            made(array(fixture)?.sparse_properties()?)
        }),
        ("Array::map_tiles", |fixture| {
            // SAFETY: the driver rejects the call and maps nothing.
            made(unsafe { array(fixture)?.map_tiles(&fixture.stream, &[]) }?)
        }),
        ("MipmappedArray::memory_requirements", |fixture| {
            made(levels(fixture)?.memory_requirements(&fixture.device)?)
        }),
        ("MipmappedArray::sparse_properties", |fixture| {
            made(levels(fixture)?.sparse_properties()?)
        }),
        ("MipmappedArray::map_tiles", |fixture| {
            // SAFETY: the driver rejects the call and maps nothing.
            made(unsafe { levels(fixture)?.map_tiles(&fixture.stream, &[]) }?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    pub(crate) fn array(fixture: &Fixture) -> Result<Array<u32>> {
        Array::new(&fixture.stream, SHAPE, ArrayFlags::SURFACE)
    }

    pub(crate) fn levels(fixture: &Fixture) -> Result<MipmappedArray<u32>> {
        MipmappedArray::new(
            &fixture.stream,
            ArrayShape::new_2d(4, 4),
            2,
            ArrayFlags::empty(),
        )
    }

    /// Performs an operation on an array, which is returned to be dropped later.
    fn keep(
        fixture: &mut Fixture,
        operation: impl FnOnce(&Array<u32>, &mut Fixture) -> Result<()>,
    ) -> Result<Made> {
        let array = array(fixture)?;
        operation(&array, fixture)?;
        made(array)
    }

    const SHAPE: ArrayShape = ArrayShape::new_2d(4, LEN / 4);
}
