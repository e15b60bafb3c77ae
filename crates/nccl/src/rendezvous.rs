//! The rendezvous of the ranks of a job.

mod client;
mod handshake;
mod launcher;
mod server;
mod slurm;
mod token;

use std::env;
use std::ffi::OsString;
use std::time::Duration;

pub use self::launcher::Launcher;
pub use self::token::Token;
use crate::RendezvousError;

/// The largest number of ranks.
const MAX_WORLD_SIZE: usize = 1 << 20;

/// The longest time that rank 0 has after its timeout to send the bytes or the list of missing
/// ranks, and that the others wait for them.
const MAX_VERDICT_TIME: Duration = Duration::from_secs(5);

/// A way to send bytes from rank 0 to all ranks of a job.
///
/// [`Rendezvous`] does so over TCP. Other means (MPI, etcd, a shared file) implement this trait.
pub trait Exchange {
    /// Returns the rank of this process.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn world_size(&self) -> usize;

    /// Sends the bytes of rank 0 to all ranks, and overwrites theirs. Waits until every rank has
    /// called it.
    ///
    /// # Errors
    ///
    /// An error if a rank does not arrive in time, or the ranks disagree on the number of bytes.
    /// Errors of other implementations are [`RendezvousError::Exchange`].
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), RendezvousError>;
}

/// The rank of this process in a job, and the address of rank 0, at which the ranks connect.
///
/// Rank 0 listens at `MASTER_ADDR`, port `MASTER_PORT`, during a broadcast; the other ranks connect
/// to it. Every rank proves that it has the job's [`Token`] (HMAC-SHA256 over random numbers of
/// both sides). Bytes are authenticated, not encrypted.
///
/// # Security
///
/// Other programs may reach the port of rank 0. Without the token, they can neither take part nor
/// change the bytes, and they delay no rank: rank 0 serves all connections on one thread, closes
/// each that has not proved the token within five seconds, and keeps at most 256 of them. A program
/// that listens at the address of rank 0 before rank 0 does can make the broadcast fail, at the
/// latest when the timeout has passed. Processes that have the token are trusted: they can take the
/// place of a rank, but hold up others no longer than the timeout.
///
/// # Environment variables
///
/// | launcher | rank, number of ranks, rank on the host |
/// |---|---|
/// | `torchrun`, Kubernetes, `curium run` | `RANK`, `WORLD_SIZE`, `LOCAL_RANK` (0 if not set) |
/// | `mpirun` of Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK` |
/// | `mpiexec` of MPICH and Intel MPI | `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID` |
/// | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`, `SLURM_LOCALID` |
///
/// The first line whose rank is set is used. The address of rank 0 is:
///
/// - `MASTER_ADDR`. If it is not set: the first host of `SLURM_STEP_NODELIST`, or the loopback
///   address if all ranks of `mpirun` are on this host.
/// - `CURIUM_PORT`, or else `MASTER_PORT`, or else a port derived from the name of the job, or 29500.
///   Under `torchrun`, whose agent uses `MASTER_PORT` itself, it is the port after `MASTER_PORT`.
///
/// `CURIUM_TOKEN` is the job's token. Without it, the token is the name of the job, which
/// distinguishes jobs but is not secret.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    rank: usize,
    world_size: usize,
    local_rank: usize,
    launcher: Option<Launcher>,
    host: String,
    port: u16,
    token: Token,
    timeout: Duration,
    /// The number of broadcasts so far.
    round: u32,
}

impl Rendezvous {
    /// The timeout of a broadcast, unless [`Rendezvous::with_timeout`] sets another.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

    /// Reads the rank of this process from the environment variables of its launcher.
    ///
    /// # Errors
    ///
    /// - [`RendezvousError::NoLauncher`] if no launcher set its variables.
    /// - [`RendezvousError::MissingVariable`], [`RendezvousError::InvalidVariable`] or
    ///   [`RendezvousError::RankOutOfRange`] if they are incomplete or invalid.
    pub fn from_environment() -> Result<Self, RendezvousError> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// Reads the rank of this process from `variable`, which returns the value of an environment
    /// variable.
    ///
    /// # Errors
    ///
    /// As for [`Rendezvous::from_environment`].
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, RendezvousError> {
        launcher::read(&launcher::Variables::new(&variable))
    }

    /// Creates the rendezvous of rank `rank` of `world_size`, for which rank 0 listens at `host`
    /// and `port`. The rank on the host is 0.
    ///
    /// # Errors
    ///
    /// [`RendezvousError::RankOutOfRange`] if the rank is not below `world_size`, or `world_size`
    /// is greater than 2^20.
    pub fn new(
        rank: usize,
        world_size: usize,
        host: impl Into<String>,
        port: u16,
    ) -> Result<Self, RendezvousError> {
        if rank >= world_size || world_size > MAX_WORLD_SIZE {
            return Err(RendezvousError::RankOutOfRange { rank, world_size });
        }
        Ok(Self {
            rank,
            world_size,
            local_rank: 0,
            launcher: None,
            host: host.into(),
            port,
            token: Token::default(),
            timeout: Self::DEFAULT_TIMEOUT,
            round: 0,
        })
    }

    /// Sets the rank among the ranks on this host, which usually selects the device.
    #[must_use]
    pub fn with_local_rank(mut self, local_rank: usize) -> Self {
        self.local_rank = local_rank;
        self
    }

    /// Sets the token, which must be the same on every rank.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    /// Sets the timeout of a broadcast. [`Duration::MAX`] is no timeout.
    ///
    /// The timeout of rank 0 covers the arrival of all ranks, and that of another rank covers
    /// everything until it has reached rank 0. Afterwards, rank 0 has the same time again, but at
    /// most five seconds, to send the bytes or the list of missing ranks, and the others wait for
    /// it that long. A rank that starts much earlier than rank 0 therefore gives up earlier, too.
    ///
    /// The system resolves the name of rank 0 with limits of its own; a numeric address needs none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the rank of this process.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    /// Returns the rank of this process among those on its host, from 0.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Returns the launcher whose variables were read; `None` after [`Rendezvous::new`].
    #[must_use]
    pub fn launcher(&self) -> Option<Launcher> {
        self.launcher
    }

    /// Returns the address of rank 0, such as `node01:29500`.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Returns the time after a timeout in which rank 0 sends its verdict.
fn verdict_time(timeout: Duration) -> Duration {
    timeout.min(MAX_VERDICT_TIME)
}

impl Exchange for Rendezvous {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.world_size
    }

    /// Sends the bytes of rank 0 to all ranks over TCP. Rank 0 listens until every rank has
    /// arrived, then sends.
    ///
    /// # Errors
    ///
    /// - [`RendezvousError::MissingRanks`] on every rank that arrived if others did not within rank
    ///   0's timeout.
    /// - [`RendezvousError::Unreachable`], [`RendezvousError::OtherProtocol`] or
    ///   [`RendezvousError::Unanswered`] if rank 0 cannot be reached or does not answer, and
    ///   [`RendezvousError::Listen`] on rank 0 if its port is in use.
    /// - [`RendezvousError::TokenMismatch`], [`RendezvousError::DuplicateRank`],
    ///   [`RendezvousError::WorldSizeMismatch`] or [`RendezvousError::BroadcastMismatch`] on the
    ///   rank that rank 0 rejects. Rank 0 goes on waiting for the right one.
    /// - [`RendezvousError::LostRank`] on rank 0 if a rank did not receive the bytes, and
    ///   [`RendezvousError::System`] if the system has no resources for the connections of all
    ///   ranks, such as open files.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), RendezvousError> {
        let result = match self.rank {
            _ if self.world_size == 1 => Ok(()),
            0 => server::serve(self, bytes),
            _ => client::join(self, bytes),
        };
        self.round += u32::from(result.is_ok());
        result
    }
}
