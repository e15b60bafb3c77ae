//! Each rank reports its place, and the bytes that it received from rank 0.
//!
//! `cargo build --example rendezvous`, then for example
//! `mpirun -n 4 target/debug/examples/rendezvous`.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use curium_nccl::{Exchange as _, Rendezvous};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rendezvous = Rendezvous::from_environment()?;
    let mut id = [0; 16];
    if rendezvous.rank() == 0 {
        getrandom::fill(&mut id)?;
    }
    rendezvous.broadcast(&mut id)?;
    println!(
        "rank {} of {}, local rank {}, meets at {}: {:032x}",
        rendezvous.rank(),
        rendezvous.world_size(),
        rendezvous.local_rank(),
        rendezvous.address(),
        u128::from_be_bytes(id)
    );
    Ok(())
}
