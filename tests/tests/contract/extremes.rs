//! Arguments at the ends of their ranges: safe functions return an error or succeed, and never
//! panic.

use std::fmt::Debug;
use std::num::NonZero;

use curium_driver::{
    CudaVersion, Dimensions, Kernel, LaunchConfig, Library, Module, Result, Stream,
};
use curium_memory::virtual_memory::ReserveOptions;
use curium_memory::{
    AddressRange, Array, ArrayFlags, ArrayShape, DeviceBuffer, DeviceVec, Extent, HostPitchedSlice,
    MappedBuffer, MemoryPool, MipmappedArray, PhysicalMemory, PinnedBuffer, PinnedFlags, Pitch,
    PitchedBuffer, PoolOptions, UnifiedBuffer,
};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

/// Lengths around the limits of addresses, of sizes in bytes, and of 32 bits.
const LENGTHS: [usize; 12] = [
    0,
    1,
    3,
    u32::MAX as usize,
    1 << 32,
    1 << 48,
    1 << 60,
    isize::MAX as usize / 8,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    usize::MAX - 1,
    usize::MAX,
];

/// Lengths in 8-byte elements that exceed the memory of every device.
fn too_long() -> impl Iterator<Item = usize> {
    LENGTHS
        .into_iter()
        .filter(|len| *len == 0 || *len >= 1 << 48)
}

#[track_caller]
fn assert_refused<T: Debug>(result: Result<T>) {
    let error = result
        .map(|value| panic!("{value:?} is impossible"))
        .unwrap_err();
    assert!(
        !error.is_sticky() && !error.to_string().is_empty(),
        "{error}"
    );
}

#[driver_test]
fn impossible_buffer_lengths_are_errors(test: &TestDriver) {
    let stream = &test.stream();
    let context = &test.context();
    for len in too_long() {
        assert_refused(DeviceBuffer::<u64>::uninit(stream, len));
        assert_refused(DeviceBuffer::<u64>::zeroed(stream, len));
        assert_refused(DeviceBuffer::filled(stream, len, 7_u64));
        assert_refused(UnifiedBuffer::<u64>::uninit(stream, len));
        assert_refused(UnifiedBuffer::<u64>::zeroed(stream, len));
        assert_refused(MappedBuffer::<u64>::zeroed(stream, len));
        assert_refused(PinnedBuffer::<u64>::zeroed(
            context,
            len,
            PinnedFlags::empty(),
        ));
        assert_refused(PitchedBuffer::<u64>::zeroed(stream, len, 1));
        assert_refused(PitchedBuffer::<u64>::zeroed(stream, 1, len));
        assert_refused(PitchedBuffer::<u64>::uninit(stream, len, len));
    }
    assert_refused(DeviceBuffer::<u64>::from_slice(stream, &[]));
    assert_refused(UnifiedBuffer::<u64>::from_slice(stream, &[]));
    assert_refused(MappedBuffer::<u64>::from_slice(stream, &[]));
    assert_refused(PinnedBuffer::<u64>::from_slice(
        context,
        &[],
        PinnedFlags::empty(),
    ));
    assert_refused(DeviceBuffer::<[u64; 0]>::uninit(stream, usize::MAX));
    assert_refused(DeviceVec::<[u64; 0]>::new(stream));
}

#[driver_test]
fn impossible_vector_lengths_are_errors(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    for len in too_long() {
        assert_refused(DeviceVec::<u64>::with_max_len(stream, len));
    }
    let mut vector = DeviceVec::<u64>::from_slice(stream, &[1, 2, 3])?;
    for len in LENGTHS.into_iter().filter(|len| *len >= 1 << 48) {
        assert_refused(vector.reserve(len));
        assert_refused(vector.resize(len, 7));
        vector.truncate(len);
        vector.shrink_to(len)?;
        assert_refused(vector.slice(len..));
        assert_refused(vector.slice(..=len));
    }
    assert_eq!(vector.to_vec()?, [1, 2, 3]);
    Ok(())
}

#[driver_test]
fn out_of_bounds_views_are_errors(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    let buffer = DeviceBuffer::<u64>::zeroed(stream, 8)?;
    let rows = PitchedBuffer::<u64>::zeroed(stream, 2, 2)?;
    let unified = UnifiedBuffer::<u64>::zeroed(stream, 8)?;
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "the range ends before it begins"
    )]
    let backwards = 5..3;
    assert_refused(buffer.slice(backwards));
    for end in LENGTHS.into_iter().filter(|len| *len > 8) {
        assert_refused(buffer.slice(end..));
        assert_refused(buffer.slice(..end));
        assert_refused(buffer.slice(1..=end));
        assert_refused(buffer.slice((std::ops::Bound::Excluded(end), std::ops::Bound::Unbounded)));
        assert_refused(buffer.split_at(end).map(drop));
        assert_refused(unified.slice(..=end));
        assert_refused(rows.row(end));
        assert_eq!(buffer.chunks(end)?.count(), 1);
    }
    assert_refused(buffer.chunks(0).map(drop));
    assert_refused(buffer.cast::<[u64; 0]>());
    let all = buffer.slice(8..)?;
    assert!(all.is_empty() && all.to_vec()?.is_empty());
    Ok(())
}

#[driver_test]
fn grid_extents_do_not_overflow(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    let mut buffer = DeviceBuffer::<u64>::zeroed(stream, 64)?;
    let elements = [0_u64; 64];
    for [width, height, depth] in triples() {
        let extent = Extent::new_3d(width, height, depth);
        for pitch in pitches(extent) {
            drop(HostPitchedSlice::new(&elements, extent, pitch));
            drop(buffer.pitched_mut(extent, pitch));
            let Ok(grid) = buffer.pitched(extent, pitch) else {
                continue;
            };
            assert!(!format!("{grid:?}").is_empty());
            for origin in triples() {
                for part in [extent, Extent::new_3d(0, 0, 0), Extent::new_3d(1, 1, 1)] {
                    drop(grid.region(origin, part));
                }
            }
        }
    }
    Ok(())
}

fn triples() -> impl Iterator<Item = [usize; 3]> {
    const ENDS: [usize; 6] = [0, 1, 4, 1 << 32, isize::MAX as usize, usize::MAX];
    ENDS.into_iter().flat_map(|x| {
        ENDS.into_iter()
            .flat_map(move |y| ENDS.into_iter().map(move |z| [x, y, z]))
    })
}

fn pitches(extent: Extent) -> impl Iterator<Item = Pitch> {
    let rows = [0, 1, 8, usize::MAX / 8, usize::MAX].map(Pitch::from_row_len::<u64>);
    let layered = rows.map(|pitch| pitch.with_layer_rows(usize::MAX));
    rows.into_iter()
        .chain(layered)
        .chain([Pitch::tight::<u64>(extent)])
}

#[driver_test]
fn impossible_array_shapes_are_errors(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    for len in too_long() {
        let shapes = [
            ArrayShape::new_1d(len),
            ArrayShape::new_2d(len, len),
            ArrayShape::new_3d(len, len, len),
            ArrayShape::layered_1d(len, len),
            ArrayShape::layered_2d(len, len, len),
            ArrayShape::cubemap(len),
            ArrayShape::layered_cubemap(len, len),
        ];
        for shape in shapes {
            assert!(!format!("{shape} {shape:?}").is_empty());
            assert_refused(Array::<u32>::new(stream, shape, ArrayFlags::empty()));
            assert_refused(Array::<u32>::from_slice(
                stream,
                &[],
                shape,
                ArrayFlags::empty(),
            ));
            assert_refused(MipmappedArray::<u32>::new(
                stream,
                shape,
                u32::MAX,
                ArrayFlags::empty(),
            ));
        }
    }
    assert_refused(Array::<u32>::new(
        stream,
        ArrayShape::layered_cubemap(4, usize::MAX),
        ArrayFlags::empty(),
    ));
    let mipmapped =
        MipmappedArray::<u32>::new(stream, ArrayShape::new_2d(4, 4), 2, ArrayFlags::empty());
    assert_refused(mipmapped?.level(u32::MAX));
    Ok(())
}

/// Addresses physical memory and pools of impossible sizes are errors.
#[simulator_test]
fn impossible_virtual_memory_sizes_are_errors(test: &TestDriver, _: &Simulator) -> TestResult {
    let driver = test.driver();
    let device = &test.device();
    for bytes in LENGTHS
        .into_iter()
        .filter(|bytes| *bytes < 1 << 20 || *bytes >= 1 << 60)
    {
        assert_refused(AddressRange::reserve(driver, bytes));
        assert_refused(PhysicalMemory::new(device, bytes));
        let options = ReserveOptions::new()
            .with_alignment(bytes)
            .with_address(u64::MAX);
        drop(AddressRange::reserve_with(driver, 1 << 21, options));
    }
    for bytes in LENGTHS {
        let options = PoolOptions::new(device)
            .with_max_bytes(bytes)
            .with_release_threshold(u64::MAX);
        let Ok(pool) = MemoryPool::with_options(driver, &options) else {
            continue;
        };
        pool.trim_to(usize::MAX)?;
    }
    let range = AddressRange::reserve(driver, 1 << 21)?;
    let memory = PhysicalMemory::new(device, 1 << 21)?;
    for offset in [1, 1 << 21, usize::MAX - (1 << 21) + 1, usize::MAX] {
        assert_refused(range.map(offset, &memory));
    }
    Ok(())
}

#[simulator_test]
fn managed_memory_ranges_are_queried(test: &TestDriver, _: &Simulator) -> TestResult {
    let buffer = UnifiedBuffer::<u64>::zeroed(&test.stream(), 8)?;
    for step in [1, 3, usize::MAX] {
        drop(buffer.locations(.., NonZero::new(step).ok_or("zero step")?));
    }
    assert_refused(buffer.locations(8.., NonZero::<usize>::MIN));
    assert_refused(buffer.range_attributes(8..));
    assert_refused(buffer.range_attributes(..usize::MAX));
    Ok(())
}

type Fill = (&'static mut [u32], u32, u32);

#[driver_test]
fn impossible_launch_dimensions_are_errors(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    let library = Library::from_ptx(stream, kernels::FILL)?;
    let fill: Kernel<Fill> = library.kernel("fill")?;
    let mut buffer = DeviceBuffer::<u32>::zeroed(stream, 1)?;
    let all = Dimensions {
        x: u32::MAX,
        y: u32::MAX,
        z: u32::MAX,
    };
    assert_eq!(all.total(), u128::from(u32::MAX).pow(3));
    for (grid, block) in [(0, 1), (1, 0), (u32::MAX, u32::MAX), (1, u32::MAX)] {
        assert_refused(launch(
            &fill,
            stream,
            LaunchConfig::new(grid, block),
            &mut buffer,
        ));
    }
    assert_refused(launch(
        &fill,
        stream,
        LaunchConfig::new(all, all),
        &mut buffer,
    ));
    assert_refused(launch(
        &fill,
        stream,
        LaunchConfig::new(1, 1).with_shared_bytes(u32::MAX),
        &mut buffer,
    ));
    // The number of blocks must not wrap to one that a device supports.
    for elements in [(1 << 31) * 256, (1 << 32) * 256, usize::MAX] {
        let config = LaunchConfig::for_elements(elements);
        assert_refused(launch(&fill, stream, config, &mut buffer));
    }
    Ok(())
}

fn launch(
    fill: &Kernel<Fill>,
    stream: &Stream,
    config: LaunchConfig,
    buffer: &mut DeviceBuffer<u32>,
) -> Result<()> {
    // SAFETY: the kernel writes no elements.
    unsafe { fill.launch(stream, config, (buffer, 7, 0)) }
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 3)))]
fn every_ptx_version_loads_or_fails(test: &TestDriver, _: &Simulator) {
    let context = &test.context();
    for version in [
        "8.4294967295",
        "7.4294967295",
        "9.429496729",
        "4294967295.0",
    ] {
        let ptx = format!(".version {version}\n.target sm_75\n.address_size 64\n");
        drop(Module::from_ptx(context, &ptx));
    }
}

#[driver_test]
fn devices_and_links_that_do_not_exist_are_errors(test: &TestDriver) -> TestResult {
    for ordinal in [u32::MAX as usize, 1 << 32, usize::MAX] {
        assert_refused(test.driver().device(ordinal));
    }
    let topology = test.driver().topology()?;
    for number in LENGTHS {
        assert!(topology.link(number, number).is_none());
        assert!(topology.link(0, number).is_none() || number < topology.devices().len());
    }
    Ok(())
}

/// Futures that are polled after completion are errors.
#[driver_test]
fn polling_after_completion_is_an_error(test: &TestDriver) -> TestResult {
    let stream = &test.stream();
    let mut finished = stream.completion();
    pollster::block_on(&mut finished)?;
    assert_refused(pollster::block_on(&mut finished));
    let mut host = stream.launch_host_function(|| 7)?;
    assert_eq!(pollster::block_on(&mut host)?, 7);
    assert_refused(pollster::block_on(&mut host));
    let source = PinnedBuffer::from_slice(&test.context(), &[7_u32; 4], PinnedFlags::empty())?;
    let mut target = DeviceBuffer::<u32>::zeroed(stream, 4)?;
    let mut pending = curium_memory::copy::upload(stream, source, &mut target)?;
    drop(pollster::block_on(&mut pending)?);
    assert_refused(pollster::block_on(&mut pending));
    let (_, error) = pending
        .wait()
        .expect_err("the memory was freed")
        .into_parts();
    assert!(error.to_string().contains("already returned"), "{error}");
    Ok(())
}
