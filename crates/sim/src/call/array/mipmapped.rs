//! Mipmapped arrays: an image in decreasing sizes.

use curium_sys::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY3D_DESCRIPTOR, CUarray, CUdevice, CUmipmappedArray,
    CUmipmappedArray_st, CUresult,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::handle::Id;
use crate::memory::Purpose;
use crate::object::array::mipmapped::MipmappedArray;
use crate::object::array::{Array, Shape};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Creates a mipmapped array. As documented, surplus levels are dropped.
    pub(crate) fn cuMipmappedArrayCreate(
        &self,
        array: Pointer<CUmipmappedArray>,
        descriptor: ConstPointer<CUDA_ARRAY3D_DESCRIPTOR>,
        levels: u32,
    ) -> Result {
        let owner = self.current_owner()?;
        let output = array.required()?;
        let shape = Shape::from(descriptor.read()?);
        shape.checked()?;
        let mut arrays = Vec::new();
        // As on hardware, there is always one level.
        for level in shape.levels().take(levels.max(1) as usize) {
            match self
                .memory()
                .allocate_on_device(level.checked()?, owner, Purpose::Array)
            {
                Ok(base) => arrays.push(Array {
                    context: owner.context,
                    shape: level,
                    base,
                    is_level: true,
                }),
                Err(code) => {
                    arrays
                        .iter()
                        .for_each(|array| self.memory().free(array.base));
                    return Err(code);
                }
            }
        }
        let mut state = self.lock();
        let levels = arrays
            .into_iter()
            .map(|array| state.textures.insert_array(array))
            .collect();
        output.write(
            state
                .textures
                .insert_mipmapped_array(MipmappedArray {
                    context: owner.context,
                    levels,
                })
                .as_raw(),
        )
    }

    pub(crate) fn cuMipmappedArrayGetLevel(
        &self,
        level_array: Pointer<CUarray>,
        array: Pointer<CUmipmappedArray_st>,
        level: u32,
    ) -> Result {
        let state = self.lock();
        let level = state
            .textures
            .mipmapped_array(Id::from(array))?
            .levels
            .get(level as usize)
            .copied();
        level_array.write(level.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?.as_raw())
    }

    /// Waits for the device, because the memory is freed.
    pub(crate) fn cuMipmappedArrayDestroy(&self, array: Pointer<CUmipmappedArray_st>) -> Result {
        let mut state = self.lock();
        let id = Id::from(array);
        let context = state.textures.mipmapped_array(id)?.context;
        let device = state.contexts.valid_context(context)?.device();
        let levels = state.textures.remove_mipmapped_array(id);
        drop(state.wait_for_device(device)?);
        for level in levels {
            self.memory().free(level.base);
        }
        Ok(())
    }

    /// Fails for all arguments: only arrays with deferred mapping have requirements, and this
    /// driver has none.
    pub(crate) fn cuMipmappedArrayGetMemoryRequirements(
        &self,
        requirements: Pointer<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
        _array: Pointer<CUmipmappedArray_st>,
        _device: CUdevice,
    ) -> Result {
        requirements.required()?;
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
