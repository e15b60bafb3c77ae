//! `curium run`: starts the ranks of a multi-GPU job on this machine, and ends all when one fails.

mod group;
mod input;
mod interrupts;
mod output;
mod ranks;

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ArgGroup;
use clap::error::ErrorKind;
use curium::prelude::*;
use curium_sim::DeviceModel;

use self::ranks::Ranks;
use crate::device_model::{self, ModelChoice};
use crate::terminal::ColorChoice;
use crate::{program, simulator};

/// Start the ranks of a multi-GPU job on this machine
///
/// Every rank is a process of the program with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, as torchrun sets them, and a random CURIUM_TOKEN. Lines of output
/// begin with the rank. Standard input goes to rank 0. When a rank fails, or at Ctrl-C, all are
/// terminated, with the processes that they started; at the next Ctrl-C they are killed.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("simulation").multiple(true))]
#[command(after_help = "\
Exit codes:
  0  every rank succeeded
  1  the ranks could not be started
  2  the command line is wrong
  the exit code of the rank that failed first; 128 plus the number of the signal that ended it, or this command")]
pub(crate) struct Options {
    /// Number of ranks [default: the number of GPUs]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Run the ranks on the simulator, whose library is built if it is missing
    #[arg(long, group = "simulation")]
    simulated: bool,
    /// The simulator's libcuda.so.1 [default: beside this program, or built now]
    #[arg(long, value_name = "FILE", requires = "simulation")]
    simulator: Option<PathBuf>,
    /// Run the ranks on simulated devices of this hardware model, such as `A100`; `list` prints all
    /// models
    #[arg(
        long,
        value_enum,
        value_name = "MODEL",
        group = "simulation",
        ignore_case = true,
        hide_possible_values = true
    )]
    device_model: Option<ModelChoice>,
    /// Time in seconds that processes have to end after a rank failed or all succeeded, before they
    /// are killed
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// The program and its arguments
    #[arg(
        required_unless_present = "device_model",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

/// The number of devices of each rank's simulator; rank `i` uses device `i`.
const DEVICES: &str = "CURIUM_SIM_DEVICES";

/// The hardware model of each rank's devices.
const DEVICE_MODEL: &str = "CURIUM_SIM_DEVICE_MODEL";

/// The variables that are the same on every rank.
struct Job {
    world_size: u32,
    port: u16,
    token: String,
    simulator: Option<PathBuf>,
    device_model: Option<DeviceModel>,
}

/// Starts the ranks and waits for them.
pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<ExitCode> {
    let device_model = match options.device_model {
        Some(ModelChoice::List) => {
            device_model::print_list()?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(ModelChoice::Model(model)) => Some(model),
        None => None,
    };
    if options.program.is_empty() {
        let problem = "the program to start is missing\n";
        clap::Error::raw(ErrorKind::MissingRequiredArgument, problem).exit();
    }
    let job = Job::new(options, device_model)?;
    let grace = Duration::from_secs(options.grace);
    let mut ranks = Ranks::new(grace)?;
    for rank in 0..job.world_size {
        // Many ranks take seconds to start.
        if ranks.are_interrupted() {
            break;
        }
        ranks.start(job.command(rank, &options.program)?)?;
    }
    ranks.wait().map(ExitCode::from)
}

impl Job {
    fn new(options: &Options, device_model: Option<DeviceModel>) -> Result<Self> {
        let simulator = match options.simulated || device_model.is_some() {
            true => Some(simulator::library(options.simulator.as_deref())?),
            false => None,
        };
        let world_size = match options.ranks {
            Some(ranks) => ranks,
            None => device_count().context("number of ranks: unknown; set it with --ranks")?,
        };
        Ok(Self {
            world_size,
            port: free_port()?,
            token: token()?,
            simulator,
            device_model,
        })
    }

    /// Returns the command that starts a rank.
    fn command(&self, rank: u32, words: &[OsString]) -> Result<Command> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, value) in [("RANK", rank), ("LOCAL_RANK", rank)] {
            command.env(name, value.to_string());
        }
        for name in ["WORLD_SIZE", "LOCAL_WORLD_SIZE"] {
            command.env(name, self.world_size.to_string());
        }
        command.env("MASTER_ADDR", Ipv4Addr::LOCALHOST.to_string());
        command.env("MASTER_PORT", self.port.to_string());
        command.env("CURIUM_TOKEN", &self.token);
        // Variables of an outer `torchrun` would move the port.
        command
            .env_remove("CURIUM_PORT")
            .env_remove("TORCHELASTIC_USE_AGENT_STORE");
        if let Some(library) = &self.simulator {
            program::use_simulator(&mut command, library)?;
            if env::var_os(DEVICES).is_none() {
                command.env(DEVICES, self.world_size.to_string());
            }
            if let Some(model) = self.device_model {
                command.env(DEVICE_MODEL, model.hardware());
            }
        }
        command.stdin(if rank == 0 {
            input::for_rank_0()
        } else {
            Stdio::null()
        });
        Ok(command)
    }
}

/// Returns the number of GPUs.
fn device_count() -> Result<u32> {
    let count = Driver::load()?.devices()?.len();
    ensure!(count > 0, "no GPU");
    Ok(u32::try_from(count)?)
}

/// Returns a port that is free now. Rank 0 listens on it when it needs to.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("free port: none found")?;
    Ok(listener.local_addr()?.port())
}

/// Returns 32 random bytes in hexadecimal, or the token that the user set.
fn token() -> Result<String> {
    if let Some(token) = env::var("CURIUM_TOKEN")
        .ok()
        .filter(|token| !token.is_empty())
    {
        return Ok(token);
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("token: no random numbers")?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
