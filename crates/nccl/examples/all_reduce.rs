//! Measures all-reduce: the host cost of a call and the bandwidth, beside calls of NCCL's C functions in the same run.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/all_reduce`. An argument limits the size, as the power of two of
//! the number of bytes; the default is 30, for 1 GiB.
//!
//! In each round, both forms are measured one after the other, in alternating order, and their ratio is taken. The ranks meet before each
//! measurement. The median of the ratios is printed with its standard error, which is derived from the quartiles.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::time::{Duration, Instant};

use curium_driver::{Driver, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use curium_nccl::{Communicator, CommunicatorOptions, Exchange as _, Nccl, Reduction, Rendezvous};

/// The time for which operations run before the first measurement: clocks rise, and NCCL connects the ranks.
const WARM_UP: Duration = Duration::from_millis(500);

/// The rounds of a size that are left out.
const FIRST_ROUNDS: usize = 2;

/// The times of one call in seconds: on the host, and until it has completed.
#[derive(Clone, Copy)]
struct Times {
    host: f64,
    total: f64,
}

/// The communicator of this rank with its stream.
struct Rank {
    communicator: Communicator,
    stream: Stream,
    /// The memory with which the ranks meet.
    meeting: DeviceBuffer<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let largest: u32 = std::env::args().nth(1).map_or(Ok(30), |text| text.parse())?;
    let mut rendezvous = Rendezvous::from_environment()?;
    let context = Driver::load()?.device(rendezvous.local_rank())?.primary_context()?;
    // The C functions need a current context, and Curium's then switch none.
    context.set_current()?;
    let (stream, nccl) = (context.stream()?, Nccl::load()?);
    let communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, CommunicatorOptions::new())?;
    let mut rank = Rank { meeting: DeviceBuffer::zeroed(&stream, 1)?, communicator, stream };
    let is_first = rendezvous.rank() == 0;
    if is_first {
        println!("{nccl:?}, {} ranks, {}", rank.communicator.size(), context.device().name()?);
        println!("   bytes |  host ns: Curium,     C, ratio          |  GB/s: Curium,       C, ratio");
    }
    rank.warm_up()?;
    for power in (10..=largest).step_by(2) {
        let rounds = rank.measure(1 << power)?;
        if is_first {
            let of = |way: usize, field: fn(&Times) -> f64| median(rounds.iter().map(|round| field(&round[way])));
            let host = ratio(rounds.iter().map(|[curium, c]| curium.host / c.host));
            let bandwidth = ratio(rounds.iter().map(|[curium, c]| c.total / curium.total));
            let rate = |way| (1_u64 << power) as f64 / of(way, |times| times.total) / 1e9;
            let (ours, theirs) = (of(0, |times| times.host) * 1e9, of(1, |times| times.host) * 1e9);
            println!(
                "{:8} | {ours:16.0} {theirs:6.0} {host} | {:14.3} {:8.3} {bandwidth}",
                1_u64 << power,
                rate(0),
                rate(1)
            );
        }
    }
    Ok(rank.communicator.close()?)
}

impl Rank {
    /// Runs operations for a while. Every rank runs the same number.
    fn warm_up(&mut self) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let mut memory = DeviceBuffer::<u32>::zeroed(&self.stream, 1)?;
        loop {
            for _ in 0..100 {
                self.communicator.all_reduce_in_place(&self.stream, &mut memory, Reduction::Max)?;
            }
            // The ranks agree on the end.
            let is_over = DeviceBuffer::from_slice(&self.stream, &[u32::from(start.elapsed() > WARM_UP)])?;
            self.communicator.all_reduce(&self.stream, &is_over, &mut self.meeting, Reduction::Max)?;
            if self.meeting.to_vec()?[0] == 1 {
                return Ok(());
            }
        }
    }

    /// Returns the times of Curium and of the C function in each round.
    fn measure(&mut self, bytes: usize) -> Result<Vec<[Times; 2]>, Box<dyn Error>> {
        let count = bytes / size_of::<f32>();
        let calls = (1_usize << 31).checked_div(bytes).unwrap_or(1).clamp(5, 200);
        // Small operations are short and their times vary; large ones are long and steady.
        let rounds = if bytes <= 1 << 22 { 81 } else { 21 };
        let mut memory = DeviceBuffer::<f32>::zeroed(&self.stream, count)?;
        let address: *mut f32 = std::ptr::with_exposed_provenance_mut(memory.as_pointer().as_raw() as usize);
        let (raw, nccl) = (self.communicator.as_raw()?, self.communicator.library().clone());
        let mut measured = Vec::new();
        for round in 0..FIRST_ROUNDS + rounds {
            let mut curium = |rank: &mut Self| {
                rank.timed(calls, |communicator, stream| {
                    Ok(communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum)?)
                })
            };
            let c = |rank: &mut Self| rank.timed(calls, |_, stream| call_c(&nccl, raw, address, count, stream));
            let times = if round % 2 == 0 {
                let first = curium(self)?;
                [first, c(self)?]
            } else {
                let first = c(self)?;
                [curium(self)?, first]
            };
            measured.push(times);
        }
        Ok(measured.split_off(FIRST_ROUNDS))
    }

    /// Measures calls of every rank, which start together.
    fn timed(
        &mut self,
        calls: usize,
        mut call: impl FnMut(&mut Communicator, &Stream) -> Result<(), Box<dyn Error>>,
    ) -> Result<Times, Box<dyn Error>> {
        call(&mut self.communicator, &self.stream)?;
        self.communicator.all_reduce_in_place(&self.stream, &mut self.meeting, Reduction::Max)?;
        self.stream.synchronize()?;
        let start = Instant::now();
        (0..calls).try_for_each(|_| call(&mut self.communicator, &self.stream))?;
        let host = start.elapsed();
        self.stream.synchronize()?;
        let per_call = |time: Duration| time.as_secs_f64() / calls as f64;
        Ok(Times { host: per_call(host), total: per_call(start.elapsed()) })
    }
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

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let values = sorted(values);
    values[values.len() / 2]
}

/// Formats the median with its standard error: 0.93 interquartile ranges over the root of the number of values, for a normal distribution.
fn ratio(values: impl Iterator<Item = f64>) -> String {
    let values = sorted(values);
    let (count, quartile) = (values.len(), |part: usize| values[values.len() * part / 4]);
    let error = 0.93 * (quartile(3) - quartile(1)) / (count as f64).sqrt();
    format!("{:6.3} ± {error:5.3}", quartile(2))
}
