//! Measures all-reduce: the host cost of a call and the bandwidth, beside calls of NCCL's C functions in the same run.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/all_reduce`. An argument limits the size, as the power of two of
//! the number of bytes; the default is 30, for 1 GiB.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::time::Instant;

use curium_driver::{Driver, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use curium_nccl::{Communicator, CommunicatorOptions, Exchange as _, Nccl, Reduction, Rendezvous};

/// The number of rounds, of which the median counts. Each has both forms, one after the other.
const ROUNDS: usize = 7;

/// The times of one call in seconds: on the host, and until it has completed.
#[derive(Clone, Copy)]
struct Times {
    host: f64,
    total: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let largest: u32 = std::env::args().nth(1).map_or(Ok(30), |text| text.parse())?;
    let mut rendezvous = Rendezvous::from_environment()?;
    let context = Driver::load()?.device(rendezvous.local_rank())?.primary_context()?;
    // The C functions need a current context, and Curium's then switch none.
    context.set_current()?;
    let (stream, nccl) = (context.stream()?, Nccl::load()?);
    let mut communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, CommunicatorOptions::new())?;
    let is_first = rendezvous.rank() == 0;
    if is_first {
        println!("{nccl:?}, {} ranks, {}", communicator.size(), context.device().name()?);
        println!("   bytes | host ns: Curium,   C, ratio | GB/s: Curium,    C, ratio");
    }
    for power in (10..=largest).step_by(2) {
        let [curium, c] = measure(&mut communicator, &stream, 1 << power)?;
        let bandwidth = |times: Times| (1_u64 << power) as f64 / times.total / 1e9;
        if is_first {
            let host = format!("{:15.0} {:5.0} {:6.3}", curium.host * 1e9, c.host * 1e9, curium.host / c.host);
            let (ours, theirs) = (bandwidth(curium), bandwidth(c));
            println!("{:8} | {host} | {ours:12.3} {theirs:7.3} {:6.3}", 1_u64 << power, ours / theirs);
        }
    }
    communicator.close()?;
    Ok(())
}

/// Returns the medians of Curium and of the C function.
fn measure(communicator: &mut Communicator, stream: &Stream, bytes: usize) -> Result<[Times; 2], Box<dyn Error>> {
    let count = bytes / size_of::<f32>();
    let calls = (1_usize << 31).checked_div(bytes).unwrap_or(1).clamp(10, 200);
    let mut memory = DeviceBuffer::<f32>::zeroed(stream, count)?;
    let address: *mut f32 = std::ptr::with_exposed_provenance_mut(memory.as_pointer().as_raw() as usize);
    let (raw, nccl) = (communicator.as_raw()?, communicator.library().clone());
    let (mut curium, mut c) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        curium.push(timed(stream, calls, || {
            Ok(communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum)?)
        })?);
        c.push(timed(stream, calls, || call_c(&nccl, raw, address, count, stream))?);
    }
    // The first round connects the ranks.
    Ok([median(&mut curium[1..]), median(&mut c[1..])])
}

fn timed(
    stream: &Stream,
    calls: usize,
    mut call: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Times, Box<dyn Error>> {
    call()?;
    stream.synchronize()?;
    let start = Instant::now();
    (0..calls).try_for_each(|_| call())?;
    let host = start.elapsed();
    stream.synchronize()?;
    let per_call = |time: std::time::Duration| time.as_secs_f64() / calls as f64;
    Ok(Times { host: per_call(host), total: per_call(start.elapsed()) })
}

fn call_c(
    nccl: &Nccl,
    raw: ncclComm_t,
    address: *mut f32,
    count: usize,
    stream: &Stream,
) -> Result<(), Box<dyn Error>> {
    let all_reduce = nccl.api().ncclAllReduce.ok_or("NCCL lacks ncclAllReduce")?;
    let (address, stream) = (address.cast(), stream.as_raw().cast());
    // SAFETY: the memory has `count` elements and lives until the stream is synchronized, the communicator is live, and its context is
    // current.
    let code =
        unsafe { all_reduce(address, address, count, ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum, raw, stream) };
    if code == ncclResult_t::ncclSuccess { Ok(()) } else { Err(format!("{code:?}").into()) }
}

/// Returns the medians of the host times and of the total times.
fn median(times: &mut [Times]) -> Times {
    let middle = times.len() / 2;
    let mut of = |field: fn(&Times) -> f64| {
        times.sort_by(|first, second| field(first).total_cmp(&field(second)));
        field(&times[middle])
    };
    Times { host: of(|times| times.host), total: of(|times| times.total) }
}
