//! Sparse arrays: their tiles, and the memory mapped to them. Here an array has all of its memory
//! from the start; mappings are checked as on hardware, and textures return zeros for unmapped
//! tiles.

use std::sync::Arc;

use curium_ptx::exec::Tiles;
use curium_sys::{
    CUDA_ARRAY_SPARSE_PROPERTIES, CUarray_st, CUarrayMapInfo, CUarraySparseSubresourceType,
    CUmemHandleType, CUmemOperationType, CUmipmappedArray_st, CUresourcetype, CUresult,
    CUstream_st,
};

use crate::argument::{Pointer, elements};
use crate::call::Call;
use crate::call::virtual_memory::physical;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::array::{Array, Shape};
use crate::result::Result;

/// The bytes of a tile.
const TILE: u64 = 64 << 10;

/// `CU_MEM_CREATE_USAGE_TILE_POOL`.
const TILE_POOL: u16 = 1;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Tiles that are mapped or unmapped.
struct Change {
    pub(crate) tiles: Arc<Tiles>,
    origin: [u32; 3],
    extent: [u32; 3],
    is_mapped: bool,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Fails for a level of a mipmapped array, which has no tiles of its own.
    pub(crate) fn cuArrayGetSparseProperties(
        &self,
        properties: Pointer<CUDA_ARRAY_SPARSE_PROPERTIES>,
        array: Pointer<CUarray_st>,
    ) -> Result {
        let output = properties.required()?;
        let array = *self.lock().textures.array(Id::from(array.required()?))?;
        if !array.shape.is_sparse() || array.is_level {
            return Err(INVALID);
        }
        output.write(raw_properties(array.shape.tile(), 0, 0))
    }

    pub(crate) fn cuMipmappedArrayGetSparseProperties(
        &self,
        properties: Pointer<CUDA_ARRAY_SPARSE_PROPERTIES>,
        array: Pointer<CUmipmappedArray_st>,
    ) -> Result {
        let output = properties.required()?;
        let levels = self.level_shapes(array.required()?)?;
        let tile = levels
            .first()
            .filter(|level| level.is_sparse())
            .ok_or(INVALID)?
            .tile();
        let first = levels
            .iter()
            .position(|level| !level.has_whole_tile(tile))
            .unwrap_or(levels.len());
        let bytes: u64 = levels[first..]
            .iter()
            .map(|level| level.checked().unwrap_or_default())
            .sum();
        output.write(raw_properties(
            tile,
            first as u32,
            bytes.next_multiple_of(TILE),
        ))
    }

    pub(crate) fn cuMemMapArrayAsync(
        &self,
        infos: Pointer<CUarrayMapInfo>,
        count: u32,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        if count == 0 {
            return Err(INVALID);
        }
        self.lock().uncaptured_stream(stream)?;
        // SAFETY: by the contract of the C function, the array has `count` descriptions.
        let infos = unsafe { elements(infos.as_ptr().cast_const(), count as usize) }?;
        let changes = infos
            .iter()
            .map(|info| self.checked_tiles(info))
            .collect::<Result<Vec<_>>>()?;
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        let work = Work::Device(Box::new(move |_| {
            for change in changes {
                change
                    .tiles
                    .set(change.origin, change.extent, change.is_mapped);
            }
            Ok(())
        }));
        state.queue(stream, work);
        Ok(())
    }
}

impl Call<'_> {
    fn level_shapes(&self, array: Pointer<CUmipmappedArray_st>) -> Result<Vec<Shape>> {
        let state = self.lock();
        let levels = &state.textures.mipmapped_array(Id::from(array))?.levels;
        levels
            .iter()
            .map(|level| Ok(state.textures.array(*level)?.shape))
            .collect()
    }

    /// Maps or unmaps existing tiles, if their memory is available.
    fn checked_tiles(&self, info: &CUarrayMapInfo) -> Result<Change> {
        let is_level = info.subresourceType
            == CUarraySparseSubresourceType::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
        if info.flags != 0 || info.deviceBitMask == 0 || !is_level {
            return Err(INVALID);
        }
        // SAFETY: for this type the caller has written the box of tiles.
        let region = unsafe { info.subresource.sparseLevel };
        let (array, shape) = self.mapped_array(info, region.level)?;
        let [width, height, depth] = shape.bounds();
        let layers = if shape.is_layered() { depth } else { 1 };
        let bounds = [width, height, if shape.is_layered() { 1 } else { depth }];
        let origin = [region.offsetX, region.offsetY, region.offsetZ];
        let extent = [region.extentWidth, region.extentHeight, region.extentDepth];
        let is_in_bounds = (0..3)
            .all(|axis| is_valid_row(origin[axis], extent[axis], shape.tile()[axis], bounds[axis]));
        if !is_in_bounds || region.layer as usize >= layers {
            return Err(INVALID);
        }
        let tiles = (0..3)
            .map(|axis| u64::from(extent[axis].div_ceil(shape.tile()[axis])))
            .product::<u64>();
        let is_mapped = info.memOperationType == CUmemOperationType::CU_MEM_OPERATION_TYPE_MAP;
        match info.memOperationType {
            CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP => {}
            CUmemOperationType::CU_MEM_OPERATION_TYPE_MAP => {
                self.check_tile_memory(info, tiles * TILE)?;
            }
            _ => return Err(INVALID),
        }
        let origin = if shape.is_layered() {
            [origin[0], origin[1], region.layer]
        } else {
            origin
        };
        Ok(Change {
            tiles: self.lock().textures.sparse_tiles(array).ok_or(INVALID)?,
            origin,
            extent,
            is_mapped,
        })
    }

    /// Returns the level of the sparse array in the description, and its shape.
    fn mapped_array(&self, info: &CUarrayMapInfo, level: u32) -> Result<(Id<Array>, Shape)> {
        let array_and_shape = match info.resourceType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                // SAFETY: for this type the caller has written the handle of an array.
                let array = unsafe { info.resource.array };
                // SAFETY: a handle is only looked up.
                let array = unsafe { Pointer::from_raw(array) };
                let id = Id::from(array);
                let array = *self.lock().textures.array(id)?;
                (level == 0 && !array.is_level).then_some((id, array.shape))
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                // SAFETY: for this type the caller has written the handle of a mipmapped array.
                let array = unsafe { info.resource.mipmap };
                // SAFETY: a handle is only looked up.
                let array = unsafe { Pointer::from_raw(array) };
                let state = self.lock();
                let level = state
                    .textures
                    .mipmapped_array(Id::from(array))?
                    .levels()
                    .get(level as usize)
                    .copied();
                level
                    .map(|id| Ok((id, state.textures.array(id)?.shape)))
                    .transpose()?
            }
            _ => None,
        };
        array_and_shape
            .filter(|(_, shape)| shape.is_sparse())
            .ok_or(INVALID)
    }

    /// Checks that memory for this many bytes of tiles is available.
    fn check_tile_memory(&self, info: &CUarrayMapInfo, bytes: u64) -> Result {
        if info.memHandleType != CUmemHandleType::CU_MEM_HANDLE_TYPE_GENERIC {
            return Err(INVALID);
        }
        // SAFETY: for this type the caller has written the handle of physical memory.
        let handle = physical(unsafe { info.memHandle.memHandle });
        let is_for_tiles =
            self.memory().mappings().physical_properties(handle)?.usage & TILE_POOL != 0;
        let end = info.offset.checked_add(bytes).ok_or(INVALID)?;
        let is_within = info.offset.is_multiple_of(TILE)
            && end <= self.memory().mappings().physical_size(handle)?;
        if is_for_tiles && is_within {
            Ok(())
        } else {
            Err(INVALID)
        }
    }
}

/// Returns `true` if a row of tiles is within a bound. Tiles are whole, except for the last one.
fn is_valid_row(origin: u32, extent: u32, tile: u32, bound: usize) -> bool {
    let end = origin as usize + extent as usize;
    let is_whole = extent.is_multiple_of(tile) || end == bound;
    extent != 0
        && origin.is_multiple_of(tile)
        && is_whole
        && end <= bound.next_multiple_of(tile as usize)
}

fn raw_properties(tile: [u32; 3], first: u32, tail: u64) -> CUDA_ARRAY_SPARSE_PROPERTIES {
    let mut properties = CUDA_ARRAY_SPARSE_PROPERTIES {
        miptailFirstLevel: first,
        miptailSize: tail,
        ..Default::default()
    };
    let [width, height, depth] = tile;
    properties.tileExtent.width = width;
    properties.tileExtent.height = height;
    properties.tileExtent.depth = depth;
    properties
}
