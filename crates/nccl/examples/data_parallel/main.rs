//! Data-parallel training: each rank computes the gradients of its part of a batch, and the ranks reduce them.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/data_parallel`. Without a launcher, the ranks are two threads
//! with simulated devices. The losses are those of one rank, but for the rounding of the sums. A rank that dies is noticed within the
//! timeout.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod train;

use std::thread;
use std::time::Duration;

use curium_blas::CuBlas;
use curium_driver::Driver;
use curium_nccl::{Communicator, CommunicatorOptions, Exchange as _, Nccl, Rendezvous, UniqueId};
use curium_sim::{Config, Simulator};

use self::train::{Result, train};

const STEPS: usize = 20;

fn main() -> Result<()> {
    match Rendezvous::from_environment() {
        Ok(rendezvous) => on_gpu(rendezvous),
        Err(curium_nccl::Error::NoLauncher) => simulated(2),
        Err(error) => Err(error.into()),
    }
}

/// Trains as the rank of this process.
fn on_gpu(mut rendezvous: Rendezvous) -> Result<()> {
    let context = Driver::load()?.device(rendezvous.local_rank())?.primary_context()?;
    let (nccl, options) = (Nccl::load()?, CommunicatorOptions::new().with_timeout(Duration::from_secs(60)));
    let mut communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, options)?;
    let losses = train(&CuBlas::load()?, &mut communicator, STEPS)?;
    if rendezvous.rank() == 0 {
        print(rendezvous.world_size(), &losses);
    }
    Ok(communicator.close()?)
}

/// Trains with one thread for each rank.
fn simulated(ranks: usize) -> Result<()> {
    let config = Config::new().with_devices(u32::try_from(ranks)?);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    let nccl = curium_sim_libraries::nccl();
    let id = UniqueId::new(&nccl)?;
    let rank = &|rank: usize| {
        let context = driver.device(rank)?.primary_context()?;
        let mut communicator = Communicator::new(&nccl, &context, id, rank, ranks)?;
        train(&curium_sim_libraries::cublas(), &mut communicator, STEPS)
    };
    let losses: Vec<Result<Vec<f32>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|number| scope.spawn(move || rank(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a rank panicked".into()))).collect()
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
