//! NCCL for simulated devices, through its C functions.

use std::ffi::c_void;
use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::sys::CU_STREAM_PER_THREAD;
use curium_driver::{Context, Driver, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::nccl::{
    Api, cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t,
    ncclScalarResidence_t, ncclUniqueId,
};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Calls a function of NCCL, and returns its code.
macro_rules! nccl {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let function = api().$function.expect("not simulated");
        // SAFETY: the tests pass live objects, and places for results.
        unsafe { function($($argument),*) }
    }};
}

/// Calls a function of NCCL that succeeds.
macro_rules! nccl_ok {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(nccl!($function($($argument),*)), ncclResult_t::ncclSuccess)
    };
}

fn api() -> &'static Api {
    static LIBRARY: std::sync::OnceLock<curium_sys::nccl::Nccl> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(curium_sim_libraries::nccl).api()
}

/// Two devices with a rank on each.
struct Pair {
    contexts: [Context; 2],
    streams: [Stream; 2],
    ranks: [ncclComm_t; 2],
}

impl Pair {
    fn new() -> TestResult<Self> {
        let simulator = Simulator::new(Config::new().with_devices(2))?;
        let driver = simulator.driver::<Driver>()?;
        let contexts = [
            driver.device(0)?.primary_context()?,
            driver.device(1)?.primary_context()?,
        ];
        let streams = [contexts[0].stream()?, contexts[1].stream()?];
        let mut ranks = [ptr::null_mut(); 2];
        let created =
            contexts[0].entered(|_| Ok(nccl!(ncclCommInitAll(ranks.as_mut_ptr(), 2, ptr::null()))));
        assert_eq!(created?, ncclResult_t::ncclSuccess);
        Ok(Self {
            contexts,
            streams,
            ranks,
        })
    }

    fn buffers(&self, value: f32) -> TestResult<[DeviceBuffer<f32>; 2]> {
        let elements = [value, 10.0 * value];
        Ok([
            DeviceBuffer::from_slice(&self.streams[0], &elements)?,
            DeviceBuffer::from_slice(&self.streams[1], &elements)?,
        ])
    }

    /// Sums the buffers of the two ranks in a group, with this operator and stream.
    fn sum(
        &self,
        memory: &[DeviceBuffer<f32>; 2],
        operators: [ncclRedOp_t; 2],
        streams: [cudaStream_t; 2],
    ) {
        nccl_ok!(ncclGroupStart());
        for rank in 0..2 {
            let address = address(&memory[rank]);
            let element = ncclDataType_t::ncclFloat32;
            nccl_ok!(ncclAllReduce(
                address,
                address,
                2,
                element,
                operators[rank],
                self.ranks[rank],
                streams[rank]
            ));
        }
        nccl_ok!(ncclGroupEnd());
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for rank in self.ranks {
            nccl!(ncclCommDestroy(rank));
        }
    }
}

fn address(memory: &DeviceBuffer<f32>) -> *mut c_void {
    ptr::without_provenance_mut(memory.as_pointer().as_raw() as usize)
}

const SUMS: [ncclRedOp_t; 2] = [ncclRedOp_t::ncclSum; 2];

#[test]
fn default_stream_has_a_device() -> TestResult {
    let per_thread: cudaStream_t = CU_STREAM_PER_THREAD.cast();
    for stream in [ptr::null_mut(), per_thread] {
        let pair = Pair::new()?;
        let memory = pair.buffers(1.0)?;
        for stream in &pair.streams {
            stream.synchronize()?;
        }
        // No context is current.
        pair.sum(&memory, SUMS, [stream; 2]);
        for context in &pair.contexts {
            context.synchronize()?;
        }
        for memory in memory {
            assert_eq!(memory.to_vec()?, [2.0, 20.0]);
        }
    }
    Ok(())
}

#[test]
fn one_thread_splits_ranks() -> TestResult {
    let pair = Pair::new()?;
    let mut parts = [ptr::null_mut(); 2];
    nccl_ok!(ncclGroupStart());
    for (rank, part) in parts.iter_mut().enumerate() {
        // The keys reverse the order.
        nccl_ok!(ncclCommSplit(
            pair.ranks[rank],
            3,
            -(rank as i32),
            part,
            ptr::null_mut()
        ));
        assert!(
            !part.is_null(),
            "the handle is known before the end of the group"
        );
    }
    nccl_ok!(ncclGroupEnd());
    for (index, part) in parts.into_iter().enumerate() {
        let mut rank = -1;
        let mut size = -1;
        nccl_ok!(ncclCommUserRank(part, &raw mut rank));
        nccl_ok!(ncclCommCount(part, &raw mut size));
        assert_eq!((rank, size), (1 - index as i32, 2));
        nccl_ok!(ncclCommDestroy(part));
    }
    Ok(())
}

/// A factor in device memory is read when the operation runs.
#[test]
fn device_factor_is_read_late() -> TestResult {
    let pair = Pair::new()?;
    let memory = pair.buffers(1.0)?;
    let factors = pair.buffers(3.0)?;
    let mut operators = SUMS;
    for rank in 0..2 {
        nccl_ok!(ncclRedOpCreatePreMulSum(
            &raw mut operators[rank],
            address(&factors[rank]),
            ncclDataType_t::ncclFloat32,
            ncclScalarResidence_t::ncclScalarDevice,
            pair.ranks[rank],
        ));
    }
    let mut factors = factors;
    factors[1].copy_from_slice(&[5.0, 0.0])?;
    let streams = [0, 1].map(|rank: usize| pair.streams[rank].as_raw().cast());
    pair.sum(&memory, operators, streams);
    for (rank, memory) in memory.into_iter().enumerate() {
        assert_eq!(memory.to_vec()?, [8.0, 80.0]);
        nccl_ok!(ncclRedOpDestroy(operators[rank], pair.ranks[rank]));
    }
    Ok(())
}

#[test]
fn ranks_meet() -> TestResult {
    let pair = Pair::new()?;
    let mut identifiers: [ncclUniqueId; 2] = [ncclUniqueId { internal: [0; 128] }; 2];
    for identifier in &mut identifiers {
        nccl_ok!(ncclGetUniqueId(identifier));
    }
    let mut ranks = [ptr::null_mut(); 2];
    nccl_ok!(ncclGroupStart());
    for (rank, place) in ranks.iter_mut().enumerate() {
        let ids = identifiers.as_mut_ptr();
        let created = pair.contexts[rank].entered(|_| {
            Ok(nccl!(ncclCommInitRankScalable(
                place,
                2,
                rank as i32,
                2,
                ids,
                ptr::null_mut()
            )))
        });
        assert_eq!(created?, ncclResult_t::ncclSuccess);
    }
    nccl_ok!(ncclGroupEnd());
    for rank in ranks {
        nccl_ok!(ncclCommDestroy(rank));
    }
    let none = nccl!(ncclCommInitRankScalable(
        &raw mut ranks[0],
        2,
        0,
        0,
        ptr::null_mut(),
        ptr::null_mut()
    ));
    assert_eq!(none, ncclResult_t::ncclInvalidArgument);
    Ok(())
}

#[test]
fn free_needs_no_context() -> TestResult {
    let pair = Pair::new()?;
    let mut memory = ptr::null_mut();
    let allocated = pair.contexts[1].entered(|_| Ok(nccl!(ncclMemAlloc(&raw mut memory, 64))));
    assert_eq!(allocated?, ncclResult_t::ncclSuccess);
    nccl_ok!(ncclMemFree(memory));
    assert_eq!(
        nccl!(ncclMemFree(memory)),
        ncclResult_t::ncclUnhandledCudaError
    );
    Ok(())
}
