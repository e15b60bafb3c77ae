//! The environment variables of launchers.

use std::ffi::OsString;

use sha2::{Digest as _, Sha256};

use super::{MAX_WORLD_SIZE, Rendezvous, Token, slurm};
use crate::RendezvousError;

/// The port of rank 0 if nothing else decides it, as in PyTorch.
const DEFAULT_PORT: u16 = 29_500;

/// The program that started the ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Launcher {
    /// `torchrun`, Kubernetes, `curium run`, or anything else that sets `RANK` and `WORLD_SIZE`.
    Generic,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH, Intel MPI, and others with its process manager (Hydra).
    Mpich,
    /// `srun` of Slurm.
    Slurm,
}

/// The names of one launcher's variables.
struct Names {
    launcher: Launcher,
    rank: &'static str,
    world_size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// Every launcher, in order of precedence. `mpirun` comes before Slurm: inside a Slurm job, its
/// ranks inherit Slurm's variables.
const LAUNCHERS: [Names; 4] = [
    Names {
        launcher: Launcher::Generic,
        rank: "RANK",
        world_size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        local_size: "LOCAL_WORLD_SIZE",
    },
    Names {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        world_size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Names {
        launcher: Launcher::Mpich,
        rank: "PMI_RANK",
        world_size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
    Names {
        launcher: Launcher::Slurm,
        rank: "SLURM_PROCID",
        world_size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_NTASKS_PER_NODE",
    },
];

/// The variables that hold the name of a job, which is the same on every rank and differs between
/// jobs.
const JOB_NAMES: [&str; 3] = ["TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID"];

/// Environment variables. One that is empty counts as not set.
pub(super) struct Variables<'a>(&'a dyn Fn(&str) -> Option<OsString>);

impl<'a> Variables<'a> {
    pub(super) fn new(variable: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self(variable)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.0)(name)?;
        (!value.is_empty()).then(|| value.to_string_lossy().into_owned())
    }

    /// Returns the value of the variable as a number that `T` can hold.
    fn number<T: std::str::FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, RendezvousError> {
        let Some(value) = self.variable(name) else {
            return Ok(None);
        };
        let number = value.trim().parse();
        number
            .map(Some)
            .map_err(|_| RendezvousError::InvalidVariable {
                variable: name,
                value,
                expected,
            })
    }

    fn port(&self, name: &'static str) -> Result<Option<u16>, RendezvousError> {
        let expected = "a port from 1 to 65535";
        match self.number(name, expected)? {
            Some(0) => Err(RendezvousError::InvalidVariable {
                variable: name,
                value: "0".to_owned(),
                expected,
            }),
            port => Ok(port),
        }
    }

    fn count(&self, name: &'static str) -> Result<Option<usize>, RendezvousError> {
        self.number(name, "a whole number")
    }
}

/// Reads the rank of this process and the address of rank 0.
pub(super) fn read(variables: &Variables<'_>) -> Result<Rendezvous, RendezvousError> {
    let names = LAUNCHERS
        .iter()
        .find(|names| variables.variable(names.rank).is_some())
        .ok_or(RendezvousError::NoLauncher)?;
    let rank = variables
        .count(names.rank)?
        .ok_or(RendezvousError::NoLauncher)?;
    let world_size = world_size(variables, names)?;
    if rank >= world_size || world_size > MAX_WORLD_SIZE {
        return Err(RendezvousError::RankOutOfRange { rank, world_size });
    }
    let job = JOB_NAMES.iter().find_map(|name| variables.variable(name));
    let host = host(variables, names, world_size)?;
    let port = port(variables, job.as_deref())?;
    let token = variables
        .variable("CURIUM_TOKEN")
        .or(job)
        .unwrap_or_default();
    let mut rendezvous = Rendezvous::new(rank, world_size, host, port)?;
    rendezvous.launcher = Some(names.launcher);
    let local_rank = variables.count(names.local_rank)?.unwrap_or(0);
    Ok(rendezvous
        .with_local_rank(local_rank)
        .with_token(Token::new(token.into_bytes())))
}

fn world_size(variables: &Variables<'_>, names: &Names) -> Result<usize, RendezvousError> {
    variables.count(names.world_size)?.ok_or(RendezvousError::MissingVariable {
        variable: names.world_size,
        // The script of a Slurm job has a rank, but only `srun` starts all of them.
        hint: "it is the number of ranks; start the program with `srun`, `mpirun` or `torchrun`, which set it",
    })
}

/// Returns the host of rank 0.
fn host(
    variables: &Variables<'_>,
    names: &Names,
    world_size: usize,
) -> Result<String, RendezvousError> {
    if let Some(host) = variables.variable("MASTER_ADDR") {
        return Ok(host);
    }
    if let (Launcher::Slurm, Some(list)) = (names.launcher, slurm_hosts(variables)) {
        return slurm::first_host(&list).ok_or_else(|| RendezvousError::InvalidVariable {
            variable: "SLURM_STEP_NODELIST",
            value: list.clone(),
            expected: "a list of hosts such as `node[01-04],login1`",
        });
    }
    if world_size == 1 || variables.count(names.local_size)? == Some(world_size) {
        return Ok("127.0.0.1".to_owned());
    }
    Err(RendezvousError::MissingVariable {
        variable: "MASTER_ADDR",
        hint: "it is the host of rank 0; `mpirun -x MASTER_ADDR=HOST` or `mpiexec -genv MASTER_ADDR HOST` sets it on every rank",
    })
}

fn slurm_hosts(variables: &Variables<'_>) -> Option<String> {
    variables
        .variable("SLURM_STEP_NODELIST")
        .or_else(|| variables.variable("SLURM_JOB_NODELIST"))
}

/// Returns the port of rank 0.
fn port(variables: &Variables<'_>, job: Option<&str>) -> Result<u16, RendezvousError> {
    if let Some(port) = variables.port("CURIUM_PORT")? {
        return Ok(port);
    }
    let Some(port) = variables.port("MASTER_PORT")? else {
        return Ok(job.map_or(DEFAULT_PORT, job_port));
    };
    if variables
        .variable("TORCHELASTIC_USE_AGENT_STORE")
        .as_deref()
        != Some("True")
    {
        return Ok(port);
    }
    // The agent of `torchrun` listens on MASTER_PORT itself.
    port.checked_add(1).ok_or(RendezvousError::InvalidVariable {
        variable: "MASTER_PORT",
        value: port.to_string(),
        expected: "a port below 65535 under `torchrun`, which uses the port itself",
    })
}

/// Derives a port from 20000 to 29999 from the name of a job, so that jobs on one host usually have
/// ports of their own. Systems choose the ports of outgoing connections above these.
fn job_port(job: &str) -> u16 {
    let digest = Sha256::digest(job.as_bytes());
    20_000 + u16::from_be_bytes([digest[0], digest[1]]) % 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Result<Rendezvous, RendezvousError> {
        read(&Variables::new(&|name| {
            variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| value.into())
        }))
    }

    fn expect(variables: &[(&str, &str)]) -> Rendezvous {
        read_from(variables).unwrap_or_else(|error| panic!("{variables:?}: {error}"))
    }

    fn error(variables: &[(&str, &str)]) -> String {
        read_from(variables)
            .expect_err("a variable is wrong")
            .to_string()
    }

    /// Returns rank, number of ranks and rank on the host.
    fn numbers(rendezvous: &Rendezvous) -> (usize, usize, usize) {
        (
            rendezvous.rank(),
            rendezvous.world_size(),
            rendezvous.local_rank(),
        )
    }

    const TORCHRUN: [(&str, &str); 5] = [
        ("RANK", "5"),
        ("WORLD_SIZE", "8"),
        ("LOCAL_RANK", "1"),
        ("MASTER_ADDR", "node1"),
        ("MASTER_PORT", "29400"),
    ];

    #[test]
    fn torchrun_port_follows_the_agent_port() {
        let plain = expect(&TORCHRUN);
        assert_eq!(
            (numbers(&plain), plain.address().as_str()),
            ((5, 8, 1), "node1:29400")
        );
        assert_eq!(plain.launcher(), Some(Launcher::Generic));
        let agent = expect(&[&TORCHRUN[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat());
        assert_eq!(agent.address(), "node1:29401");
        let chosen = [
            &TORCHRUN[..],
            &[
                ("TORCHELASTIC_USE_AGENT_STORE", "True"),
                ("CURIUM_PORT", "7000"),
            ],
        ]
        .concat();
        assert_eq!(expect(&chosen).address(), "node1:7000");
    }

    #[test]
    fn kubernetes_without_a_local_rank_has_local_rank_0() {
        assert_eq!(
            numbers(&expect(&[
                ("RANK", "1"),
                ("WORLD_SIZE", "2"),
                ("MASTER_ADDR", "job-0")
            ])),
            (1, 2, 0)
        );
    }

    #[test]
    fn open_mpi_on_one_host_needs_no_address() {
        let mut variables = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let rendezvous = expect(&variables);
        assert_eq!(
            (numbers(&rendezvous), rendezvous.address().as_str()),
            ((1, 2, 1), "127.0.0.1:29500")
        );
        variables[3].1 = "1";
        assert!(error(&variables).contains("`MASTER_ADDR` is not set"));
    }

    #[test]
    fn mpi_inside_a_slurm_job_takes_precedence_over_slurm() {
        let rendezvous = expect(&[
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("PMI_RANK", "3"),
            ("PMI_SIZE", "4"),
            ("MASTER_ADDR", "a"),
        ]);
        assert_eq!(
            (
                rendezvous.launcher(),
                rendezvous.rank(),
                rendezvous.world_size()
            ),
            (Some(Launcher::Mpich), 3, 4)
        );
    }

    #[test]
    fn slurm_uses_the_first_host_and_a_port_per_job() {
        let mut variables = [
            ("SLURM_PROCID", "9"),
            ("SLURM_STEP_NUM_TASKS", "16"),
            ("SLURM_NTASKS", "32"), // of the whole job
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_NODELIST", "gpu[07-08]"),
            ("SLURM_JOB_ID", "4711"),
        ];
        let one = expect(&variables);
        variables[5].1 = "4712";
        let two = expect(&variables);
        assert_eq!(numbers(&one), (9, 16, 1));
        assert!(one.address().starts_with("gpu07:2"), "{}", one.address());
        assert_ne!(one.address(), two.address());
    }

    #[test]
    fn wrong_variables_are_named_with_their_values() {
        assert!(error(&[]).contains("no launcher found"));
        assert!(error(&[("RANK", "0")]).contains("`WORLD_SIZE` is not set"));
        assert!(
            error(&[("RANK", "zero"), ("WORLD_SIZE", "2")])
                .contains("`RANK` is invalid (\"zero\")")
        );
        assert!(
            error(&[("RANK", "-1"), ("WORLD_SIZE", "2")]).contains("`RANK` is invalid (\"-1\")")
        );
        assert!(
            error(&[("RANK", "2"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a")])
                .contains("rank 2 of 2")
        );
        assert!(error(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("`MASTER_ADDR` is not set"));
        for port in ["70000", "0"] {
            let error = error(&[("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_PORT", port)]);
            assert!(
                error.contains(&format!("`MASTER_PORT` is invalid (\"{port}\")")),
                "{error}"
            );
        }
        let script = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
        assert!(
            error(&script).contains("`SLURM_STEP_NUM_TASKS` is not set")
                && error(&script).contains("`srun`")
        );
        let list = [
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NODELIST", "n[1"),
        ];
        assert!(error(&list).contains("`SLURM_STEP_NODELIST` is invalid"));
    }

    #[test]
    fn token_defaults_to_the_job_name() {
        for (more, token) in [
            (
                &[("CURIUM_TOKEN", "secret"), ("SLURM_JOB_ID", "1")][..],
                Token::new(*b"secret"),
            ),
            (&[("SLURM_JOB_ID", "1")], Token::new(*b"1")),
            (&[], Token::default()),
        ] {
            let variables = [&[("RANK", "0"), ("WORLD_SIZE", "1")], more].concat();
            assert_eq!(expect(&variables).token.tag(&[]), token.tag(&[]));
        }
    }
}
