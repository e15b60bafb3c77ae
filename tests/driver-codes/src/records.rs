//! Valid values of structs, for which the types of the members say too little.

/// The source of the value of a member.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// This integer.
    Bits(u64),
    /// The enumerator with this name.
    Named(&'static str),
    /// A valid value for the type, as for a parameter.
    Valid,
    /// Pageable memory of the host.
    Host,
    /// A pointer to a row of pointers, such as a kernel's parameters.
    Pointers,
    /// A pointer to an operation on memory.
    Operation,
}

use Rule::{Bits, Host, Named, Operation, Pointers, Valid};

/// The members that are not zero, by their paths.
pub(crate) type Members = &'static [(&'static str, Rule)];

/// Returns the valid alternatives of a struct, whose name may end with the number of its version;
/// none for a struct that is only written by the driver, or of which zeros are valid.
pub(crate) fn alternatives(name: &str) -> &'static [Members] {
    let name = name.trim_end_matches("_st");
    let name = match name
        .len()
        .checked_sub(3)
        .and_then(|length| name.split_at_checked(length))
    {
        Some((base, version)) if version.starts_with("_v") || version.starts_with("_V") => base,
        _ => name,
    };
    RECORDS
        .iter()
        .find(|(record, _)| *record == name)
        .map_or(&[], |(_, alternatives)| alternatives)
}

const LINEAR: Members = &[
    ("resType", Named("CU_RESOURCE_TYPE_LINEAR")),
    ("res.linear.devPtr", Valid),
    ("res.linear.format", Named("CU_AD_FORMAT_FLOAT")),
    ("res.linear.numChannels", Bits(1)),
    ("res.linear.sizeInBytes", Bits(256)),
];

const EXTENT_2D: [(&str, Rule); 4] = [
    ("srcPitch", Bits(64)),
    ("dstPitch", Bits(64)),
    ("WidthInBytes", Bits(16)),
    ("Height", Bits(2)),
];

const EXTENT_3D: [(&str, Rule); 7] = [
    ("srcPitch", Bits(64)),
    ("srcHeight", Bits(2)),
    ("dstPitch", Bits(64)),
    ("dstHeight", Bits(2)),
    ("WidthInBytes", Bits(16)),
    ("Height", Bits(2)),
    ("Depth", Bits(1)),
];

macro_rules! copy {
    ($extent:ident; $($member:tt)*) => {
        &{
            const ENDS: &[(&str, Rule)] = &[$($member)*];
            let mut members = [("", Bits(0)); ENDS.len() + $extent.len()];
            let mut index = 0;
            while index < members.len() {
                members[index] = if index < ENDS.len() { ENDS[index] } else { $extent[index - ENDS.len()] };
                index += 1;
            }
            members
        }
    };
}

macro_rules! copies {
    ($extent:ident) => {
        &[
            copy!($extent;
                ("srcMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("srcDevice", Valid),
                ("dstMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("dstDevice", Valid),
            ),
            copy!($extent;
                ("srcMemoryType", Named("CU_MEMORYTYPE_HOST")), ("srcHost", Host),
                ("dstMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("dstDevice", Valid),
            ),
            copy!($extent;
                ("srcMemoryType", Named("CU_MEMORYTYPE_UNIFIED")), ("srcDevice", Valid),
                ("dstMemoryType", Named("CU_MEMORYTYPE_HOST")), ("dstHost", Host),
            ),
            copy!($extent;
                ("srcMemoryType", Named("CU_MEMORYTYPE_ARRAY")), ("srcArray", Valid),
                ("dstMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("dstDevice", Valid),
            ),
            copy!($extent;
                ("srcMemoryType", Named("CU_MEMORYTYPE_HOST")), ("srcHost", Host),
                ("dstMemoryType", Named("CU_MEMORYTYPE_ARRAY")), ("dstArray", Valid),
            ),
        ]
    };
}

const KERNEL: Members = &[
    ("func", Valid),
    ("gridDimX", Bits(1)),
    ("gridDimY", Bits(1)),
    ("gridDimZ", Bits(1)),
    ("blockDimX", Bits(32)),
    ("blockDimY", Bits(1)),
    ("blockDimZ", Bits(1)),
    ("kernelParams", Pointers),
];

const RECORDS: &[(&str, &[Members])] = &[
    (
        "CUDA_ARRAY_DESCRIPTOR",
        &[
            &[
                ("Width", Bits(16)),
                ("Height", Bits(4)),
                ("Format", Named("CU_AD_FORMAT_UNSIGNED_INT8")),
                ("NumChannels", Bits(1)),
            ],
            &[
                ("Width", Bits(16)),
                ("Format", Named("CU_AD_FORMAT_FLOAT")),
                ("NumChannels", Bits(4)),
            ],
        ],
    ),
    (
        "CUDA_ARRAY3D_DESCRIPTOR",
        &[
            &[
                ("Width", Bits(16)),
                ("Height", Bits(4)),
                ("Format", Named("CU_AD_FORMAT_FLOAT")),
                ("NumChannels", Bits(1)),
                ("Flags", Bits(2)),
            ],
            &[
                ("Width", Bits(16)),
                ("Height", Bits(4)),
                ("Depth", Bits(4)),
                ("Format", Named("CU_AD_FORMAT_UNSIGNED_INT8")),
                ("NumChannels", Bits(2)),
            ],
            &[
                ("Width", Bits(16)),
                ("Height", Bits(4)),
                ("Depth", Bits(2)),
                ("Format", Named("CU_AD_FORMAT_HALF")),
                ("NumChannels", Bits(4)),
                ("Flags", Bits(1)),
            ],
        ],
    ),
    ("CUDA_MEMCPY2D", copies!(EXTENT_2D)),
    ("CUDA_MEMCPY3D", copies!(EXTENT_3D)),
    (
        "CUDA_MEMCPY3D_PEER",
        &[copy!(EXTENT_3D;
            ("srcMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("srcDevice", Valid), ("srcContext", Valid),
            ("dstMemoryType", Named("CU_MEMORYTYPE_DEVICE")), ("dstDevice", Valid), ("dstContext", Valid),
        )],
    ),
    (
        "CUDA_MEMSET_NODE_PARAMS",
        &[&[
            ("dst", Valid),
            ("pitch", Bits(64)),
            ("value", Bits(1)),
            ("elementSize", Bits(1)),
            ("width", Bits(16)),
            ("height", Bits(1)),
        ]],
    ),
    ("CUDA_KERNEL_NODE_PARAMS", &[KERNEL]),
    (
        "CUDA_LAUNCH_PARAMS",
        &[&[
            ("function", Valid),
            ("gridDimX", Bits(1)),
            ("gridDimY", Bits(1)),
            ("gridDimZ", Bits(1)),
            ("blockDimX", Bits(32)),
            ("blockDimY", Bits(1)),
            ("blockDimZ", Bits(1)),
            ("hStream", Valid),
            ("kernelParams", Pointers),
        ]],
    ),
    (
        "CUlaunchConfig",
        &[&[
            ("gridDimX", Bits(1)),
            ("gridDimY", Bits(1)),
            ("gridDimZ", Bits(1)),
            ("blockDimX", Bits(32)),
            ("blockDimY", Bits(1)),
            ("blockDimZ", Bits(1)),
            ("hStream", Valid),
        ]],
    ),
    ("CUDA_HOST_NODE_PARAMS", &[&[("fn_", Valid)]]),
    (
        "CUDA_BATCH_MEM_OP_NODE_PARAMS",
        &[&[
            ("ctx", Valid),
            ("count", Bits(1)),
            ("paramArray", Operation),
        ]],
    ),
    (
        "CUstreamBatchMemOpParams",
        &[
            &[
                ("operation", Named("CU_STREAM_MEM_OP_WRITE_VALUE_32")),
                ("writeValue.address", Valid),
                ("writeValue.value", Bits(1)),
            ],
            &[
                ("operation", Named("CU_STREAM_MEM_OP_WRITE_VALUE_64")),
                ("writeValue.address", Valid),
                ("writeValue.value64", Bits(1)),
            ],
        ],
    ),
    (
        "CUDA_MEM_ALLOC_NODE_PARAMS",
        &[&[
            (
                "poolProps.allocType",
                Named("CU_MEM_ALLOCATION_TYPE_PINNED"),
            ),
            (
                "poolProps.location.type_",
                Named("CU_MEM_LOCATION_TYPE_DEVICE"),
            ),
            ("bytesize", Bits(4096)),
        ]],
    ),
    (
        "CUgraphNodeParams",
        &[
            &[("type_", Named("CU_GRAPH_NODE_TYPE_EMPTY"))],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_KERNEL")),
                ("kernel.func", Valid),
                ("kernel.gridDimX", Bits(1)),
                ("kernel.gridDimY", Bits(1)),
                ("kernel.gridDimZ", Bits(1)),
                ("kernel.blockDimX", Bits(32)),
                ("kernel.blockDimY", Bits(1)),
                ("kernel.blockDimZ", Bits(1)),
                ("kernel.kernelParams", Pointers),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_MEMSET")),
                ("memset.dst", Valid),
                ("memset.value", Bits(1)),
                ("memset.elementSize", Bits(1)),
                ("memset.width", Bits(16)),
                ("memset.height", Bits(1)),
                ("memset.ctx", Valid),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_MEMCPY")),
                ("memcpy.copyCtx", Valid),
                (
                    "memcpy.copyParams.srcMemoryType",
                    Named("CU_MEMORYTYPE_DEVICE"),
                ),
                ("memcpy.copyParams.srcDevice", Valid),
                ("memcpy.copyParams.srcPitch", Bits(64)),
                ("memcpy.copyParams.srcHeight", Bits(1)),
                (
                    "memcpy.copyParams.dstMemoryType",
                    Named("CU_MEMORYTYPE_DEVICE"),
                ),
                ("memcpy.copyParams.dstDevice", Valid),
                ("memcpy.copyParams.dstPitch", Bits(64)),
                ("memcpy.copyParams.dstHeight", Bits(1)),
                ("memcpy.copyParams.WidthInBytes", Bits(16)),
                ("memcpy.copyParams.Height", Bits(1)),
                ("memcpy.copyParams.Depth", Bits(1)),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_HOST")),
                ("host.fn_", Valid),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_GRAPH")),
                ("graph.graph", Valid),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_EVENT_RECORD")),
                ("eventRecord.event", Valid),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_WAIT_EVENT")),
                ("eventWait.event", Valid),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_MEM_ALLOC")),
                (
                    "alloc.poolProps.allocType",
                    Named("CU_MEM_ALLOCATION_TYPE_PINNED"),
                ),
                (
                    "alloc.poolProps.location.type_",
                    Named("CU_MEM_LOCATION_TYPE_DEVICE"),
                ),
                ("alloc.bytesize", Bits(4096)),
            ],
            &[
                ("type_", Named("CU_GRAPH_NODE_TYPE_CONDITIONAL")),
                ("conditional.handle", Valid),
                ("conditional.type_", Named("CU_GRAPH_COND_TYPE_IF")),
                ("conditional.size", Bits(1)),
                ("conditional.ctx", Valid),
            ],
        ],
    ),
    (
        "CUmemAllocationProp",
        &[
            &[
                ("type_", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_DEVICE")),
            ],
            &[
                ("type_", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                (
                    "requestedHandleTypes",
                    Named("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"),
                ),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_DEVICE")),
            ],
        ],
    ),
    (
        "CUmemPoolProps",
        &[
            &[
                ("allocType", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_DEVICE")),
            ],
            &[
                ("allocType", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                (
                    "handleTypes",
                    Named("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"),
                ),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_DEVICE")),
            ],
            &[
                ("allocType", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_HOST")),
            ],
            &[
                ("allocType", Named("CU_MEM_ALLOCATION_TYPE_PINNED")),
                (
                    "handleTypes",
                    Named("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"),
                ),
                ("location.type_", Named("CU_MEM_LOCATION_TYPE_HOST_NUMA")),
            ],
        ],
    ),
    (
        "CUmemLocation",
        &[
            &[("type_", Named("CU_MEM_LOCATION_TYPE_DEVICE"))],
            &[("type_", Named("CU_MEM_LOCATION_TYPE_DEVICE"))],
            &[("type_", Named("CU_MEM_LOCATION_TYPE_HOST"))],
        ],
    ),
    (
        "CUmemAccessDesc",
        &[&[
            ("location.type_", Named("CU_MEM_LOCATION_TYPE_DEVICE")),
            ("flags", Named("CU_MEM_ACCESS_FLAGS_PROT_READWRITE")),
        ]],
    ),
    (
        "CUmemcpyAttributes",
        &[&[("srcAccessOrder", Named("CU_MEMCPY_SRC_ACCESS_ORDER_STREAM"))]],
    ),
    (
        "CUDA_MEMCPY3D_BATCH_OP",
        &[&[
            ("src.type_", Named("CU_MEMCPY_OPERAND_TYPE_POINTER")),
            ("src.op.ptr.ptr", Valid),
            ("dst.type_", Named("CU_MEMCPY_OPERAND_TYPE_POINTER")),
            ("dst.op.ptr.ptr", Valid),
            ("extent.width", Bits(16)),
            ("extent.height", Bits(1)),
            ("extent.depth", Bits(1)),
            ("srcAccessOrder", Named("CU_MEMCPY_SRC_ACCESS_ORDER_STREAM")),
        ]],
    ),
    (
        "CUDA_RESOURCE_DESC",
        &[
            LINEAR,
            &[
                ("resType", Named("CU_RESOURCE_TYPE_ARRAY")),
                ("res.array.hArray", Valid),
            ],
            &[
                ("resType", Named("CU_RESOURCE_TYPE_MIPMAPPED_ARRAY")),
                ("res.mipmap.hMipmappedArray", Valid),
            ],
            &[
                ("resType", Named("CU_RESOURCE_TYPE_PITCH2D")),
                ("res.pitch2D.devPtr", Valid),
                ("res.pitch2D.format", Named("CU_AD_FORMAT_UNSIGNED_INT8")),
                ("res.pitch2D.numChannels", Bits(1)),
                ("res.pitch2D.width", Bits(16)),
                ("res.pitch2D.height", Bits(2)),
                ("res.pitch2D.pitchInBytes", Bits(512)),
            ],
        ],
    ),
];
