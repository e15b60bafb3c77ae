//! Enqueues all-reduces as a C program does or through Curium, with a driver and a library whose
//! functions do nothing: `cargo xtask cost` counts the instructions of both.
//!
//! Usage: `collective_cost MODE COUNT`. A mode is the name of the function that is counted.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::hint::black_box;

use curium_driver::AsRawStream as _;
use curium_driver::sys::FunctionTable as _;
use curium_driver::{Context, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::{Api, cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use curium_nccl::{Communicator, Nccl, Operation, Reduction, Result};
use curium_tests::{assume_current, idle_driver_that_assumes_a_context};

const COUNT: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else {
        return Err("usage: collective_cost MODE COUNT".into());
    };
    let driver = idle_driver_that_assumes_a_context();
    let count = count.parse()?;
    let context = driver.device(0)?.primary_context()?;
    // The C functions need a current context, and Curium's then switch none.
    context.set_current()?;
    assume_current(&context);
    let stream = context.stream()?;
    let mut communicator = idle_communicator(&context)?;
    let mut memory = DeviceBuffer::<f32>::zeroed(&stream, COUNT)?;
    match mode.as_str() {
        "curium_all_reduces" => Ok(curium_all_reduces(
            &mut communicator,
            &stream,
            &mut memory,
            count,
        )?),
        "curium_groups" => Ok(curium_groups(
            &mut communicator,
            &stream,
            &mut memory,
            count,
        )?),
        "curium_exchanges" => Ok(curium_exchanges(
            &mut communicator,
            &stream,
            &mut memory,
            count,
        )?),
        "c_all_reduces" | "c_groups" | "c_exchanges" => {
            let raw = communicator.as_raw()?;
            let api = communicator.library().api();
            let address = std::ptr::without_provenance_mut(memory.as_pointer().as_raw() as usize);
            let counted = match mode.as_str() {
                "c_groups" => c_groups,
                "c_exchanges" => c_exchanges,
                _ => c_all_reduces,
            };
            counted(api, address, raw, stream.as_raw().cast(), count)
                .map_err(|code| format!("{code:?}").into())
        }
        other => Err(format!("there is no mode {other}").into()),
    }
}

/// Returns a communicator of a library whose functions do nothing.
fn idle_communicator(context: &Context) -> Result<Communicator> {
    let mut api = Api::EMPTY;
    api.ncclGetVersion = Some(version);
    api.ncclCommUserRank = Some(zero);
    api.ncclCommCount = Some(one);
    api.ncclAllReduce = Some(reduce_nothing);
    api.ncclSend = Some(transfer_nothing::<*const c_void>);
    api.ncclRecv = Some(transfer_nothing::<*mut c_void>);
    api.ncclGroupStart = Some(group_nothing);
    api.ncclGroupEnd = Some(group_nothing);
    // SAFETY: the functions have the types of NCCL's, and live as long as the program.
    let library = unsafe { Nccl::from_api(api) }?;
    // SAFETY: the functions of the library do not use the communicator.
    unsafe { Communicator::borrow_raw(&library, context, std::ptr::dangling_mut()) }
}

/// Enqueues as a C program does: the call, and a check of its result.
#[inline(never)]
fn c_all_reduces(
    api: &Api,
    memory: *mut c_void,
    communicator: ncclComm_t,
    stream: cudaStream_t,
    count: u64,
) -> Result<(), ncclResult_t> {
    for _ in 0..count {
        c_all_reduce(
            black_box(api),
            black_box(memory),
            black_box(communicator),
            black_box(stream),
        )?;
    }
    Ok(())
}

/// Enqueues an operation in a group as a C program does.
#[inline(never)]
fn c_groups(
    api: &Api,
    memory: *mut c_void,
    communicator: ncclComm_t,
    stream: cudaStream_t,
    count: u64,
) -> Result<(), ncclResult_t> {
    for _ in 0..count {
        let api = black_box(api);
        // SAFETY: `idle_communicator` has put functions there.
        let start = unsafe { api.ncclGroupStart.unwrap_unchecked() };
        // SAFETY: `idle_communicator` has put functions there.
        let end = unsafe { api.ncclGroupEnd.unwrap_unchecked() };
        // SAFETY: the function does nothing.
        checked(unsafe { start() })?;
        c_all_reduce(
            api,
            black_box(memory),
            black_box(communicator),
            black_box(stream),
        )?;
        // SAFETY: the function does nothing.
        checked(unsafe { end() })?;
    }
    Ok(())
}

/// Enqueues a send and a receive in a group as a C program does.
#[inline(never)]
fn c_exchanges(
    api: &Api,
    memory: *mut c_void,
    communicator: ncclComm_t,
    stream: cudaStream_t,
    count: u64,
) -> Result<(), ncclResult_t> {
    let element = ncclDataType_t::ncclFloat32;
    for _ in 0..count {
        let api = black_box(api);
        let memory = black_box(memory);
        let communicator = black_box(communicator);
        let stream = black_box(stream);
        // SAFETY: `idle_communicator` has put functions there.
        let start = unsafe { api.ncclGroupStart.unwrap_unchecked() };
        // SAFETY: `idle_communicator` has put functions there.
        let send = unsafe { api.ncclSend.unwrap_unchecked() };
        // SAFETY: `idle_communicator` has put functions there.
        let receive = unsafe { api.ncclRecv.unwrap_unchecked() };
        // SAFETY: `idle_communicator` has put functions there.
        let end = unsafe { api.ncclGroupEnd.unwrap_unchecked() };
        // SAFETY: the function does nothing.
        checked(unsafe { start() })?;
        // SAFETY: the function does nothing.
        checked(unsafe { send(memory, COUNT, element, 0, communicator, stream) })?;
        // SAFETY: the function does nothing.
        checked(unsafe { receive(memory, COUNT, element, 0, communicator, stream) })?;
        // SAFETY: the function does nothing.
        checked(unsafe { end() })?;
    }
    Ok(())
}

#[inline(always)]
fn c_all_reduce(
    api: &Api,
    memory: *mut c_void,
    communicator: ncclComm_t,
    stream: cudaStream_t,
) -> Result<(), ncclResult_t> {
    // SAFETY: `idle_communicator` has put a function there.
    let all_reduce = unsafe { api.ncclAllReduce.unwrap_unchecked() };
    let element = ncclDataType_t::ncclFloat32;
    let operator = ncclRedOp_t::ncclSum;
    // SAFETY: the function does nothing.
    checked(unsafe {
        all_reduce(
            memory,
            memory,
            COUNT,
            element,
            operator,
            communicator,
            stream,
        )
    })
}

#[inline(always)]
fn checked(code: ncclResult_t) -> Result<(), ncclResult_t> {
    if code == ncclResult_t::ncclSuccess {
        Ok(())
    } else {
        Err(code)
    }
}

#[inline(never)]
fn curium_all_reduces(
    communicator: &mut Communicator,
    stream: &Stream,
    memory: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    for _ in 0..count {
        let communicator = black_box(&mut *communicator);
        let stream = black_box(stream);
        communicator.all_reduce_in_place(stream, black_box(&mut *memory), Reduction::Sum)?;
    }
    Ok(())
}

#[inline(never)]
fn curium_groups(
    communicator: &mut Communicator,
    stream: &Stream,
    memory: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    let library = communicator.library().clone();
    for _ in 0..count {
        let communicator = black_box(&mut *communicator);
        let memory = black_box(&mut *memory);
        black_box(&library).group(|group| {
            group.enqueue(
                communicator,
                black_box(stream),
                Operation::all_reduce_in_place(memory, Reduction::Sum),
            )
        })?;
    }
    Ok(())
}

#[inline(never)]
fn curium_exchanges(
    communicator: &mut Communicator,
    stream: &Stream,
    memory: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    let library = communicator.library().clone();
    let sent = DeviceBuffer::<f32>::zeroed(stream, COUNT)?;
    for _ in 0..count {
        let communicator = black_box(&mut *communicator);
        let memory = black_box(&mut *memory);
        black_box(&library).group(|group| {
            group.enqueue(
                communicator,
                black_box(stream),
                Operation::send(black_box(&sent), 0),
            )?;
            group.enqueue(
                communicator,
                black_box(stream),
                Operation::receive(memory, 0),
            )
        })?;
    }
    Ok(())
}

unsafe extern "C" fn version(version: *mut c_int) -> ncclResult_t {
    // SAFETY: the library passes a place for the version.
    unsafe { version.write(23203) };
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn zero(_: ncclComm_t, number: *mut c_int) -> ncclResult_t {
    // SAFETY: the library passes a place for the number.
    unsafe { number.write(0) };
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn one(_: ncclComm_t, number: *mut c_int) -> ncclResult_t {
    // SAFETY: the library passes a place for the number.
    unsafe { number.write(1) };
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn reduce_nothing(
    _: *const c_void,
    _: *mut c_void,
    _: usize,
    _: ncclDataType_t,
    _: ncclRedOp_t,
    _: ncclComm_t,
    _: cudaStream_t,
) -> ncclResult_t {
    ncclResult_t::ncclSuccess
}

/// The send for constant pointers, and the receive for others.
unsafe extern "C" fn transfer_nothing<P>(
    _: P,
    _: usize,
    _: ncclDataType_t,
    _: c_int,
    _: ncclComm_t,
    _: cudaStream_t,
) -> ncclResult_t {
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn group_nothing() -> ncclResult_t {
    ncclResult_t::ncclSuccess
}
