//! The C functions for arrays.

mod mipmapped;
mod sparse;

use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY3D_DESCRIPTOR, CUarray,
    CUarray_st, CUdevice, CUresult,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::handle::Id;
use crate::memory::Purpose;
use crate::object::array::{Array, Shape};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuArrayCreate_v2(
        &self,
        array: Pointer<CUarray>,
        descriptor: ConstPointer<CUDA_ARRAY_DESCRIPTOR>,
    ) -> Result {
        self.require_current()?;
        let flat = descriptor.read()?;
        let shape = Shape {
            width: flat.Width,
            height: flat.Height,
            depth: 0,
            format: flat.Format,
            channels: flat.NumChannels,
            flags: 0,
        };
        self.create_array(array, shape)
    }

    pub(crate) fn cuArray3DCreate_v2(
        &self,
        array: Pointer<CUarray>,
        descriptor: ConstPointer<CUDA_ARRAY3D_DESCRIPTOR>,
    ) -> Result {
        self.require_current()?;
        self.create_array(array, Shape::from(descriptor.read()?))
    }

    /// Waits for the device, because the memory is freed.
    pub(crate) fn cuArrayDestroy(&self, array: Pointer<CUarray_st>) -> Result {
        let mut state = self.lock();
        let id = Id::from(array);
        let array = *state.textures.array(id)?;
        state.check_potentially_unsafe_call()?;
        if array.is_level {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let device = state.contexts.valid_context(array.context)?.device();
        state.textures.remove_array(id);
        drop(state.wait_for_device(device)?);
        self.memory().free(array.base);
        Ok(())
    }

    pub(crate) fn cuArrayGetDescriptor_v2(
        &self,
        descriptor: Pointer<CUDA_ARRAY_DESCRIPTOR>,
        array: Pointer<CUarray_st>,
    ) -> Result {
        let shape = self.lock().textures.array(Id::from(array))?.shape;
        descriptor.write(CUDA_ARRAY_DESCRIPTOR {
            Width: shape.width,
            Height: shape.height,
            Format: shape.format,
            NumChannels: shape.channels,
        })
    }

    pub(crate) fn cuArray3DGetDescriptor_v2(
        &self,
        descriptor: Pointer<CUDA_ARRAY3D_DESCRIPTOR>,
        array: Pointer<CUarray_st>,
    ) -> Result {
        let shape = self.lock().textures.array(Id::from(array))?.shape;
        descriptor.write(shape.to_raw())
    }

    /// Fails for all arguments: only arrays with deferred mapping have requirements, and this
    /// driver has none.
    pub(crate) fn cuArrayGetMemoryRequirements(
        &self,
        requirements: Pointer<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
        _array: Pointer<CUarray_st>,
        _device: CUdevice,
    ) -> Result {
        requirements.required()?;
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Fails: arrays with several planes are not supported.
    pub(crate) fn cuArrayGetPlane(
        &self,
        plane: Pointer<CUarray>,
        array: Pointer<CUarray_st>,
        _: u32,
    ) -> Result {
        self.lock().textures.array(Id::from(array))?;
        plane.required()?;
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

impl Call<'_> {
    fn create_array(&self, array: Pointer<CUarray>, shape: Shape) -> Result {
        let output = array.required()?;
        let owner = self.current_owner()?;
        let base = self
            .memory()
            .allocate_on_device(shape.checked()?, owner, Purpose::Array)?;
        let array = Array {
            context: owner.context,
            shape,
            base,
            is_level: false,
        };
        output.write(self.lock().textures.insert_array(array).as_raw())
    }
}
