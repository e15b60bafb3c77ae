//! The errors of a rendezvous.

use std::fmt;
use std::io;
use std::time::Duration;

use curium_driver::{CudaError, ErrorClass};
use thiserror::Error as ThisError;

use super::{seconds, write_with_source};

/// The reason why the ranks of a job did not find each other. `Debug` is the text of `Display`,
/// with the source on a line of its own.
#[derive(ThisError)]
#[non_exhaustive]
pub enum RendezvousError {
    /// The environment has no variables of a known launcher.
    #[error(
        "rendezvous: no launcher found (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID are not set); start the program with \
         torchrun, mpirun, srun or `curium run`"
    )]
    NoLauncher,
    /// A launcher set some of its variables, but not this one.
    #[error("rendezvous: `{variable}` is not set; {hint}")]
    MissingVariable {
        /// The variable.
        variable: &'static str,
        /// The meaning of the variable, and the programs that set it.
        hint: &'static str,
    },
    /// An environment variable has an invalid value.
    #[error("rendezvous: `{variable}` is invalid (\"{value}\"); expected {expected}")]
    InvalidVariable {
        /// The variable.
        variable: &'static str,
        /// The value, with invalid UTF-8 replaced.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// The rank is not below the number of ranks, or the number is 0 or too large.
    #[error(
        "rendezvous: rank out of range (rank {rank} of {world_size}); ranks are 0 to the number of ranks - 1"
    )]
    RankOutOfRange {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        world_size: usize,
    },
    /// Rank 0 cannot listen on the address.
    #[error(
        "rendezvous: rank 0 cannot listen on {address}; set MASTER_PORT, or CURIUM_PORT, to a port that no program uses"
    )]
    Listen {
        /// The address.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Rank 0 was not reached before the timeout.
    #[error(
        "rendezvous: rank 0 is unreachable at {address} (after {}); check that rank 0 runs, and that MASTER_ADDR and MASTER_PORT are its address and port",
        seconds(*.waited)
    )]
    Unreachable {
        /// The address.
        address: String,
        /// The time for which connections were tried.
        waited: Duration,
        /// The last error.
        source: io::Error,
    },
    /// Rank 0 was reached, but did not answer before the timeout.
    #[error(
        "rendezvous: {address} accepted the connection, but did not answer (after {}); see the output of rank 0, and check that no other \
         program uses its port",
        seconds(*.waited)
    )]
    Unanswered {
        /// The address.
        address: String,
        /// The time for which this rank waited.
        waited: Duration,
    },
    /// Another program answered on the port of rank 0.
    #[error(
        "rendezvous: {address} is used by another program (unknown protocol); set MASTER_PORT to a free port of rank 0"
    )]
    OtherProtocol {
        /// The address.
        address: String,
    },
    /// Ranks did not arrive before the timeout.
    #[error(
        "rendezvous: {} did not arrive within {} ({} of {world_size} ranks have arrived); see the output of the missing ranks",
        list(.ranks), seconds(*.waited), .world_size - .ranks.len()
    )]
    MissingRanks {
        /// The ranks that did not arrive.
        ranks: Vec<usize>,
        /// The number of ranks.
        world_size: usize,
        /// The timeout of rank 0.
        waited: Duration,
    },
    /// The connection to a rank failed after it had arrived.
    #[error("rendezvous: the connection to rank {rank} failed; see its output")]
    LostRank {
        /// The rank.
        rank: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// Rank 0 has another token, or is a rank of another job.
    #[error(
        "rendezvous: {address} rejected the token; set CURIUM_TOKEN to one value on every rank, and check that MASTER_PORT is not the \
         port of another job"
    )]
    TokenMismatch {
        /// The address of rank 0.
        address: String,
    },
    /// Another process with this rank arrived before.
    #[error(
        "rendezvous: rank {rank} arrived twice; the launcher must give every process its own rank"
    )]
    DuplicateRank {
        /// The rank.
        rank: usize,
    },
    /// The ranks disagree on the number of ranks.
    #[error("rendezvous: the numbers of ranks differ ({own} here, {rank_0} on rank 0)")]
    WorldSizeMismatch {
        /// The number of ranks on this rank.
        own: usize,
        /// The number of ranks on rank 0.
        rank_0: usize,
    },
    /// The ranks disagree on the operation: they have made different numbers of broadcasts, or
    /// broadcast different numbers of bytes.
    #[error(
        "rendezvous: the broadcasts differ (number {own_round} of {own_length} bytes here, number {round} of {length} bytes on rank 0); \
         every rank must make the same broadcasts in the same order"
    )]
    BroadcastMismatch {
        /// The number of this rank's earlier broadcasts.
        own_round: u32,
        /// The number of bytes of this rank's broadcast.
        own_length: usize,
        /// The number of rank 0's earlier broadcasts.
        round: u32,
        /// The number of bytes of rank 0's broadcast.
        length: usize,
    },
    /// A function of the system failed.
    #[error("rendezvous: {call} failed")]
    System {
        /// The operation.
        call: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The error of an [`Exchange`](crate::Exchange) of another crate.
    #[error(transparent)]
    Exchange(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Debug for RendezvousError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_source(self, formatter)
    }
}

/// Formats ranks, the first sixteen by number.
fn list(ranks: &[usize]) -> impl fmt::Display {
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let shown = ranks.len().min(16);
    let numbers = ranks[..shown]
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    match ranks.len() - shown {
        0 => format!("{noun} {numbers}"),
        more => format!("{noun} {numbers} and {more} more"),
    }
}

impl CudaError for RendezvousError {
    fn class(&self) -> ErrorClass {
        ErrorClass::System
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ranks: Vec<usize>) -> String {
        let error = RendezvousError::MissingRanks {
            ranks,
            world_size: 64,
            waited: Duration::from_millis(1500),
        };
        error.to_string()
    }

    #[test]
    fn missing_ranks_are_named_and_counted() {
        assert_eq!(
            missing(vec![3]),
            "rendezvous: rank 3 did not arrive within 1.5 s (63 of 64 ranks have arrived); see the output of the missing ranks"
        );
        let many = missing((1..21).collect());
        assert!(
            many.contains("ranks 1, 2, 3") && many.contains("16 and 4 more did not arrive"),
            "{many}"
        );
    }
}
