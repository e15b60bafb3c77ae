//! The knowledge that types of parameters lack: the objects that a function takes and creates, and
//! the calls that are never made.

/// Functions that are never called, by the beginnings of their names.
pub(crate) const EXCLUDED: &[(&str, &str)] = &[
    ("cuCheckpointOperation", "it stops processes"),
    ("cuCheckpointProcessCheckpoint", "it stops processes"),
    ("cuCheckpointProcessLock", "it stops processes"),
    ("cuCheckpointProcessRestore", "it stops processes"),
    ("cuCheckpointProcessUnlock", "it stops processes"),
    ("cuCoredump", "its settings are those of the machine"),
    (
        "cuDevicePrimaryCtxReset",
        "it destroys objects that it does not name",
    ),
    (
        "cuMulticast",
        "its objects belong to the fabric of several devices",
    ),
];

/// Functions of other interfaces, which need objects of those: they are called with null handles,
/// and rarely.
const OTHER_INTERFACES: &[&str] = &["EGL", "GL", "VDPAU", "Graphics", "NvSci", "External"];

/// Words in the names of functions that create an object and store its handle at their first
/// pointer to a handle.
const CREATING: &[&str] = &[
    "Create",
    "Alloc",
    "Add",
    "Load",
    "Instantiate",
    "Clone",
    "Reserve",
    "RetainAllocation",
    "CtxRetain",
    "Import",
    "Register",
    "EndCapture",
    "GetFunction",
    "GetKernel",
    "GetGlobal",
    "GetManaged",
    "GetTexRef",
    "GetSurfRef",
    "GetLevel",
    "GenerateDesc",
    "FromGreenCtx",
    "GetDefaultMemPool",
    "GetDevResource",
    "IpcGet",
    "ExportPointer",
    "IpcOpen",
    "GetDevicePointer",
];

/// Words in the names of functions that destroy the object of their first handle.
const DESTROYING: &[&str] = &[
    "Destroy",
    "Free",
    "Unload",
    "Release",
    "Unregister",
    "Detach",
    "IpcClose",
];

/// Structs that are objects: functions take those that others have written.
const RECORD_OBJECTS: &[&str] = &[
    "CUdevResource",
    "CUipcEventHandle",
    "CUipcMemHandle",
    "CUmemPoolPtrExportData",
];

/// The functions that create the objects of a kind.
const CREATORS: &[(&str, &[&str])] = &[
    ("CUarray", &["cuArrayCreate_v2", "cuArray3DCreate_v2"]),
    (
        "CUasyncCallbackHandle",
        &["cuDeviceRegisterAsyncNotification"],
    ),
    ("CUcontext", &["cuCtxCreate_v2"]),
    ("CUdevResource", &["cuDeviceGetDevResource"]),
    ("CUdevResourceDesc", &["cuDevResourceGenerateDesc"]),
    ("CUevent", &["cuEventCreate"]),
    (
        "CUfunction",
        &[
            "cuModuleGetFunction",
            "cuModuleGetFunction",
            "cuKernelGetFunction",
        ],
    ),
    ("CUgraph", &["cuGraphCreate"]),
    (
        "CUgraphConditionalHandle",
        &["cuGraphConditionalHandleCreate"],
    ),
    ("CUgraphExec", &["cuGraphInstantiateWithFlags"]),
    ("CUgreenCtx", &["cuGreenCtxCreate"]),
    ("CUipcEventHandle", &["cuIpcGetEventHandle"]),
    ("CUipcMemHandle", &["cuIpcGetMemHandle"]),
    ("CUkernel", &["cuLibraryGetKernel"]),
    ("CUlibrary", &["cuLibraryLoadData"]),
    ("CUlinkState", &["cuLinkCreate_v2"]),
    ("CUlogsCallbackHandle", &["cuLogsRegisterCallback"]),
    ("CUmemGenericAllocationHandle", &["cuMemCreate"]),
    ("CUmemPoolPtrExportData", &["cuMemPoolExportPointer"]),
    ("CUmemoryPool", &["cuMemPoolCreate"]),
    ("CUmipmappedArray", &["cuMipmappedArrayCreate"]),
    ("CUmodule", &["cuModuleLoadData"]),
    (
        "CUstream",
        &[
            "cuStreamCreate",
            "cuStreamCreate",
            "cuStreamCreateWithPriority",
        ],
    ),
    ("CUsurfObject", &["cuSurfObjectCreate"]),
    ("CUtexObject", &["cuTexObjectCreate"]),
    ("CUtexref", &["cuTexRefCreate"]),
    ("CUuserObject", &["cuUserObjectCreate"]),
    ("async", &["cuMemAllocAsync", "cuMemAllocFromPoolAsync"]),
    ("device", &["cuMemAlloc_v2"]),
    ("global", &["cuModuleGetGlobal_v2"]),
    ("managed", &["cuMemAllocManaged"]),
    ("pinned", &["cuMemHostAlloc", "cuMemAllocHost_v2"]),
    ("registered", &["cuMemHostRegister_v2"]),
    ("reserved", &["cuMemAddressReserve"]),
];

/// Returns the functions that create the objects of a kind.
pub(crate) fn creators(kind: &str) -> &'static [&'static str] {
    CREATORS
        .iter()
        .find(|(created, _)| *created == kind)
        .map_or(&[], |(_, functions)| functions)
}

pub(crate) fn is_excluded(function: &str) -> bool {
    EXCLUDED.iter().any(|(name, _)| function.starts_with(name))
}

pub(crate) fn is_other_interface(function: &str) -> bool {
    OTHER_INTERFACES.iter().any(|name| function.contains(name))
}

pub(crate) fn creates(function: &str) -> bool {
    CREATING.iter().any(|word| function.contains(word)) && !is_other_interface(function)
}

pub(crate) fn destroys(function: &str) -> bool {
    let is_reference =
        function == "cuGraphReleaseUserObject" || function.starts_with("cuDevicePrimary");
    DESTROYING.iter().any(|word| function.contains(word)) && !is_reference
}

pub(crate) fn is_record_object(record: &str) -> bool {
    RECORD_OBJECTS.contains(&record)
}

/// Returns the kind of the objects that a function creates, of those that a handle of a type can
/// identify.
pub(crate) fn created_kind(function: &str, handle: &'static str) -> &'static str {
    if handle != "CUdeviceptr" {
        return handle;
    }
    match function {
        "cuMemAllocManaged" => "managed",
        "cuMemAllocAsync" | "cuMemAllocFromPoolAsync" => "async",
        "cuMemAddressReserve" => "reserved",
        _ if function.contains("GetGlobal") || function.contains("GetManaged") => "global",
        _ if function.contains("GetDevicePointer") => "pinned",
        _ => "device",
    }
}

/// Returns the kinds of objects that a function takes for a handle of a type, the frequent ones
/// repeatedly.
pub(crate) fn accepted_kinds(
    function: &str,
    parameter: &str,
    handle: &'static str,
) -> Vec<&'static str> {
    if handle != "CUdeviceptr" {
        return vec![handle];
    }
    let kinds: &[&str] = match function {
        "cuMemAddressFree" | "cuMemMap" | "cuMemUnmap" | "cuMemSetAccess" | "cuMemGetAccess" => {
            &["reserved"]
        }
        "cuMemFree_v2" => &["device", "device", "managed", "async"],
        "cuMemFreeAsync" => &["async", "async", "device"],
        "cuMemPoolExportPointer" => &["async"],
        "cuIpcGetMemHandle" | "cuIpcCloseMemHandle" => &["device"],
        _ if parameter == "addr" && function == "cuMemAddressReserve" => &[],
        _ if ["Advise", "Prefetch", "MemRange", "Discard", "AttachMem"]
            .iter()
            .any(|word| function.contains(word)) =>
        {
            &["managed", "managed", "managed", "device"]
        }
        _ => &[
            "device", "device", "device", "device", "async", "async", "managed", "pinned", "global",
        ],
    };
    kinds.to_vec()
}

/// The memory that an untyped pointer stands for.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Untyped {
    /// Memory of the host that the function reads or writes.
    Host,
    /// An object.
    Object(&'static str),
    /// A page to register.
    Page,
    /// The image of a module.
    Image,
}

/// Returns what an untyped pointer stands for.
pub(crate) fn untyped(function: &str, parameter: &str) -> Untyped {
    match (function, parameter) {
        ("cuMemHostRegister" | "cuMemHostRegister_v2", "p") => Untyped::Page,
        ("cuMemHostUnregister", "p") => Untyped::Object("registered"),
        ("cuMemFreeHost" | "cuMemHostGetFlags", "p") => Untyped::Object("pinned"),
        ("cuMemHostGetDevicePointer" | "cuMemHostGetDevicePointer_v2", "p") => {
            Untyped::Object("pinned")
        }
        ("cuMemRetainAllocationHandle", "addr") => Untyped::Object("reserved"),
        (_, "globalAddress") => Untyped::Object("device"),
        (_, "image" | "fatCubin" | "code") => Untyped::Image,
        ("cuLinkAddData" | "cuLinkAddData_v2", "data") => Untyped::Image,
        _ => Untyped::Host,
    }
}

/// Pointers that are null in a valid call.
pub(crate) fn is_null_by_default(parameter: &str) -> bool {
    [
        "ctxCreateParams",
        "dependencyData",
        "edgeData",
        "extra",
        "jitOptions",
        "jitOptionsValues",
        "libraryOptionValues",
        "libraryOptions",
        "nextResource",
        "optionValues",
        "options",
        "pResViewDesc",
        "paramsArray",
        "userData",
    ]
    .contains(&parameter)
}

/// Returns a valid integer for a parameter or member.
pub(crate) fn valid_integer(function: &str, parameter: &str) -> u64 {
    let name = parameter.to_ascii_lowercase();
    let is_mapping = [
        "cuMemAddress",
        "cuMemMap",
        "cuMemUnmap",
        "cuMemSetAccess",
        "cuMemCreate",
    ]
    .iter()
    .any(|prefix| function.starts_with(prefix));
    match name.as_str() {
        "size" if is_mapping => 2 << 20,
        "size" if function.starts_with("cuLinkAddData") => crate::images::VALID.len() as u64 + 1,
        "size" | "sizes" | "datasize" | "bytecount" | "bytesize" | "bytes" | "length" | "count"
            if function.starts_with("cuMemAdvise")
                || function.starts_with("cuMemPrefetchAsync")
                || function.starts_with("cuMemRange") =>
        {
            if name == "datasize" {
                4
            } else {
                4096
            }
        }
        "bytesize" => 4096,
        "flags"
            if [
                "cuMemAllocManaged",
                "cuUserObjectCreate",
                "cuGreenCtxStreamCreate",
            ]
            .contains(&function) =>
        {
            1
        }
        "flags" if function == "cuStreamAttachMemAsync" => 4,
        // `CU_STREAM_WAIT_VALUE_NOR` with 0 waits only for memory of which every bit is set.
        "flags" if function.contains("WaitValue") => 3,
        "griddimx" | "griddimy" | "griddimz" | "grid_width" | "grid_height" | "blockdimy"
        | "blockdimz" | "y" | "z" => 1,
        "blockdimx" | "x" => 32,
        "blocksize" => 64,
        "height" => 2,
        "boxdim" => 16,
        "elementstrides" => 1,
        "datasizes" => 4,
        "width" | "widthinbytes" | "n" => 16,
        "pitch" | "dstpitch" | "srcpitch" | "len" | "buffersize" | "size" | "sizes"
        | "bytecount" | "numbytes" | "bytes" | "globaldim" | "globalstrides" => 64,
        "elementsizebytes" => 4,
        "cudaversion" => 12000,
        "us" | "uc" | "ui" | "tensorrank" | "initialrefcount" => 1,
        "value" if !function.contains("Wait") => 1,
        _ if is_count(function, parameter) => 1,
        _ => 0,
    }
}

/// Returns `true` for a parameter that counts elements of another parameter.
pub(crate) fn is_count(function: &str, parameter: &str) -> bool {
    let counts_bytes = ["cuMemAdvise", "cuMemPrefetchAsync", "cuMemRangeGet"]
        .iter()
        .any(|prefix| function.starts_with(prefix));
    parameter == "count" && !counts_bytes
        || ["num", "nb"].iter().any(|prefix| {
            parameter
                .strip_prefix(prefix)
                .and_then(|rest| rest.chars().next())
                .is_some_and(char::is_uppercase)
        })
}

/// Returns `true` for a parameter whose other values may make the process wait forever.
pub(crate) fn is_fixed(function: &str, parameter: &str) -> bool {
    function.contains("WaitValue") && parameter == "value" || parameter.starts_with("waitValue")
}

/// The unknown or unusual flags of a function.
pub(crate) fn flags(function: &str) -> &'static [u64] {
    if function.contains("WaitValue") {
        &[0x13, 0x4000_0003, 0x8000_0003]
    } else {
        &[1, 2, 4, 8, 0x10, 0x40, 0x4000_0000, 0x8000_0000, u64::MAX]
    }
}

/// Returns `true` for enumerators that may make the process wait forever.
pub(crate) fn is_waiting(enumerator: &str) -> bool {
    enumerator.starts_with("CU_STREAM_MEM_OP_WAIT") || enumerator == "CU_GRAPH_COND_TYPE_WHILE"
}

/// Returns `true` for parameters and members that are integers in a row.
pub(crate) fn is_row(parameter: &str) -> bool {
    parameter == "sizes" || parameter == "dataSizes"
}

/// Returns the texts for a parameter: a valid one first, and then others.
pub(crate) fn texts(function: &str, parameter: &str) -> &'static [&'static str] {
    match parameter {
        "name" if function.contains("Managed") => &["managed_counter", "counter", "missing", ""],
        "name" if function.contains("Global") => &["counter", "managed_counter", "missing", ""],
        "name" if function.contains("TexRef") || function.contains("SurfRef") => {
            &["missing", "counter", ""]
        }
        "name" if function.contains("Link") => &["module", ""],
        "name" => &["empty", "fill", "counter", "missing", ""],
        "symbol" if function.starts_with("cuLibrary") => &["missing", ""],
        "symbol" => &["cuStreamQuery", "cuMemAlloc", "cuNothing", ""],
        "pciBusId" => &["0", "ffff:ff:ff.f", ""],
        _ => &["/nonexistent/curium", ""],
    }
}
