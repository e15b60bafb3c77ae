//! Textures: their destruction while a kernel uses them, observed on an H200.

use std::ffi::c_void;
use std::ptr;

use curium_driver::AsRawStream as _;
use curium_sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_DESC_st__bindgen_ty_1,
    CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3, CUDA_TEXTURE_DESC, CUarray_format,
    CUresourcetype,
};
use curium_tests::{Gate, TestDriver, driver_test};

use super::{OK, in_context};

/// Writes the element `tid` of a texture of a buffer to the address.
const READ: &std::ffi::CStr = c".version 7.8
.target sm_75
.address_size 64
.visible .entry read(.param .u64 texture, .param .u64 result)
{
    .reg .b64 %t, %p, %o; .reg .b32 %i, %a, %b, %c, %d;
    ld.param.u64 %t, [texture]; ld.param.u64 %p, [result];
    mov.u32 %i, %tid.x;
    tex.1d.v4.u32.s32 {%a, %b, %c, %d}, [%t, {%i}];
    mul.wide.u32 %o, %i, 4; add.u64 %p, %p, %o;
    st.global.u32 [%p], %a;
    ret;
}
";

/// A texture that is destroyed after a launch is read by the kernel as before.
#[driver_test]
fn texture_is_destroyed_while_a_kernel_uses_it(test: &TestDriver) {
    let stream = test.stream();
    in_context(test, |driver| {
        let mut module = ptr::null_mut();
        let code = returned!(
            driver,
            cuModuleLoadData(&raw mut module, READ.as_ptr().cast())
        );
        assert_eq!(code, OK);
        let mut function = ptr::null_mut();
        let code = returned!(
            driver,
            cuModuleGetFunction(&raw mut function, module, c"read".as_ptr())
        );
        assert_eq!(code, OK);
        let mut elements = 0;
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut elements, 128)), OK);
        assert_eq!(returned!(driver, cuMemsetD32_v2(elements, 42, 32)), OK);
        let mut result = 0;
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut result, 128)), OK);
        assert_eq!(returned!(driver, cuCtxSynchronize()), OK);

        let resource = CUDA_RESOURCE_DESC {
            resType: CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
            res: CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
                linear: CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
                    devPtr: elements,
                    format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
                    numChannels: 1,
                    sizeInBytes: 128,
                },
            },
            flags: 0,
        };
        let description = CUDA_TEXTURE_DESC {
            flags: 1,
            ..CUDA_TEXTURE_DESC::default()
        };
        let mut texture = 0;
        let code = returned!(
            driver,
            cuTexObjectCreate(
                &raw mut texture,
                &raw const resource,
                &raw const description,
                ptr::null()
            )
        );
        assert_eq!(code, OK);

        let gate = Gate::on(&stream);
        let mut parameters: [*mut c_void; 2] =
            [(&raw mut texture).cast(), (&raw mut result).cast()];
        let code = returned!(
            driver,
            cuLaunchKernel(
                function,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                stream.as_raw(),
                parameters.as_mut_ptr(),
                ptr::null_mut()
            )
        );
        assert_eq!(code, OK);
        assert_eq!(returned!(driver, cuTexObjectDestroy(texture)), OK);
        gate.open();
        assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
        let mut read = [0_u32; 32];
        let code = returned!(
            driver,
            cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), result, 128)
        );
        assert_eq!(code, OK);
        assert_eq!(read, [42; 32]);

        for address in [elements, result] {
            assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
        }
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
    });
}
