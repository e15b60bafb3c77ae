//! CUPTI's activity records.

use std::ffi::CStr;
use std::sync::Arc;

use curium_driver::sys::cupti::{
    CUpti_Activity, CUpti_ActivityAPI, CUpti_ActivityKernel7, CUpti_ActivityKind,
    CUpti_ActivityMemcpy5, CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemory3,
    CUpti_ActivityMemoryKind, CUpti_ActivityMemoryOperationType, CUpti_ActivityMemset4,
    CUpti_ActivitySynchronization, CUpti_ActivitySynchronizationType,
};

use super::timeline::TraceItemKind;

/// A record, with times on CUPTI's clock in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Activity {
    pub(crate) kind: TraceItemKind,
    pub(crate) name: Name,
    pub(crate) location: Location,
    pub(crate) start: u64,
    /// 0 if the operation had not completed.
    pub(crate) end: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) graph_node: Option<u64>,
    /// The result of a call.
    pub(crate) code: Option<u32>,
}

/// The name of an activity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Name {
    Text(Arc<str>),
    Fixed(&'static str),
    /// A function of the driver or of the runtime, of which CUPTI returns the name.
    Callback {
        is_runtime: bool,
        id: u32,
    },
}

/// The row of an activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Location {
    Stream {
        /// `None` if the record has the context only.
        device: Option<u32>,
        context: u32,
        stream: u32,
    },
    Thread(u32),
}

/// The names of kernels. Records refer to names of modules, which may be unloaded.
#[derive(Default)]
pub(crate) struct Names(Vec<Arc<str>>);

impl Names {
    fn intern(&mut self, name: &CStr) -> Arc<str> {
        let name = name.to_string_lossy();
        match self.0.iter().rposition(|known| **known == *name) {
            Some(index) => Arc::clone(&self.0[index]),
            None => {
                let name: Arc<str> = name.into();
                self.0.push(Arc::clone(&name));
                name
            }
        }
    }
}

impl Activity {
    /// Reads a record. Returns `None` for kinds and operations that traces do not show.
    ///
    /// # Safety
    ///
    /// The record was written by CUPTI of CUDA 11.8 or newer, whose records begin with the fields
    /// of the types used here.
    pub(crate) unsafe fn read(record: *const CUpti_Activity, names: &mut Names) -> Option<Self> {
        // SAFETY: every record begins with its kind.
        match unsafe { (*record).kind } {
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
            | CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_KERNEL => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityKernel7>() };
                let name = if record.name.is_null() {
                    Name::Fixed("kernel")
                } else {
                    // SAFETY: the name is a C string, which lives until the buffer has been
                    // processed.
                    Name::Text(names.intern(unsafe { CStr::from_ptr(record.name) }))
                };
                Some(Self {
                    kind: TraceItemKind::Kernel,
                    name,
                    location: Location::Stream {
                        device: Some(record.deviceId),
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.start,
                    end: record.end,
                    bytes: None,
                    graph_node: node(record.graphNodeId),
                    code: None,
                })
            }
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityMemcpy5>() };
                Some(Self {
                    kind: TraceItemKind::Copy,
                    name: Name::Fixed(copy_name(record.srcKind, record.dstKind)),
                    location: Location::Stream {
                        device: Some(record.deviceId),
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.start,
                    end: record.end,
                    bytes: Some(record.bytes),
                    graph_node: node(record.graphNodeId),
                    code: None,
                })
            }
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2 => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityMemcpyPtoP4>() };
                Some(Self {
                    kind: TraceItemKind::Copy,
                    name: Name::Fixed("copy peer to peer"),
                    location: Location::Stream {
                        device: Some(record.deviceId),
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.start,
                    end: record.end,
                    bytes: Some(record.bytes),
                    graph_node: node(record.graphNodeId),
                    code: None,
                })
            }
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityMemset4>() };
                Some(Self {
                    kind: TraceItemKind::Memset,
                    name: Name::Fixed("memset"),
                    location: Location::Stream {
                        device: Some(record.deviceId),
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.start,
                    end: record.end,
                    bytes: Some(record.bytes),
                    graph_node: node(record.graphNodeId),
                    code: None,
                })
            }
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2 => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityMemory3>() };
                let kind = match record.memoryOperationType {
                    CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION => {
                        TraceItemKind::Allocation
                    }
                    CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE => {
                        TraceItemKind::Free
                    }
                    _ => return None,
                };
                Some(Self {
                    kind,
                    name: Name::Fixed(memory_name(kind, record.memoryKind)),
                    location: Location::Stream {
                        device: Some(record.deviceId),
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.timestamp,
                    end: record.timestamp,
                    bytes: Some(record.bytes),
                    graph_node: None,
                    code: None,
                })
            }
            CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivitySynchronization>() };
                let is_wait = record.type_
                    == CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
                is_wait.then_some(Self {
                    kind: TraceItemKind::Wait,
                    name: Name::Fixed("wait for event"),
                    location: Location::Stream {
                        device: None,
                        context: record.contextId,
                        stream: record.streamId,
                    },
                    start: record.start,
                    end: record.end,
                    bytes: None,
                    graph_node: None,
                    code: None,
                })
            }
            kind @ (CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER
            | CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME) => {
                // SAFETY: the kind determines the type.
                let record = unsafe { &*record.cast::<CUpti_ActivityAPI>() };
                Some(Self {
                    kind: TraceItemKind::Call,
                    name: Name::Callback {
                        is_runtime: kind == CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME,
                        id: record.cbid,
                    },
                    location: Location::Thread(record.threadId),
                    start: record.start,
                    end: record.end,
                    bytes: None,
                    graph_node: None,
                    code: Some(record.returnValue),
                })
            }
            _ => None,
        }
    }
}

/// Returns the identifier of the node, for operations of a graph.
fn node(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}

fn copy_name(source: u8, destination: u8) -> &'static str {
    let is_device = [source, destination].map(|kind| {
        matches!(
            CUpti_ActivityMemoryKind(kind.into()),
            CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
                | CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_ARRAY
                | CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC
        )
    });
    let is_managed = [source, destination].iter().any(|kind| {
        matches!(
            CUpti_ActivityMemoryKind((*kind).into()),
            CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED
                | CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC
        )
    });
    match is_device {
        _ if is_managed => "copy of managed memory",
        [false, true] => "copy host to device",
        [true, false] => "copy device to host",
        [true, true] => "copy device to device",
        [false, false] => "copy host to host",
    }
}

fn memory_name(kind: TraceItemKind, memory: CUpti_ActivityMemoryKind) -> &'static str {
    let is_free = kind == TraceItemKind::Free;
    match memory {
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PINNED if is_free => {
            "free pinned memory"
        }
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PINNED => "allocate pinned memory",
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED if is_free => {
            "free managed memory"
        }
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED => "allocate managed memory",
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE if is_free => {
            "free device memory"
        }
        CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE => "allocate device memory",
        _ if is_free => "free memory",
        _ => "allocate memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a record with space for the fields that newer versions append.
    fn newer<R>(record: R) -> Vec<u64> {
        let mut bytes = vec![u64::MAX; size_of::<R>() / 8 + 16];
        // SAFETY: the vector has space for the record, and the alignment of records.
        unsafe { bytes.as_mut_ptr().cast::<R>().write(record) };
        bytes
    }

    fn read(bytes: &[u64]) -> Option<Activity> {
        // SAFETY: the bytes are those of a record, with the fields of its type.
        unsafe { Activity::read(bytes.as_ptr().cast(), &mut Names::default()) }
    }

    #[test]
    fn kernel_in_a_graph_has_name_and_node() {
        let record = newer(CUpti_ActivityKernel7 {
            kind: CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            start: 1_000,
            end: 3_000,
            deviceId: 1,
            contextId: 2,
            streamId: 7,
            name: c"saxpy".as_ptr(),
            graphNodeId: 9,
            ..CUpti_ActivityKernel7::default()
        });
        let activity = Activity {
            kind: TraceItemKind::Kernel,
            name: Name::Text("saxpy".into()),
            location: Location::Stream {
                device: Some(1),
                context: 2,
                stream: 7,
            },
            start: 1_000,
            end: 3_000,
            bytes: None,
            graph_node: Some(9),
            code: None,
        };
        assert_eq!(read(&record), Some(activity));
    }

    /// The words of a copy from pageable memory, in the layout of `CUpti_ActivityMemcpy6`.
    #[test]
    fn copy_is_read_from_words() {
        let bytes: [u64; 12] = [
            0x0003_0101_0000_0001,
            4_096,
            1_700_000_000_000_000_100,
            1_700_000_000_000_002_100,
            0x0000_0001_0000_0000,
            0x0000_0015_0000_0007,
            0,
            0,
            0,
            0x0000_0000_0000_0000,
            0x0000_0000_0000_0001,
            0,
        ];
        let activity = read(&bytes).expect("a copy is shown");
        assert_eq!(activity.kind, TraceItemKind::Copy);
        assert_eq!(activity.name, Name::Fixed("copy host to device"));
        assert_eq!(activity.bytes, Some(4_096));
        assert_eq!(activity.end - activity.start, 2_000);
        assert_eq!(activity.graph_node, None);
        let location = Location::Stream {
            device: Some(0),
            context: 1,
            stream: 7,
        };
        assert_eq!(activity.location, location);
    }

    #[test]
    fn allocation_and_release_are_told_apart() {
        let mut record = CUpti_ActivityMemory3 {
            kind: CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2,
            memoryOperationType:
                CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
            memoryKind: CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
            bytes: 64,
            timestamp: 5,
            ..CUpti_ActivityMemory3::default()
        };
        let activity = read(&newer(record)).expect("an allocation is shown");
        assert_eq!(activity.kind, TraceItemKind::Allocation);
        assert_eq!(activity.name, Name::Fixed("allocate device memory"));
        record.memoryOperationType =
            CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
        let activity = read(&newer(record)).expect("a release is shown");
        assert_eq!(activity.kind, TraceItemKind::Free);
        assert_eq!(activity.bytes, Some(64));
    }

    #[test]
    fn only_stream_waits_are_shown() {
        let mut record = CUpti_ActivitySynchronization {
            kind: CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
            type_: CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
            start: 1,
            end: 2,
            ..CUpti_ActivitySynchronization::default()
        };
        assert_eq!(
            read(&newer(record)).map(|activity| activity.kind),
            Some(TraceItemKind::Wait)
        );
        record.type_ = CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        assert_eq!(read(&newer(record)), None);
        let unknown = newer(CUpti_Activity {
            kind: CUpti_ActivityKind(999),
        });
        assert_eq!(read(&unknown), None);
    }
}
