//! Sparse arrays.

use curium_driver::hazard::Operation;
use curium_driver::sys::{
    CUDA_ARRAY_SPARSE_PROPERTIES, CUarray, CUarrayMapInfo, CUarraySparseSubresourceType,
    CUmemHandleType, CUmemOperationType, CUmipmappedArray, CUresourcetype,
};
use curium_driver::{Error, Result, Stream, call};

use super::{Array, MipmappedArray};
use crate::virtual_memory::PhysicalMemory;

const MAP_TILES: &str = "Array::map_tiles";

/// The tile layout of a sparse array.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SparseProperties {
    /// The extent of a tile: elements per row, rows, and layers.
    pub tile: [u32; 3],
    /// The first level of the mip tail, whose levels share their memory.
    pub tail_first_level: u32,
    /// The size of the mip tail in bytes.
    pub tail_bytes: u64,
    /// `true` if all layers share one mip tail.
    pub has_single_tail: bool,
}

/// Memory for a tile. `None` in its place unmaps the tile.
#[derive(Clone, Copy, Debug)]
pub struct TileMemory<'a> {
    /// Memory allocated with
    /// [`PhysicalUsage::TILE_POOL`](crate::virtual_memory::PhysicalUsage::TILE_POOL).
    pub memory: &'a PhysicalMemory,
    /// The offset of the tile in `memory`, in bytes.
    pub offset: u64,
}

/// A region of tiles, and the memory to map.
#[derive(Clone, Copy, Debug)]
pub struct TileMapping<'a> {
    /// The level of a mipmapped array.
    pub level: u32,
    /// The layer of a layered array.
    pub layer: u32,
    /// The first element, row and layer: multiples of the tile extent.
    pub origin: [u32; 3],
    /// The extent in elements, rows and layers: multiples of the tile extent, or up to the end of
    /// the level.
    pub extent: [u32; 3],
    /// The memory to map; `None` to unmap.
    pub memory: Option<TileMemory<'a>>,
}

impl<T> Array<T> {
    /// Queries the tile layout of an array with the flag
    /// [`ArrayFlags::SPARSE`](super::ArrayFlags::SPARSE).
    ///
    /// CUDA: `cuArrayGetSparseProperties`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuArrayGetSparseProperties")]
    pub fn sparse_properties(&self) -> Result<SparseProperties> {
        let mut raw = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        // SAFETY: `raw` is a valid pointer, and the array is live.
        unsafe {
            call!(
                self.driver(),
                cuArrayGetSparseProperties(&raw mut raw, self.as_raw())
            )
        }?;
        Ok(SparseProperties::from_raw(&raw))
    }

    /// Maps or unmaps memory of tiles, in stream order.
    ///
    /// CUDA: `cuMemMapArrayAsync`.
    ///
    /// # Safety
    ///
    /// - The memory outlives its mapping.
    /// - No work accesses a tile while its mapping changes.
    ///
    /// # Errors
    ///
    /// An argument error if `tiles` is empty; any error returned by the driver.
    #[doc(alias = "cuMemMapArrayAsync")]
    pub unsafe fn map_tiles(&self, stream: &Stream, tiles: &[TileMapping<'_>]) -> Result<()> {
        self.uses()
            .write(stream.enqueue_uncaptured(MAP_TILES)?, |operation| {
                // SAFETY: the array is live, and the caller guarantees that the memory is.
                unsafe { map(operation, tiles, Resource::Array(self.as_raw())) }
            })
    }
}

impl<T> MipmappedArray<T> {
    /// Queries the tile layout of an array with the flag
    /// [`ArrayFlags::SPARSE`](super::ArrayFlags::SPARSE).
    ///
    /// CUDA: `cuMipmappedArrayGetSparseProperties`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuMipmappedArrayGetSparseProperties")]
    pub fn sparse_properties(&self) -> Result<SparseProperties> {
        let mut raw = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        // SAFETY: `raw` is a valid pointer, and the array is live.
        unsafe {
            call!(
                self.driver(),
                cuMipmappedArrayGetSparseProperties(&raw mut raw, self.as_raw())
            )
        }?;
        Ok(SparseProperties::from_raw(&raw))
    }

    /// Maps or unmaps memory of tiles, in stream order.
    ///
    /// CUDA: `cuMemMapArrayAsync`.
    ///
    /// # Safety
    ///
    /// - The memory outlives its mapping.
    /// - No work accesses a tile while its mapping changes.
    ///
    /// # Errors
    ///
    /// An argument error if `tiles` is empty; any error returned by the driver.
    pub unsafe fn map_tiles(&self, stream: &Stream, tiles: &[TileMapping<'_>]) -> Result<()> {
        self.uses()
            .write(stream.enqueue_uncaptured(MAP_TILES)?, |operation| {
                // SAFETY: the array is live, and the caller guarantees that the memory is.
                unsafe { map(operation, tiles, Resource::Mipmapped(self.as_raw())) }
            })
    }
}

impl SparseProperties {
    fn from_raw(raw: &CUDA_ARRAY_SPARSE_PROPERTIES) -> Self {
        Self {
            tile: [
                raw.tileExtent.width,
                raw.tileExtent.height,
                raw.tileExtent.depth,
            ],
            tail_first_level: raw.miptailFirstLevel,
            tail_bytes: raw.miptailSize,
            has_single_tail: raw.flags & 1 != 0,
        }
    }
}

impl TileMapping<'_> {
    fn to_raw(self) -> CUarrayMapInfo {
        let mut info = CUarrayMapInfo {
            subresourceType:
                CUarraySparseSubresourceType::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
            memOperationType: CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP,
            memHandleType: CUmemHandleType::CU_MEM_HANDLE_TYPE_GENERIC,
            deviceBitMask: 1,
            ..CUarrayMapInfo::default()
        };
        info.subresource.sparseLevel.level = self.level;
        info.subresource.sparseLevel.layer = self.layer;
        let [x, y, z] = self.origin;
        info.subresource.sparseLevel.offsetX = x;
        info.subresource.sparseLevel.offsetY = y;
        info.subresource.sparseLevel.offsetZ = z;
        let [width, height, depth] = self.extent;
        info.subresource.sparseLevel.extentWidth = width;
        info.subresource.sparseLevel.extentHeight = height;
        info.subresource.sparseLevel.extentDepth = depth;
        if let Some(TileMemory { memory, offset }) = self.memory {
            info.memOperationType = CUmemOperationType::CU_MEM_OPERATION_TYPE_MAP;
            info.memHandle.memHandle = memory.as_raw();
            info.offset = offset;
        }
        info
    }
}

/// A sparse array.
#[derive(Clone, Copy)]
enum Resource {
    Array(CUarray),
    Mipmapped(CUmipmappedArray),
}

/// Maps tiles of a sparse array.
///
/// # Safety
///
/// The array is live, and the memory outlives its mapping.
unsafe fn map(
    operation: &Operation<'_>,
    tiles: &[TileMapping<'_>],
    resource: Resource,
) -> Result<()> {
    let count = u32::try_from(tiles.len()).ok().filter(|count| *count != 0);
    let count =
        count.ok_or_else(|| Error::argument(MAP_TILES, format!("{} tiles", tiles.len())))?;
    let mut infos: Vec<CUarrayMapInfo> = tiles.iter().map(|tile| tile.to_raw()).collect();
    // The mask of the stream's own device.
    let mask = 1_u32
        .checked_shl(operation.stream().device().as_raw().cast_unsigned())
        .unwrap_or(1);
    for info in &mut infos {
        info.deviceBitMask = mask;
        match resource {
            Resource::Array(array) => {
                info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
                info.resource.array = array;
            }
            Resource::Mipmapped(mipmap) => {
                info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                info.resource.mipmap = mipmap;
            }
        }
    }
    // SAFETY: `infos` has as many entries as are passed, and the caller guarantees their contents.
    unsafe {
        call!(
            operation.driver(),
            cuMemMapArrayAsync(infos.as_mut_ptr(), count, operation.raw_stream())
        )
    }
}
