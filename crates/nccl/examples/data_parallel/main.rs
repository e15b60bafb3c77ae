//! Data-parallel training: each rank computes the gradients of its part of a batch, and the ranks reduce them, in a graph.
//!
//! One process per GPU: `curium run --ranks 2 -- target/release/examples/data_parallel`. With `--device sim`, each process has a
//! simulator, and the ranks exchange data as on GPUs. Without a launcher, the ranks are two threads with simulated devices. The
//! losses are those of one rank, but for the rounding of the sums. If a rank dies, the others end within the timeout, with an error
//! that says so.

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
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let is_simulated = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--device", "sim"] => true,
        _ => return Err("usage: data_parallel [--device sim]".into()),
    };
    match Rendezvous::from_environment() {
        Ok(rendezvous) => launched(rendezvous, is_simulated),
        Err(curium_nccl::Error::NoLauncher) => simulated(2),
        Err(error) => Err(error.into()),
    }
}

/// Trains as the rank of this process.
fn launched(mut rendezvous: Rendezvous, is_simulated: bool) -> Result<()> {
    let (driver, nccl, cublas) = if is_simulated {
        let config = Config::new().with_devices(u32::try_from(rendezvous.world_size())?);
        (Simulator::new(config)?.driver()?, curium_sim_libraries::nccl(), curium_sim_libraries::cublas())
    } else {
        (Driver::load()?, Nccl::load()?, CuBlas::load()?)
    };
    let context = driver.device(rendezvous.local_rank())?.primary_context()?;
    let options = CommunicatorOptions::new().with_timeout(Duration::from_secs(60));
    let mut communicator = Communicator::exchanged(&nccl, &context, &mut rendezvous, options)?;
    let losses = train(&cublas, &mut communicator, STEPS)?;
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
