//! Measures the operations between ranks: the host cost of a call and the bandwidth, beside calls
//! of NCCL's C functions in the same run.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/collectives`. The
//! arguments are the operations to measure, without which all are, and the largest size, as the
//! power of two of the number of bytes; the default is 32, for 4 GiB.
//!
//! `--device sim` runs two ranks on simulated devices, without a launcher, a few times with each
//! size up to 4 KiB: this checks that every operation can be called.
//!
//! A size is that of the larger operand of a rank. `send_receive` sends to the next rank and
//! receives from the previous one, in a group; `replay` launches a graph of 10 all-reduces, and its
//! rate is that of all of them.
//!
//! In each round, both forms are measured one after the other, in alternating order, and their
//! ratio is taken. The ranks meet before each measurement. The median of the ratios is printed with
//! its standard error, which is derived from the quartiles.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod c;

use std::cell::RefCell;
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Driver, Graph, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, CommunicatorOptions, Nccl, Operation, Reduction, Rendezvous};
use curium_sim::{Config, Simulator};

/// The time for which operations run before the first measurement: clocks rise, and NCCL connects
/// the ranks.
const WARM_UP: Duration = Duration::from_millis(500);

/// The rounds of a size that are left out.
const FIRST_ROUNDS: usize = 2;

/// The rank that reduces, broadcasts, gathers and scatters.
const ROOT: usize = 0;

/// A measured operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    AllReduce,
    Reduce,
    Broadcast,
    AllGather,
    ReduceScatter,
    AllToAll,
    Gather,
    Scatter,
    SendReceive,
    Replay,
}

/// The number of all-reduces in the graph of [`Kind::Replay`], and the power of two of their
/// largest size: the host is idle beyond it.
const REPLAYED: usize = 10;
const MAX_REPLAYED: u32 = 28;

const KINDS: [(Kind, &str); 10] = [
    (Kind::AllReduce, "all_reduce"),
    (Kind::Reduce, "reduce"),
    (Kind::Broadcast, "broadcast"),
    (Kind::AllGather, "all_gather"),
    (Kind::ReduceScatter, "reduce_scatter"),
    (Kind::AllToAll, "all_to_all"),
    (Kind::Gather, "gather"),
    (Kind::Scatter, "scatter"),
    (Kind::SendReceive, "send_receive"),
    (Kind::Replay, "replay"),
];

/// The selection of the arguments.
struct Selection {
    is_simulated: bool,
    kinds: Vec<(Kind, &'static str)>,
    /// The power of two of the largest size.
    largest: u32,
}

/// The times of one call in seconds: on the host, and until it has completed.
#[derive(Clone, Copy)]
struct Times {
    host: f64,
    total: f64,
}

/// The operands of an operation: `source` is read, and `target` is written.
struct Operands {
    source: DeviceBuffer<f32>,
    target: DeviceBuffer<f32>,
}

/// The communicator of this rank with its stream.
struct Rank {
    nccl: Nccl,
    communicator: Communicator,
    stream: Stream,
    /// The memory with which the ranks meet.
    meeting: DeviceBuffer<u32>,
    is_simulated: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let selection = Selection::from_arguments()?;
    if selection.is_simulated {
        return simulated(&selection);
    }
    let mut rendezvous = Rendezvous::from_environment()?;
    let context = Driver::load()?
        .device(rendezvous.local_rank())?
        .primary_context()?;
    let nccl = Nccl::load()?;
    let communicator =
        Communicator::exchanged(&nccl, &context, &mut rendezvous, CommunicatorOptions::new())?;
    measure_all(communicator, &selection)
}

/// Measures on two simulated devices, with a thread for each.
fn simulated(selection: &Selection) -> Result<(), Box<dyn Error>> {
    let driver = Simulator::new(Config::new().with_devices(2))?.driver::<Driver>()?;
    let contexts = [
        driver.device(0)?.primary_context()?,
        driver.device(1)?.primary_context()?,
    ];
    let ranks = Communicator::all(&curium_sim_libraries::nccl(), &contexts)?;
    let measure =
        |communicator| measure_all(communicator, selection).map_err(|error| error.to_string());
    thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .into_iter()
            .map(|rank| scope.spawn(move || measure(rank)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a rank panicked")?)
    })?;
    Ok(())
}

/// Measures the operations of one rank. Rank 0 prints them.
fn measure_all(communicator: Communicator, selection: &Selection) -> Result<(), Box<dyn Error>> {
    let nccl = communicator.library().clone();
    let context = communicator.context().clone();
    // The C functions need a current context, and Curium's then switch none.
    context.set_current()?;
    let stream = context.stream()?;
    let is_simulated = selection.is_simulated;
    let mut rank = Rank {
        meeting: DeviceBuffer::zeroed(&stream, 1)?,
        nccl,
        communicator,
        stream,
        is_simulated,
    };
    let is_first = rank.communicator.rank() == 0;
    if is_first {
        println!(
            "{:?}, {} ranks, {}",
            rank.nccl,
            rank.communicator.size(),
            context.device().name()?
        );
        println!(
            "operation           bytes |  host ns: Curium,     C, ratio          |  GB/s: Curium,       C, ratio"
        );
    }
    rank.warm_up()?;
    for &(kind, name) in &selection.kinds {
        let largest = if kind == Kind::Replay {
            selection.largest.min(MAX_REPLAYED)
        } else {
            selection.largest
        };
        for power in (10..=largest).step_by(2) {
            let rounds = rank.measure(kind, 1 << power)?;
            if is_first {
                let operations = if kind == Kind::Replay {
                    REPLAYED as u64
                } else {
                    1
                };
                print(name, 1 << power, operations, &rounds);
            }
        }
    }
    Ok(rank.communicator.close()?)
}

impl Selection {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut selected = Self {
            is_simulated: false,
            kinds: Vec::new(),
            largest: 0,
        };
        let mut largest = None;
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            if argument == "--device" {
                selected.is_simulated = match arguments.next().as_deref() {
                    Some("gpu") => false,
                    Some("sim") => true,
                    _ => return Err("--device may be gpu or sim".into()),
                };
                continue;
            }
            match (
                KINDS.iter().find(|(_, name)| *name == argument),
                argument.parse(),
            ) {
                (Some(kind), _) => selected.kinds.push(*kind),
                (None, Ok(power)) => largest = Some(power),
                (None, Err(_)) => {
                    let names: Vec<_> = KINDS.iter().map(|(_, name)| *name).collect();
                    let expected = format!("expected a number or one of {}", names.join(", "));
                    return Err(format!("no operation `{argument}`; {expected}").into());
                }
            }
        }
        if selected.kinds.is_empty() {
            selected.kinds = KINDS.to_vec();
        }
        selected.largest = largest.unwrap_or(if selected.is_simulated { 12 } else { 32 });
        Ok(selected)
    }
}

fn print(name: &str, bytes: u64, operations: u64, rounds: &[[Times; 2]]) {
    let host = ratio(rounds.iter().map(|[curium, c]| curium.host / c.host));
    let bandwidth = ratio(rounds.iter().map(|[curium, c]| c.total / curium.total));
    let gigabytes = (bytes * operations) as f64 / 1e9;
    let ours = median(rounds.iter().map(|[curium, _]| curium.host)) * 1e9;
    let theirs = median(rounds.iter().map(|[_, c]| c.host)) * 1e9;
    let our_rate = gigabytes / median(rounds.iter().map(|[curium, _]| curium.total));
    let their_rate = gigabytes / median(rounds.iter().map(|[_, c]| c.total));
    println!(
        "{name:14} {bytes:10} | {ours:16.0} {theirs:6.0} {host} | {our_rate:14.3} {their_rate:8.3} {bandwidth}"
    );
}

impl Rank {
    /// Runs operations for a while. Every rank runs the same number.
    fn warm_up(&mut self) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let mut memory = DeviceBuffer::<u32>::zeroed(&self.stream, 1)?;
        loop {
            for _ in 0..100 {
                self.communicator
                    .all_reduce_in_place(&self.stream, &mut memory, Reduction::Max)?;
            }
            // The ranks agree on the end.
            let is_over =
                DeviceBuffer::from_slice(&self.stream, &[u32::from(start.elapsed() > WARM_UP)])?;
            self.communicator.all_reduce(
                &self.stream,
                &is_over,
                &mut self.meeting,
                Reduction::Max,
            )?;
            if self.meeting.to_vec()?[0] == 1 {
                return Ok(());
            }
        }
    }

    /// Returns the times of Curium and of the C function in each round.
    fn measure(&mut self, kind: Kind, bytes: usize) -> Result<Vec<[Times; 2]>, Box<dyn Error>> {
        let mut operands = Operands::new(kind, &self.stream, bytes, self.communicator.size())?;
        if kind == Kind::Replay {
            let graph = Graph::capture(self.stream.context(), |scope| {
                let Operands { target, .. } = &mut operands;
                (0..REPLAYED).try_for_each(|_| {
                    self.communicator
                        .all_reduce_in_place(scope, target, Reduction::Sum)
                })
            })?;
            let replay = RefCell::new(graph.instantiate()?);
            return self.in_turns(
                bytes * REPLAYED,
                |rank| Ok(replay.borrow_mut().launch(&rank.stream)?),
                |rank| c::launch(&replay.borrow(), &rank.stream),
            );
        }
        let number = self.communicator.rank();
        let size = self.communicator.size();
        let is_root = number == ROOT;
        let call = c::Call::new(&mut self.communicator, &self.stream, &operands, ROOT)?;
        let Operands { source, target } = &mut operands;
        // A dispatch within the loop would spread its code.
        macro_rules! in_turns {
            ($method:ident($($argument:expr),*), $c:ident) => {
                self.in_turns(
                    bytes,
                    |rank| Ok(rank.communicator.$method(&rank.stream, $($argument),*)?),
                    |_| call.$c(),
                )
            };
        }
        match kind {
            Kind::Replay => unreachable!("it was measured above"),
            Kind::AllReduce => in_turns!(all_reduce_in_place(target, Reduction::Sum), all_reduce),
            Kind::Reduce if is_root => {
                in_turns!(
                    enqueue(Operation::reduce_into(source, target, Reduction::Sum)),
                    reduce
                )
            }
            Kind::Reduce => in_turns!(
                enqueue(Operation::reduce(source, ROOT, Reduction::Sum)),
                reduce
            ),
            Kind::Broadcast if is_root => {
                in_turns!(enqueue(Operation::broadcast_from(target)), broadcast)
            }
            Kind::Broadcast => in_turns!(broadcast(target, ROOT), broadcast),
            Kind::AllGather => in_turns!(all_gather(source, target), all_gather),
            Kind::ReduceScatter => in_turns!(
                reduce_scatter(source, target, Reduction::Sum),
                reduce_scatter
            ),
            Kind::AllToAll => in_turns!(enqueue(Operation::all_to_all(source, target)), all_to_all),
            Kind::Gather if is_root => {
                in_turns!(enqueue(Operation::gather_into(source, target)), gather)
            }
            Kind::Gather => in_turns!(enqueue(Operation::gather(source, ROOT)), gather),
            Kind::Scatter if is_root => {
                in_turns!(enqueue(Operation::scatter_from(source, target)), scatter)
            }
            Kind::Scatter => in_turns!(enqueue(Operation::scatter(target, ROOT)), scatter),
            Kind::SendReceive => self.in_turns(
                bytes,
                |Self {
                     nccl,
                     communicator,
                     stream,
                     ..
                 }| {
                    Ok(nccl.group(|group| {
                        group.enqueue(
                            communicator,
                            stream,
                            Operation::send(source, (number + 1) % size),
                        )?;
                        group.enqueue(
                            communicator,
                            stream,
                            Operation::receive(target, (number + size - 1) % size),
                        )
                    })?)
                },
                |_| call.send_and_receive(),
            ),
        }
    }

    /// Measures calls that transfer this many bytes, in both forms.
    fn in_turns(
        &mut self,
        bytes: usize,
        mut curium: impl FnMut(&mut Self) -> Result<(), Box<dyn Error>>,
        c: impl Fn(&mut Self) -> Result<(), Box<dyn Error>>,
    ) -> Result<Vec<[Times; 2]>, Box<dyn Error>> {
        let calls = (1_usize << 31)
            .checked_div(bytes)
            .unwrap_or(1)
            .clamp(5, 200);
        // Small operations are short and their times vary; large ones are long and steady.
        let (calls, rounds) = match bytes {
            _ if self.is_simulated => (2, 3),
            0..=0x40_0000 => (calls, 161),
            _ => (calls, 21),
        };
        let mut measured = Vec::new();
        for round in 0..FIRST_ROUNDS + rounds {
            let times = if round % 2 == 0 {
                let first = self.timed(calls, &mut curium)?;
                [first, self.timed(calls, &c)?]
            } else {
                let first = self.timed(calls, &c)?;
                [self.timed(calls, &mut curium)?, first]
            };
            measured.push(times);
        }
        Ok(measured.split_off(FIRST_ROUNDS))
    }

    /// Measures calls of every rank, which start together, after one that is not measured. `call`
    /// is in one place only, so that the compiler inlines it: there is no function around a call in
    /// a user's loop either.
    fn timed(
        &mut self,
        calls: usize,
        mut call: impl FnMut(&mut Self) -> Result<(), Box<dyn Error>>,
    ) -> Result<Times, Box<dyn Error>> {
        let mut start = Instant::now();
        for number in 0..=calls {
            if number == 1 {
                start = self.meet()?;
            }
            call(self)?;
        }
        let host = start.elapsed();
        self.stream.synchronize()?;
        Ok(Times {
            host: host.as_secs_f64() / calls as f64,
            total: start.elapsed().as_secs_f64() / calls as f64,
        })
    }

    /// Waits for the other ranks, and returns the time.
    #[cold]
    fn meet(&mut self) -> Result<Instant, Box<dyn Error>> {
        self.communicator
            .all_reduce_in_place(&self.stream, &mut self.meeting, Reduction::Max)?;
        self.stream.synchronize()?;
        Ok(Instant::now())
    }
}

impl Operands {
    /// Allocates operands of which the larger one has this many bytes.
    fn new(kind: Kind, stream: &Stream, bytes: usize, size: usize) -> Result<Self, Box<dyn Error>> {
        let count = bytes / size_of::<f32>();
        let (source, target) = match kind {
            Kind::AllGather | Kind::Gather => (count / size, count),
            Kind::ReduceScatter | Kind::Scatter => (count, count / size),
            _ => (count, count),
        };
        Ok(Self {
            source: DeviceBuffer::zeroed(stream, source)?,
            target: DeviceBuffer::zeroed(stream, target)?,
        })
    }
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

/// Formats the median with its standard error: 0.93 interquartile ranges over the root of the
/// number of values, for a normal distribution.
fn ratio(values: impl Iterator<Item = f64>) -> String {
    let values = sorted(values);
    let count = values.len();
    let interquartile_range = values[count * 3 / 4] - values[count / 4];
    let error = 0.93 * interquartile_range / (count as f64).sqrt();
    format!("{:6.3} ± {error:5.3}", values[count / 2])
}
