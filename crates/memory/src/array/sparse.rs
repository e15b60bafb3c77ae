//! Arrays whose memory is mapped tile by tile.

use curium_driver::sys::{
    CUDA_ARRAY_SPARSE_PROPERTIES, CUarrayMapInfo, CUarraySparseSubresourceType, CUmemHandleType, CUmemOperationType,
    CUresourcetype,
};
use curium_driver::{Error, Result, Stream, call};

use super::{Array, MipmappedArray};
use crate::virtual_memory::PhysicalMemory;

/// How an array is divided into tiles.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SparseProperties {
    /// The elements of a tile in a row, its rows and its layers.
    pub tile: [u32; 3],
    /// The first level that shares its memory with all smaller ones.
    pub tail_first_level: u32,
    /// The bytes that those take together.
    pub tail_bytes: u64,
    /// Whether the levels of all layers share them.
    pub has_single_tail: bool,
}

/// Memory for a tile, or none, which takes away what was there.
#[derive(Clone, Copy, Debug)]
pub struct TileMemory<'a> {
    /// Made for [tiles](crate::virtual_memory::PhysicalUsage::TILE_POOL).
    pub memory: &'a PhysicalMemory,
    /// Where in it the tile begins, in bytes.
    pub offset: u64,
}

/// A box of tiles, and the memory for it.
#[derive(Clone, Copy, Debug)]
pub struct TileMapping<'a> {
    /// The level of a mipmapped array.
    pub level: u32,
    /// The layer of a layered array.
    pub layer: u32,
    /// The first element, its row and its layer: multiples of a tile.
    pub origin: [u32; 3],
    /// The elements, rows and layers: multiples of a tile, or up to the end of the level.
    pub extent: [u32; 3],
    /// The memory.
    pub memory: Option<TileMemory<'a>>,
}

impl<T> Array<T> {
    /// How the array is divided into tiles, if it was made with [`ArrayFlags::SPARSE`](super::ArrayFlags::SPARSE).
    ///
    /// CUDA: `cuArrayGetSparseProperties`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuArrayGetSparseProperties")]
    #[inline]
    pub fn sparse_properties(&self) -> Result<SparseProperties> {
        let mut raw = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        // SAFETY: `raw` is a valid place, and the array is live.
        unsafe { call!(self.driver(), cuArrayGetSparseProperties(&raw mut raw, self.as_raw())) }?;
        Ok(SparseProperties::from_raw(&raw))
    }

    /// Maps memory behind tiles, or takes it away, in the order of `stream`.
    ///
    /// CUDA: `cuMemMapArrayAsync`.
    ///
    /// # Safety
    ///
    /// - The memory stays alive for as long as it is mapped.
    /// - No work uses a tile while its memory is changed.
    ///
    /// # Errors
    ///
    /// An argument error without tiles; whatever the driver returns for tiles that there are not.
    #[doc(alias = "cuMemMapArrayAsync")]
    #[inline]
    pub unsafe fn map_tiles(&self, stream: &Stream, tiles: &[TileMapping<'_>]) -> Result<()> {
        let resource = |info: &mut CUarrayMapInfo| {
            info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
            info.resource.array = self.as_raw();
        };
        self.uses().write(stream, || {
            // SAFETY: the array is live, and the caller vouches for the memory.
            unsafe { map(stream, tiles, resource) }
        })
    }
}

impl<T> MipmappedArray<T> {
    /// How the array is divided into tiles, if it was made with [`ArrayFlags::SPARSE`](super::ArrayFlags::SPARSE).
    ///
    /// CUDA: `cuMipmappedArrayGetSparseProperties`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuMipmappedArrayGetSparseProperties")]
    #[inline]
    pub fn sparse_properties(&self) -> Result<SparseProperties> {
        let mut raw = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        // SAFETY: `raw` is a valid place, and the array is live.
        unsafe { call!(self.driver(), cuMipmappedArrayGetSparseProperties(&raw mut raw, self.as_raw())) }?;
        Ok(SparseProperties::from_raw(&raw))
    }

    /// Maps memory behind tiles, or takes it away, in the order of `stream`.
    ///
    /// CUDA: `cuMemMapArrayAsync`.
    ///
    /// # Safety
    ///
    /// - The memory stays alive for as long as it is mapped.
    /// - No work uses a tile while its memory is changed.
    ///
    /// # Errors
    ///
    /// An argument error without tiles; whatever the driver returns for tiles that there are not.
    #[inline]
    pub unsafe fn map_tiles(&self, stream: &Stream, tiles: &[TileMapping<'_>]) -> Result<()> {
        let resource = |info: &mut CUarrayMapInfo| {
            info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
            info.resource.mipmap = self.as_raw();
        };
        self.uses().write(stream, || {
            // SAFETY: the array is live, and the caller vouches for the memory.
            unsafe { map(stream, tiles, resource) }
        })
    }
}

impl SparseProperties {
    #[inline]
    fn from_raw(raw: &CUDA_ARRAY_SPARSE_PROPERTIES) -> Self {
        Self {
            tile: [raw.tileExtent.width, raw.tileExtent.height, raw.tileExtent.depth],
            tail_first_level: raw.miptailFirstLevel,
            tail_bytes: raw.miptailSize,
            has_single_tail: raw.flags & 1 != 0,
        }
    }
}

impl TileMapping<'_> {
    #[inline]
    fn to_raw(self) -> CUarrayMapInfo {
        let mut info = CUarrayMapInfo {
            subresourceType: CUarraySparseSubresourceType::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
            memOperationType: CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP,
            memHandleType: CUmemHandleType::CU_MEM_HANDLE_TYPE_GENERIC,
            deviceBitMask: 1,
            ..CUarrayMapInfo::default()
        };
        info.subresource.sparseLevel.level = self.level;
        info.subresource.sparseLevel.layer = self.layer;
        let [x, y, z] = self.origin;
        (info.subresource.sparseLevel.offsetX, info.subresource.sparseLevel.offsetY) = (x, y);
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

/// Maps tiles of the resource that `resource` writes.
///
/// # Safety
///
/// The resource is live, and so is the memory, for as long as it is mapped.
#[inline]
unsafe fn map(stream: &Stream, tiles: &[TileMapping<'_>], resource: impl Fn(&mut CUarrayMapInfo)) -> Result<()> {
    stream.expect_running("Array::map_tiles")?;
    let count = u32::try_from(tiles.len()).ok().filter(|count| *count != 0);
    let count = count.ok_or_else(|| Error::argument("Array::map_tiles", format!("{} tiles", tiles.len())))?;
    let mut infos: Vec<CUarrayMapInfo> = tiles.iter().map(|tile| tile.to_raw()).collect();
    // One device of the stream's group: its own.
    let mask = 1_u32.checked_shl(stream.device().as_raw().cast_unsigned()).unwrap_or(1);
    for info in &mut infos {
        info.deviceBitMask = mask;
        resource(info);
    }
    // SAFETY: `infos` has as many entries as are passed, and the caller vouches for what they name.
    unsafe { call!(stream.driver(), cuMemMapArrayAsync(infos.as_mut_ptr(), count, stream.as_raw())) }
}
