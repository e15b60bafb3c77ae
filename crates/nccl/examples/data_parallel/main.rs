//! Data-parallel training: each rank computes the gradients of its part of a batch, and the ranks
//! reduce them, in a graph.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/data_parallel`. With
//! `--device sim`, each process has a simulator, and the ranks exchange data as on GPUs. Without a
//! launcher, the ranks are two threads with simulated devices. The losses are those of one rank,
//! but for the rounding of the sums. If a rank dies, the others end within the timeout, with an
//! error that reports it.
//!
//! Options: `--device sim`; `--steps` for the number of steps, by default 20; `--timeout` in
//! seconds, by default 60.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod train;

use std::thread;
use std::time::Duration;

use curium_blas::CuBlas;
use curium_driver::Driver;
use curium_nccl::{Communicator, CommunicatorOptions, Nccl, Rendezvous, UniqueId};
use curium_sim::{Config, Simulator};

use self::train::{Result, train};

fn main() -> Result<()> {
    let steps = number("--steps")?.unwrap_or(20);
    let timeout = number("--timeout")?.unwrap_or(60);
    let timeout = Duration::from_secs(timeout);
    let options = CommunicatorOptions::new().with_timeout(timeout);
    match Rendezvous::from_environment() {
        Ok(rendezvous) => launched(
            rendezvous.with_timeout(timeout),
            usize::try_from(steps)?,
            options,
        ),
        Err(curium_nccl::RendezvousError::NoLauncher) => {
            simulated(2, usize::try_from(steps)?, options)
        }
        Err(error) => Err(error.into()),
    }
}

/// Trains as the rank of this process.
fn launched(mut rendezvous: Rendezvous, steps: usize, options: CommunicatorOptions) -> Result<()> {
    let (driver, nccl, cublas) = match value("--device").as_deref() {
        None => (Driver::load()?, Nccl::load()?, CuBlas::load()?),
        Some("sim") => {
            let config = Config::new().with_devices(u32::try_from(rendezvous.world_size())?);
            (
                Simulator::new(config)?.driver()?,
                curium_sim_libraries::nccl(),
                curium_sim_libraries::cublas(),
            )
        }
        Some(other) => return Err(format!("--device {other}: expected sim").into()),
    };
    let context = driver.device(rendezvous.local_rank())?.primary_context()?;
    let mut communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, options)?;
    let losses = train(&cublas, &mut communicator, steps)?;
    if rendezvous.rank() == 0 {
        print(rendezvous.world_size(), &losses);
    }
    Ok(communicator.close()?)
}

/// Trains with one thread for each rank.
fn simulated(ranks: usize, steps: usize, options: CommunicatorOptions) -> Result<()> {
    let config = Config::new().with_devices(u32::try_from(ranks)?);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    let nccl = curium_sim_libraries::nccl();
    let id = UniqueId::new(&nccl)?;
    let rank = &|rank: usize| {
        let context = driver.device(rank)?.primary_context()?;
        let mut communicator =
            Communicator::with_options(&nccl, &context, id, rank, ranks, options)?;
        train(&curium_sim_libraries::cublas(), &mut communicator, steps)
    };
    let losses: Vec<Result<Vec<f32>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|number| scope.spawn(move || rank(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a rank panicked".into()))
            })
            .collect()
    });
    let losses = losses.into_iter().collect::<Result<Vec<_>>>()?;
    print(ranks, &losses[0]);
    Ok(())
}

fn print(ranks: usize, losses: &[f32]) {
    println!("{ranks} ranks");
    for (step, loss) in losses.iter().enumerate() {
        println!("step {step:2}: loss {loss:.6}");
    }
}

/// Returns the argument after this option.
fn value(option: &str) -> Option<String> {
    std::env::args()
        .skip_while(|argument| argument != option)
        .nth(1)
}

fn number(option: &str) -> Result<Option<u64>> {
    let Some(text) = value(option) else {
        return Ok(None);
    };
    let number = text
        .parse()
        .map_err(|_| format!("{option} {text}: not a number"))?;
    Ok(Some(number))
}
