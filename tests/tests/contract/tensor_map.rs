//! [`TensorMap`]: supported layouts, and the errors for invalid ones.

use curium_driver::{
    Argument, ComputeCapability, Context, DevicePointer, Error, Function, LaunchConfig, Library,
    Parameter, Result,
};
use curium_memory::{
    DeviceBuffer, Im2col, Im2colWide, Im2colWideMode, TensorDataType as Type, TensorFill,
    TensorInterleave, TensorL2Promotion, TensorLayout, TensorMap, TensorRead, TensorSwizzle,
    TensorView, TensorViewMut, TensorWrite,
};
use curium_tests::{Gate, TestDriver, TestResult, begin, driver_test, on_driver, stream_work};

/// Runs a test if the device has the Tensor Memory Accelerator (TMA).
fn on_hopper(test: impl FnOnce(&TestDriver) -> TestResult) -> TestResult {
    on_driver(|driver| {
        let capability = driver.device().compute_capability()?;
        if capability >= (ComputeCapability { major: 9, minor: 0 }) {
            test(driver)?;
        }
        Ok(())
    })
}

fn pointer_to(raw: u64) -> DevicePointer<u8> {
    DevicePointer::from_raw(raw)
}

#[driver_test(on_hopper)]
fn every_tensor_rank_and_kind_is_described(test: &TestDriver) -> TestResult {
    let context = test.context();
    let memory = DeviceBuffer::<f32>::zeroed(&test.stream(), 1 << 16)?;
    let pointer = memory.as_pointer();
    let extents = [32, 16, 8, 4, 2];
    for rank in 1..=5 {
        let layout = TensorLayout::new(Type::Float32, pointer, &extents[..rank])
            .with_swizzle(TensorSwizzle::Bytes128)
            .with_l2_promotion(TensorL2Promotion::Bytes256)
            .with_fill(TensorFill::Nan);
        let map = TensorMap::tiled(&context, &layout, &[32, 4, 2, 1, 1][..rank])?;
        assert_ne!(map.to_words(), [0; 16]);
    }
    for rank in 3..=5 {
        let layout = TensorLayout::new(Type::Float16, pointer, &extents[..rank])
            .with_element_strides(&[1, 2, 1, 1, 1][..rank]);
        let pixels = Im2col {
            lower: &[-1, -1, -1][..rank - 2],
            upper: &[-1, 1, 1][..rank - 2],
            channels_per_pixel: 16,
            pixels_per_column: 64,
        };
        TensorMap::im2col(&context, &layout, &pixels)?;
    }
    Ok(())
}

#[driver_test(on_hopper)]
fn replaced_address_changes_nothing_else(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let first = DeviceBuffer::<u8>::zeroed(&stream, 1024)?;
    let second = DeviceBuffer::<u8>::zeroed(&stream, 1024)?;
    let describe = |pointer| -> TestResult<_> {
        let layout = TensorLayout::new(Type::Uint8, pointer, &[64, 16]);
        Ok(TensorMap::tiled(&context, &layout, &[64, 4])?)
    };
    let mut map = describe(first.as_pointer())?;
    let expected = describe(second.as_pointer())?;
    assert_ne!(map.to_words(), expected.to_words());
    map.replace_address(&context, second.as_pointer())?;
    assert_eq!(map.to_words(), expected.to_words());
    let error = map
        .replace_address(&context, pointer_to(8))
        .expect_err("the address is not aligned");
    assert!(
        error
            .to_string()
            .contains("misaligned address (0x8, alignment 16)"),
        "{error}"
    );
    Ok(())
}

/// Asserts that the layout is invalid, with this error.
fn refused(result: Result<TensorMap>, expected: &str) {
    let error = result.expect_err(expected);
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert!(
        error.to_string().contains(expected),
        "{error}\nlacks: {expected}"
    );
}

fn layout(extents: &[u64]) -> TensorLayout {
    TensorLayout::new(Type::Float32, pointer_to(0x1000), extents)
}

/// A tensor that the accelerator cannot take is refused before any driver call.
#[driver_test]
fn unsupported_tensor_makes_no_driver_call(test: &TestDriver) {
    let context = test.context();
    let tiled =
        |layout: &TensorLayout, elements: &[u32]| TensorMap::tiled(&context, layout, elements);
    test.assert_calls(Function::cuTensorMapEncodeTiled, 0, || {
        refused(
            tiled(&layout(&[]), &[]),
            "unsupported rank (0, allowed: 1 to 5)",
        );
        refused(
            tiled(&layout(&[4; 6]), &[4; 6]),
            "unsupported rank (6, allowed: 1 to 5)",
        );
        let interleaved = layout(&[8, 8]).with_interleave(TensorInterleave::Bytes16);
        refused(
            tiled(&interleaved, &[8, 8]),
            "unsupported rank (2, allowed: 3 to 5)",
        );
        refused(
            tiled(&TensorLayout::new(Type::Uint8, pointer_to(8), &[64]), &[64]),
            "misaligned address (0x8, alignment 16)",
        );
        let packed = TensorLayout::new(Type::Packed4Align16, pointer_to(16), &[128]);
        refused(
            tiled(&packed, &[128]),
            "misaligned address (0x10, alignment 32)",
        );
        let packed = TensorLayout::new(Type::Packed6Align16, pointer_to(0), &[100]);
        refused(
            tiled(&packed, &[100]),
            "100 elements of Packed6Align16, not a multiple of 128",
        );
        refused(
            tiled(&layout(&[8, 0]), &[8, 1]),
            "invalid extent (0 elements, allowed: 1 to 4294967296)",
        );
        refused(
            tiled(&layout(&[3, 4]), &[4, 4]),
            "invalid stride (12 bytes, allowed: multiples of 16",
        );
        refused(
            tiled(&layout(&[4, 4]).with_strides(&[1 << 40]), &[4, 4]),
            "invalid stride (1099511627776 bytes",
        );
        refused(
            tiled(&layout(&[4, 4]).with_strides(&[16, 64]), &[4, 4]),
            "wrong number of strides (2 for rank 2, expected 1)",
        );
        refused(
            tiled(&layout(&[4, 4]).with_element_strides(&[1, 9]), &[4, 4]),
            "invalid element stride (9, allowed: 1 to 8)",
        );
        refused(
            tiled(&layout(&[4, 4]).with_element_strides(&[1]), &[4, 4]),
            "wrong number of element strides (1 for rank 2, expected 2)",
        );
        refused(
            tiled(&layout(&[4, 4]), &[4]),
            "wrong number of box dimensions (1 for rank 2)",
        );
        refused(
            tiled(&layout(&[512, 4]), &[257, 4]),
            "invalid box extent (257 elements, allowed: 1 to 256)",
        );
        refused(
            tiled(&layout(&[8, 4]), &[3, 4]),
            "12 bytes in the innermost dimension is not a multiple of 16",
        );
        let swizzled = layout(&[64, 4]).with_swizzle(TensorSwizzle::Bytes64);
        refused(
            tiled(&swizzled, &[32, 4]),
            "128 bytes in the innermost dimension, at most 64",
        );
        let interleaved = layout(&[8, 8, 8]).with_interleave(TensorInterleave::Bytes32);
        refused(
            tiled(&interleaved, &[8, 8, 8]),
            "unsupported swizzle (None, an interleave of 32 bytes",
        );
        let filled =
            TensorLayout::new(Type::Int32, pointer_to(0), &[4, 4]).with_fill(TensorFill::Nan);
        refused(tiled(&filled, &[4, 4]), "unsupported fill (NaN for Int32");
    });
}

/// Pixels that the accelerator cannot take are refused before any driver call.
#[driver_test]
fn unsupported_pixels_make_no_driver_call(test: &TestDriver) {
    let context = test.context();
    let images = layout(&[16, 32, 32, 4]);
    let valid = Im2col {
        lower: &[0, 0],
        upper: &[0, 0],
        channels_per_pixel: 16,
        pixels_per_column: 64,
    };
    let im2col = |pixels: Im2col<'_>| TensorMap::im2col(&context, &images, &pixels);
    test.assert_calls(Function::cuTensorMapEncodeIm2col, 0, || {
        refused(
            im2col(Im2col {
                lower: &[0],
                ..valid
            }),
            "wrong number of corner offsets (1 for rank 4, expected 2)",
        );
        refused(
            im2col(Im2col {
                upper: &[0, 128],
                ..valid
            }),
            "invalid corner offset (128 pixels, allowed for rank 4: -128 to 127)",
        );
        refused(
            im2col(Im2col {
                lower: &[32, 0],
                ..valid
            }),
            "empty bounding box (offsets 32 and 0",
        );
        refused(
            im2col(Im2col {
                channels_per_pixel: 257,
                ..valid
            }),
            "invalid number of channels (257 per pixel, allowed: 1 to 256)",
        );
        refused(
            im2col(Im2col {
                pixels_per_column: 1025,
                ..valid
            }),
            "invalid number of pixels (1025 per column, allowed: 1 to 1024)",
        );
        let flat = layout(&[16, 32]);
        refused(
            TensorMap::im2col(&context, &flat, &valid),
            "unsupported rank (2, allowed: 3 to 5)",
        );
        let wide = Im2colWide {
            lower: 0,
            upper: 0,
            channels_per_pixel: 16,
            pixels_per_column: 64,
            mode: Im2colWideMode::Column,
        };
        refused(
            TensorMap::im2col_wide(&context, &images, &wide),
            "unsupported swizzle (None, allowed: Bytes64",
        );
    });
}

#[driver_test(on_hopper)]
fn tensor_map_is_a_128_byte_argument(test: &TestDriver) -> TestResult {
    fn parameter_size<P: Parameter>() -> usize {
        size_of::<P::Raw>()
    }
    let context: Context = test.context();
    assert_eq!(parameter_size::<TensorMap>(), 128);
    assert_eq!(parameter_size::<TensorRead>(), 128);
    assert_eq!(parameter_size::<TensorWrite>(), 128);
    let layout = TensorLayout::new(Type::Uint8, pointer_to(0x1000), &[64, 16]);
    let map = TensorMap::tiled(&context, &layout, &[64, 4])?;
    assert!((&raw const map).addr().is_multiple_of(64));
    Ok(())
}

/// A view of a tensor that its memory does not hold is refused.
#[driver_test(on_hopper)]
fn tensor_view_is_bounds_checked(test: &TestDriver) -> TestResult {
    let mut memory = DeviceBuffer::<f32>::zeroed(&test.stream(), 1024)?;
    let pointer = memory.as_pointer();
    let dense = |extents: &[u64]| TensorLayout::new(Type::Float32, pointer, extents);
    TensorView::tiled(memory.as_slice(), &dense(&[32, 32]), &[32, 4])?;
    // The last row ends before the start of the next one.
    let rows = dense(&[16, 32]).with_strides(&[128]);
    TensorView::tiled(memory.slice(..1008)?, &rows, &[16, 4])?;
    let bytes = 4096;
    let start = pointer.as_raw();
    let end = start + bytes;
    for (layout, elements, expected) in [
        (
            dense(&[32, 33]),
            &[4, 1][..],
            format!(
                "tensor out of bounds (4224 bytes at {start:#x}, memory of 4096 bytes at {start:#x})"
            ),
        ),
        (
            dense(&[32, 32]).with_strides(&[256]),
            &[4, 1],
            "tensor out of bounds (8064 bytes".to_owned(),
        ),
        (
            TensorLayout::new(Type::Float32, pointer_to(end), &[4, 1]),
            &[4, 1],
            format!("(16 bytes at {end:#x}"),
        ),
        (
            TensorLayout::new(Type::Float32, pointer_to(start - 16), &[4, 1]),
            &[4, 1],
            format!("at {:#x}", start - 16),
        ),
        (
            dense(&[8, 8, 8]).with_interleave(TensorInterleave::Bytes16),
            &[4, 1, 1],
            "an interleaved layout".to_owned(),
        ),
    ] {
        let result =
            TensorView::tiled(memory.as_slice(), &layout, elements).map(|view| *view.as_map());
        refused(result, &expected);
        let result = TensorViewMut::tiled(memory.as_slice_mut(), &layout, elements)
            .map(|view| *view.as_map());
        refused(result, &expected);
    }
    Ok(())
}

#[driver_test(on_hopper)]
fn view_that_is_written_holds_the_whole_last_row(test: &TestDriver) -> TestResult {
    let mut memory = DeviceBuffer::<f32>::zeroed(&test.stream(), 1024)?;
    let layout = TensorLayout::new(Type::Float32, memory.as_pointer(), &[9]);
    TensorViewMut::tiled(memory.slice_mut(..12)?, &layout, &[16])?;
    let short = memory.slice_mut(..11)?;
    let result = TensorViewMut::tiled(short, &layout, &[16]).map(|view| *view.as_map());
    refused(result, "tensor out of bounds (48 bytes");
    TensorView::tiled(memory.slice(..9)?, &layout, &[16])?;
    Ok(())
}

/// Copies the tile at `{4, 1}` of a matrix of 32-bit words, 4 rows of 8, to `{8, 2}` of another
/// matrix.
const COPY_PART: &str = ".version 8.6
.target sm_90
.address_size 64
.visible .entry copy_part(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;
    .shared .align 128 .b8 part[128];
    .shared .align 8 .b64 object;
    mov.u32 %r1, part; mov.u32 %r2, object;
    mov.b64 %d1, from; cvta.param.u64 %d1, %d1;
    mov.b64 %d2, to; cvta.param.u64 %d2, %d2;
    mbarrier.init.shared.b64 [%r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %d3, [%r2], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {4, 1}], [%r2];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
    @!%p bra WAIT;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {8, 2}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}";

/// A part of a tensor is copied to another by tensor map arguments.
#[driver_test(on_hopper)]
fn tensor_tile_is_copied_by_tensor_maps(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let words: Vec<u32> = (0..160).collect();
    let from = DeviceBuffer::from_slice(&stream, &words)?;
    let mut to = DeviceBuffer::<u32>::zeroed(&stream, 160)?;
    let matrix = |pointer| TensorLayout::new(Type::Uint32, pointer, &[16, 10]);
    let read = TensorView::tiled(from.as_slice(), &matrix(from.as_pointer()), &[8, 4])?;
    let pointer = to.as_pointer();
    let mut write = TensorViewMut::tiled(to.as_slice_mut(), &matrix(pointer), &[8, 4])?;
    let library = Library::from_ptx(&stream, COPY_PART)?;
    let kernel = library.kernel::<(TensorRead, TensorWrite)>("copy_part")?;
    // SAFETY: the kernel reads through one map and writes through the other, both of which keep
    // their memory alive.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&read, &mut write)) }?;
    let actual = to.to_vec()?;
    for (index, word) in actual.iter().enumerate() {
        let row = index / 16;
        let column = index % 16;
        let is_in_tile = (2..6).contains(&row) && column >= 8;
        // The tile moves by one row and four columns.
        let expected = if is_in_tile {
            words[(row - 1) * 16 + column - 4]
        } else {
            0
        };
        assert_eq!(*word, expected, "row {row}, column {column}");
    }
    Ok(())
}

/// Kernels wait for accesses to the memory of a tensor.
#[driver_test(on_hopper)]
fn kernels_wait_for_tensor_memory_accesses(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 1024)?;
    let layout = TensorLayout::new(Type::Float32, memory.as_pointer(), &[32, 32]);
    let gate = Gate::on(&stream);
    memory.fill(1.0)?;
    let view = TensorView::tiled(memory.as_slice(), &layout, &[32, 4])?;
    // SAFETY: nothing is launched with the value.
    let map: TensorMap = unsafe { Argument::<TensorRead>::bind(&mut &view, &mut begin(&other)) }?;
    assert_eq!(map.to_words(), view.as_map().to_words());
    assert!(
        stream_work::is_held_up(&other),
        "the reader did not wait for the write"
    );
    gate.open();
    other.synchronize()?;
    let gate = Gate::on(&other);
    // SAFETY: the view was bound to this stream above and has not been used since.
    unsafe { Argument::<TensorRead>::launched(&mut &view, &mut begin(&other)) };
    let mut view = TensorViewMut::tiled(memory.as_slice_mut(), &layout, &[32, 4])?;
    // SAFETY: nothing is launched with the value.
    unsafe { Argument::<TensorWrite>::bind(&mut &mut view, &mut begin(&stream)) }?;
    assert!(
        stream_work::is_held_up(&stream),
        "the writer did not wait for the reader"
    );
    gate.open();
    stream.synchronize()?;
    let gate = Gate::on(&stream);
    // SAFETY: the view was bound to this stream above and has not been used since.
    unsafe { Argument::<TensorWrite>::launched(&mut &mut view, &mut begin(&stream)) };
    let view = TensorView::tiled(memory.as_slice(), &layout, &[32, 4])?;
    // SAFETY: nothing is launched with the value.
    unsafe { Argument::<TensorRead>::bind(&mut &view, &mut begin(&other)) }?;
    assert!(
        stream_work::is_held_up(&other),
        "the reader did not wait for the writer"
    );
    gate.open();
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{
        Im2col, Im2colWide, Im2colWideMode, TensorAllocationClass, TensorDataType, TensorLayout,
        TensorMap, TensorRead, TensorSwizzle, TensorView, TensorViewMut, TensorWrite,
    };

    use crate::operations::{Fixture, LEN, Operation, Operations, made, pass};

    const OPERATIONS: &[Operation] = &[
        ("TensorMap::tiled", |fixture| made(map_tensor(fixture)?)),
        ("TensorMap::im2col", |fixture| {
            let layout = images(fixture);
            made(TensorMap::im2col(&fixture.context, &layout, &pixels())?)
        }),
        ("TensorView::tiled", |fixture| {
            let layout = images(fixture);
            made(
                TensorView::tiled(fixture.buffer.as_slice(), &layout, &[4, 1, 1, 1])?
                    .as_map()
                    .to_words(),
            )
        }),
        ("TensorView::im2col", |fixture| {
            let layout = images(fixture);
            let pixels = pixels();
            made(
                TensorView::im2col(fixture.buffer.as_slice(), &layout, &pixels)?
                    .as_map()
                    .to_words(),
            )
        }),
        ("TensorViewMut::tiled", |fixture| {
            let layout = images(fixture);
            made(
                TensorViewMut::tiled(fixture.buffer.as_slice_mut(), &layout, &[4, 1, 1, 1])?
                    .as_map()
                    .to_words(),
            )
        }),
        ("TensorViewMut::im2col", |fixture| {
            let layout = images(fixture);
            let pixels = pixels();
            made(
                TensorViewMut::im2col(fixture.buffer.as_slice_mut(), &layout, &pixels)?
                    .as_map()
                    .to_words(),
            )
        }),
        ("TensorView::bind and TensorView::launched", |fixture| {
            let view =
                TensorView::tiled(fixture.buffer.as_slice(), &images(fixture), &[4, 1, 1, 1])?;
            pass::<TensorRead>(&fixture.other, &view)
        }),
        (
            "TensorViewMut::bind and TensorViewMut::launched",
            |fixture| {
                let layout = images(fixture);
                let mut view =
                    TensorViewMut::tiled(fixture.buffer.as_slice_mut(), &layout, &[4, 1, 1, 1])?;
                pass::<TensorWrite>(&fixture.other, &mut view)
            },
        ),
        ("TensorMap::replace_address", |fixture| {
            made(
                map_tensor(fixture)?
                    .replace_address(&fixture.context, fixture.buffer.as_pointer())?,
            )
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("TensorMap::im2col_wide", |fixture| {
            let layout = images(fixture).with_swizzle(TensorSwizzle::Bytes64);
            made(TensorMap::im2col_wide(
                &fixture.context,
                &layout,
                &wide_pixels(),
            )?)
        }),
        ("TensorView::im2col_wide", |fixture| {
            let layout = images(fixture).with_swizzle(TensorSwizzle::Bytes64);
            made(
                TensorView::im2col_wide(fixture.buffer.as_slice(), &layout, &wide_pixels())?
                    .as_map()
                    .to_words(),
            )
        }),
        ("TensorMap::set_allocation_class", |fixture| {
            let mut map = map_tensor(fixture)?;
            // SAFETY: only the tensor itself is encoded.
            made(unsafe {
                map.set_allocation_class(&fixture.context, TensorAllocationClass::Auto)
            }?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    fn map_tensor(fixture: &Fixture) -> Result<TensorMap> {
        let layout = TensorLayout::new(
            TensorDataType::Uint32,
            fixture.buffer.as_pointer(),
            &[4, LEN as u64 / 4],
        );
        TensorMap::tiled(&fixture.context, &layout, &[4, 1])
    }

    fn pixels() -> Im2col<'static> {
        Im2col {
            lower: &[0, 0],
            upper: &[0, 0],
            channels_per_pixel: 4,
            pixels_per_column: 2,
        }
    }

    /// Returns the layout of one image of two by two pixels.
    fn images(fixture: &Fixture) -> TensorLayout {
        TensorLayout::new(
            TensorDataType::Uint32,
            fixture.buffer.as_pointer(),
            &[4, 2, 2, 1],
        )
    }

    fn wide_pixels() -> Im2colWide {
        Im2colWide {
            lower: 0,
            upper: 0,
            channels_per_pixel: 4,
            pixels_per_column: 2,
            mode: Im2colWideMode::Column,
        }
    }
}
