//! The rendezvous of a multi-GPU job.
//!
//! A launcher (`torchrun`, `mpirun`, `srun`, Kubernetes or `curium run`) starts one process per GPU, a *rank*. [`Rendezvous`] reads the
//! rank from the launcher's environment variables, and [`Exchange::broadcast`] sends a few bytes from rank 0 to all ranks: NCCL's unique
//! id, for example.
//!
//! ```
//! use curium_nccl::{Exchange as _, Rendezvous};
//!
//! # let variables = |name: &str| match name { "RANK" => Some("0".into()), "WORLD_SIZE" => Some("1".into()), _ => None };
//! # #[expect(unused_variables)] fn from_environment() -> Result<Rendezvous, curium_nccl::Error> {
//! let mut rendezvous = Rendezvous::from_environment()?;
//! # Ok(rendezvous) }
//! # let mut rendezvous = Rendezvous::from_variables(variables)?;
//! let mut id = [0; 128];
//! if rendezvous.rank() == 0 {
//!     id = [7; 128]; // of `ncclGetUniqueId`
//! }
//! rendezvous.broadcast(&mut id)?; // waits for all ranks
//! assert_eq!(id, [7; 128]);
//! # Ok::<(), curium_nccl::Error>(())
//! ```

mod error;
mod rendezvous;

pub use self::error::{Error, Result};
pub use self::rendezvous::{Exchange, Launcher, Rendezvous, Token};
