//! `cudaDeviceProp`, whose fields are device properties in an order that depends on the CUDA
//! version.

use std::ffi::{c_char, c_int};

use curium_sys::{CUdevice_attribute as Attribute, CUuuid};

use crate::cu;
use crate::state::Result;

/// The CUDA version of this runtime: the layout of structures depends on it.
pub(crate) const MAJOR: u32 = match option_env!("CURIUM_CUDART_MAJOR") {
    Some(text) => match text.as_bytes() {
        b"11" => 11,
        b"12" => 12,
        b"13" => 13,
        _ => panic!("there are runtimes of CUDA 11, 12 and 13"),
    },
    None => 13,
};

/// A layout of the structure, with its length in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Layout {
    /// Up to CUDA 11, and the unversioned function of CUDA 12.
    First,
    /// CUDA 12.
    Second,
    /// CUDA 13, which removed some fields.
    Third,
}

impl Layout {
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::First => 728,
            Self::Second => 1032,
            Self::Third => 1008,
        }
    }
}

/// A sequence of fields.
enum Fields {
    /// An `int` for each attribute.
    Ints(&'static [Attribute]),
    /// An `int` that the third layout lacks.
    Gone(Attribute),
    /// A `size_t`.
    Size(Attribute),
    /// The end of earlier layouts.
    After(Layout),
}

use Fields::{After, Gone, Ints, Size};

/// The fields after the memory size.
const FIELDS: &[Fields] = &[
    Size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
        Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    ]),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ]),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP),
    Ints(&[Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED,
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
    ]),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
        Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED,
        Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_TCC_DRIVER,
        Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,
        Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        Attribute::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED,
    ]),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
        Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
        Attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD,
        Attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
    ]),
    Gone(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        Attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
    ]),
    Size(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
    After(Layout::First),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
        Attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
        Attribute::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
        Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
        Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
    ]),
    After(Layout::Second),
    Ints(&[
        Attribute::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG,
        Attribute::CU_DEVICE_ATTRIBUTE_NUMA_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
        Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID,
        Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
    ]),
];

/// Bytes of a C structure, field by field.
struct Writer(Vec<u8>);

impl Writer {
    fn int(&mut self, value: c_int) {
        self.0.extend(value.to_ne_bytes());
    }

    fn size(&mut self, value: usize) {
        let aligned = self.0.len().next_multiple_of(size_of::<usize>());
        self.0.resize(aligned, 0);
        self.0.extend(value.to_ne_bytes());
    }
}

/// Returns the properties of a device in a layout.
pub(crate) fn properties(device: c_int, layout: Layout) -> Result<Vec<u8>> {
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuDeviceGetName(name.as_mut_ptr(), 256, device)) }?;
    let mut uuid = CUuuid::default();
    // SAFETY: `uuid` is valid for writes, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe { cu!(cuDeviceGetUuid_v2(&raw mut uuid, device)) }?;
    let mut memory = 0;
    // SAFETY: `memory` is valid for writes, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe { cu!(cuDeviceTotalMem_v2(&raw mut memory, device)) }?;
    // `c_char` is unsigned on ARM.
    let [name, uuid] =
        [&name[..], &uuid.bytes].map(|text| text.iter().flat_map(|byte| byte.to_ne_bytes()));
    let mut writer = Writer(name.chain(uuid).collect());
    // The LUID of the device on Windows, and its node mask.
    writer.0.extend([0; 12]);
    writer.size(memory);
    write_attributes(&mut writer, layout, |attribute| {
        // An attribute that the driver does not support is zero.
        device_attribute(device, attribute).unwrap_or(0)
    });
    writer.0.resize(layout.size(), 0);
    Ok(writer.0)
}

fn device_attribute(device: c_int, attribute: Attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: `value` is valid for writes, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe { cu!(cuDeviceGetAttribute(&raw mut value, attribute, device)) }?;
    Ok(value)
}

fn write_attributes(writer: &mut Writer, layout: Layout, value: impl Fn(Attribute) -> c_int) {
    for fields in FIELDS {
        match fields {
            After(end) if layout == *end => return,
            After(_) => {}
            Gone(_) if layout == Layout::Third => {}
            Gone(attribute) => writer.int(value(*attribute)),
            Ints(attributes) => {
                for attribute in *attributes {
                    writer.int(value(*attribute));
                }
            }
            Size(attribute) => writer.size(value(*attribute).cast_unsigned() as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the offsets with the headers of CUDA 11.8, 12.9 and 13.5.
    #[test]
    fn fields_have_the_offsets_in_the_headers() {
        for (layout, offsets) in [
            (
                Layout::First,
                [
                    ("multiprocessors", 388),
                    ("optin", 696),
                    ("reserved", 720),
                    ("cluster", 0),
                ],
            ),
            (
                Layout::Second,
                [
                    ("multiprocessors", 388),
                    ("optin", 696),
                    ("reserved", 720),
                    ("cluster", 772),
                ],
            ),
            (
                Layout::Third,
                [
                    ("multiprocessors", 384),
                    ("optin", 672),
                    ("reserved", 696),
                    ("cluster", 748),
                ],
            ),
        ] {
            for (name, offset) in offsets.into_iter().filter(|(_, offset)| *offset > 0) {
                let field = match name {
                    "multiprocessors" => Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                    "optin" => Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                    "reserved" => Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
                    _ => Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
                };
                let mut writer = Writer(vec![0; 296]);
                write_attributes(&mut writer, layout, |attribute| {
                    c_int::from(attribute == field) * 7
                });
                assert_eq!(
                    writer.0.iter().position(|byte| *byte == 7),
                    Some(offset),
                    "{layout:?}: {name}"
                );
                assert!(writer.0.len() <= layout.size(), "{layout:?}");
            }
        }
    }
}
