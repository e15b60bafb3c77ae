//! Filling rows.

use curium_sys::{CUdeviceptr, CUstream_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::copy::legacy;
use crate::driver::memset::rows::Rows;
use crate::memory::Fill;
use crate::result::Result;

/// Methods for one width: the synchronous form and the asynchronous one.
macro_rules! widths {
    ($($now:ident $later:ident $ty:ty;)*) => {
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        impl Call<'_> {
            $(
                pub(crate) fn $now(
                    &self,
                    address: CUdeviceptr,
                    pitch: usize,
                    value: $ty,
                    width: usize,
                    height: usize,
                ) -> Result {
                    self.require_current()?;
                    self.$later(address, pitch, value, width, height, legacy())?;
                    let is_on_host = self.memory().find(address).is_some_and(|allocation| allocation.purpose.is_on_host());
                    if is_on_host { self.cuStreamSynchronize(legacy()) } else { Ok(()) }
                }

                pub(crate) fn $later(
                    &self,
                    address: CUdeviceptr,
                    pitch: usize,
                    value: $ty,
                    width: usize,
                    height: usize,
                    stream: Pointer<CUstream_st>,
                ) -> Result {
                    let fill = Fill { value: value.into(), width: size_of::<$ty>(), count: width };
                    self.fill_rows(address, fill, Rows { pitch, height }, stream)
                }
            )*
        }
    };
}

widths! {
    cuMemsetD2D8_v2 cuMemsetD2D8Async u8;
    cuMemsetD2D16_v2 cuMemsetD2D16Async u16;
    cuMemsetD2D32_v2 cuMemsetD2D32Async u32;
}
