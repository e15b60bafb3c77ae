//! Tensor maps in memory that is aligned less than their type.

use curium_driver::ComputeCapability;
use curium_sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use curium_tests::{TestResult, on_driver, skip};

use super::{OK, in_created_context};

/// Memory for a map at a multiple of 16 that is no multiple of 64, as in an object of Python.
#[repr(align(64))]
struct Memory([u64; 18]);

#[test]
fn tensor_maps_may_be_aligned_less() -> TestResult {
    on_driver(|test| {
        let hopper = ComputeCapability { major: 9, minor: 0 };
        if test.device().compute_capability()? < hopper {
            return skip("needs compute capability 9.0");
        }
        in_created_context(test, |driver, _| {
            let mut memory = Memory([0; 18]);
            let map = memory.0[2..].as_mut_ptr();
            let extents = [1024_u64];
            let strides = [0_u64];
            let boxed = [64_u32];
            let steps = [1_u32];
            for address in [0x1000_usize, 0x2000] {
                let code = returned!(
                    driver,
                    cuTensorMapEncodeTiled(
                        map.cast::<CUtensorMap>(),
                        CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                        1,
                        std::ptr::without_provenance_mut(address),
                        extents.as_ptr(),
                        strides.as_ptr(),
                        boxed.as_ptr(),
                        steps.as_ptr(),
                        CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                        CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
                        CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
                        CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
                    )
                );
                assert_eq!(code, OK);
            }
            let code = returned!(
                driver,
                cuTensorMapReplaceAddress(
                    map.cast::<CUtensorMap>(),
                    std::ptr::without_provenance_mut(0x1000)
                )
            );
            assert_eq!(code, OK);
            assert_ne!(memory.0[2..], [0; 16]);
        });
        Ok(())
    })
}
