//! Sparse arrays, with memory mapped for some of their tiles.

use std::sync::Arc;

use curium_driver::{DeviceAttribute, LaunchConfig, Library};
use curium_memory::virtual_memory::{Granularity, PhysicalOptions, PhysicalUsage};
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, MipmappedArray, PhysicalMemory,
    Texture, TextureOptions, TileMapping, TileMemory,
};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

/// Runs a test if the device has sparse arrays.
fn with_sparse_arrays(test: impl FnOnce(&TestDriver) -> TestResult) -> TestResult {
    on_driver(|driver| {
        let attribute = DeviceAttribute::SPARSE_CUDA_ARRAY_SUPPORTED;
        if driver.device().attribute(attribute)? {
            test(driver)?;
        }
        Ok(())
    })
}

/// Allocates physical memory for tiles.
fn tile_memory(test: &TestDriver) -> TestResult<PhysicalMemory> {
    let options = PhysicalOptions::new(&test.device()).with_usage(PhysicalUsage::TILE_POOL);
    let bytes = options.granularity(test.driver(), Granularity::Minimum)?;
    Ok(PhysicalMemory::with_options(
        test.driver(),
        bytes.max(2 << 20),
        &options,
    )?)
}

/// A sparse array is resident where its tiles are mapped.
#[driver_test(with_sparse_arrays)]
fn sparse_array_is_resident_in_mapped_tiles(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let memory = tile_memory(test)?;
    let array = Array::<f32>::new(&stream, ArrayShape::new_2d(256, 256), ArrayFlags::SPARSE)?;
    let properties = array.sparse_properties()?;
    let [width, height, depth] = properties.tile;
    assert_eq!(width * height * depth * 4, 64 << 10, "a tile has 64 KiB");
    let tile = |memory| TileMapping {
        level: 0,
        layer: 0,
        origin: [width, 0, 0],
        extent: [width, height, 1],
        memory,
    };
    let mapping = tile(Some(TileMemory {
        memory: &memory,
        offset: 64 << 10,
    }));
    // SAFETY: the memory lives until it is unmapped below, and no work uses the tile in between.
    unsafe { array.map_tiles(&stream, &[mapping]) }?;
    let source: Vec<f32> = (0..width * height).map(|index| index as f32).collect();
    let region = ArrayRegion {
        origin: [width as usize, 0, 0],
        extent: [width as usize, height as usize, 1],
    };
    array.copy_region_from_slice(region, &source)?;
    let mut target = vec![0.0; source.len()];
    array.copy_region_to_slice(region, &mut target)?;
    assert!(source == target);
    // SAFETY: the memory lives until it is unmapped below, and no work uses the tile in between.
    unsafe { array.map_tiles(&stream, &[tile(None)]) }?;
    stream.synchronize()?;
    // SAFETY: the driver rejects the call and maps nothing.
    let error = unsafe { array.map_tiles(&stream, &[]) }.expect_err("no tile");
    assert!(error.to_string().contains("0 tiles"), "{error}");
    let shifted = TileMapping {
        origin: [1, 0, 0],
        ..tile(None)
    };
    // SAFETY: the driver rejects the call and maps nothing.
    unsafe { array.map_tiles(&stream, &[shifted]) }.expect_err("no tile begins there");
    array.close()?;
    Ok(())
}

/// Each thread samples two and a half elements into a tile of its own, and stores whether the tile
/// is resident.
const RESIDENT: &str = "
.version 7.1
.target sm_60
.address_size 64
.visible .entry resident(.param .u64 texture, .param .u32 width, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [texture];
    ld.param.u32 %r1, [width];
    ld.param.u64 %d2, [out];
    mov.u32 %r2, %tid.x;
    mul.lo.u32 %r3, %r2, %r1;
    cvt.rn.f32.u32 %f1, %r3;
    add.f32 %f1, %f1, 0f40200000;
    mov.f32 %f2, 0f40200000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}|%p, [%d1, {%f1, %f2}];
    cvt.rzi.u32.f32 %r4, %f3;
    selp.u32 %r5, 10, 0, %p;
    add.u32 %r4, %r4, %r5;
    mad.wide.u32 %d2, %r2, 4, %d2;
    st.global.u32 [%d2], %r4;
    ret;
}
";

/// A tile without memory is zero for kernels and not resident.
#[driver_test(with_sparse_arrays)]
fn unmapped_tile_reads_zero_and_is_not_resident(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let memory = tile_memory(test)?;
    let array = Array::<f32>::new(&stream, ArrayShape::new_2d(256, 256), ArrayFlags::SPARSE);
    let array = Arc::new(array?);
    let [width, height, _] = array.sparse_properties()?.tile;
    let tile = |memory| TileMapping {
        level: 0,
        layer: 0,
        origin: [width, 0, 0],
        extent: [width, height, 1],
        memory,
    };
    let mapping = tile(Some(TileMemory {
        memory: &memory,
        offset: 0,
    }));
    // SAFETY: the memory lives until it is unmapped below, and no work uses the tile in between.
    unsafe { array.map_tiles(&stream, &[mapping]) }?;
    let region = ArrayRegion {
        origin: [width as usize, 0, 0],
        extent: [width as usize, height as usize, 1],
    };
    let ones = vec![1.0; (width * height) as usize];
    array.copy_region_from_slice(region, &ones)?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let library = Library::from_ptx(&stream, RESIDENT)?;
    let kernel = library.kernel::<(u64, u32, &mut [u32])>("resident")?;
    let mut actual = DeviceBuffer::<u32>::zeroed(&stream, 2)?;
    let arguments = (texture.as_raw(), width, &mut actual);
    // SAFETY: the texture lives until the result is read, and each thread writes its own element.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 2), arguments) }?;
    assert_eq!(actual.to_vec()?, [0, 11]);
    // SAFETY: the texture lives until the result is read, and each thread writes its own element.
    unsafe { array.map_tiles(&stream, &[tile(None)]) }?;
    let arguments = (texture.as_raw(), width, &mut actual);
    // SAFETY: the texture lives until the result is read, and each thread writes its own element.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 2), arguments) }?;
    assert_eq!(actual.to_vec()?, [0, 0]);
    Ok(())
}

/// A level of a sparse mipmapped array is mapped by its number.
#[driver_test(with_sparse_arrays)]
fn sparse_mipmap_level_is_mapped_by_number(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let memory = tile_memory(test)?;
    let array =
        MipmappedArray::<u32>::new(&stream, ArrayShape::new_2d(512, 512), 4, ArrayFlags::SPARSE)?;
    let properties = array.sparse_properties()?;
    assert!(properties.tail_first_level > 1, "{properties:?}");
    let memory = Some(TileMemory {
        memory: &memory,
        offset: 0,
    });
    let mapping = TileMapping {
        level: 1,
        layer: 0,
        origin: [0; 3],
        extent: [256, 256, 1],
        memory,
    };
    // SAFETY: the memory lives until it is unmapped below, and no work uses the tiles in between.
    unsafe { array.map_tiles(&stream, &[mapping]) }?;
    let level = array.level(1)?;
    level.copy_from_slice(&vec![7; 256 * 256])?;
    assert!(level.to_vec()?.iter().all(|value| *value == 7));
    level
        .sparse_properties()
        .expect_err("those are for the whole array");
    // SAFETY: the memory lives until it is unmapped below, and no work uses the tiles in between.
    unsafe {
        array.map_tiles(
            &stream,
            &[TileMapping {
                memory: None,
                ..mapping
            }],
        )
    }?;
    stream.synchronize()?;
    Ok(())
}
