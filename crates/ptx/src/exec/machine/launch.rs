//! A launch: validated, prepared, and distributed over worker threads.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::program::{Kernel, Late, Program};
use super::runtime::Runtime;
use crate::exec::check::launch_shadow::LaunchShadow;
use crate::exec::check::report::{Budget, Report, ReportKind};
use crate::exec::check::variable::VariableAt;
use crate::exec::frame::Registers;
use crate::exec::memory::Memory;
use crate::exec::memory::window::{BLOCK_STRIDE, resolve};
use crate::exec::space::Space;

/// Blocks in the largest cluster of any device.
const MAX_BLOCKS_IN_CLUSTER: u64 = 16;

/// The maximum number of instructions after which a worker compares its progress with the budget.
const CHECK_INTERVAL: u64 = 1 << 16;

/// A kernel, its arguments and its environment.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The program that holds the kernel.
    pub program: &'a Program,
    /// The kernel, which belongs to the program.
    pub kernel: &'a Kernel,
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Blocks of a cluster in each direction; all ones without clusters. The kernel's own cluster
    /// size takes precedence.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameters, in the layout of [`Kernel::params`].
    pub params: &'a [u8],
    /// Device addresses of [`Program::globals`].
    pub globals: &'a [u64],
    /// Device memory.
    pub memory: &'a dyn Memory,
    /// The host services for kernels.
    pub runtime: &'a dyn Runtime,
    /// The simulated device.
    pub device: &'a DeviceModel,
    /// Host threads to use; at least one.
    pub workers: usize,
    /// The order in which blocks start.
    pub schedule: Schedule,
    /// Address of eight zero bytes through which the blocks of a cooperative launch synchronize; 0
    /// in other launches. `%envreg1` and `%envreg2` hold it.
    pub workspace: u64,
    /// A flag by which another thread cancels the launch.
    pub cancel: &'a AtomicBool,
    /// The budget of the launch.
    pub limits: Limits,
}

/// The budget of a launch. A launch that exceeds it ends with [`ReportKind::OverBudget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of instructions that its warps execute; `None` without a limit.
    pub instructions: Option<u64>,
    /// The maximum time; `None` without a limit.
    pub time: Option<Duration>,
}

/// The device properties that kernels can query.
#[derive(Clone, Debug)]
pub struct DeviceModel {
    /// The number of multiprocessors; `%nsmid`.
    pub multiprocessors: u32,
    /// Ticks of `%clock64` per millisecond.
    pub clock_khz: u32,
    /// The maximum number of threads per block.
    pub max_threads_per_block: u32,
    /// The maximum number of bytes of shared memory per block.
    pub max_shared_per_block: u32,
}

impl Default for DeviceModel {
    fn default() -> Self {
        Self {
            multiprocessors: 132,
            clock_khz: 1_980_000,
            max_threads_per_block: 1024,
            max_shared_per_block: 227 << 10,
        }
    }
}

/// The order in which blocks start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// In the order of their numbers.
    #[default]
    InOrder,
    /// In an order that the seed determines; so are the warps of each block.
    Shuffled(u64),
}

/// Counters of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Instructions executed by threads.
    pub thread_instructions: u64,
    /// Blocks that ran.
    pub blocks: u64,
}

/// A launch with resolved addresses.
pub(crate) struct Prepared<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: &'a Kernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) shared_size: u32,
    pub(crate) params: &'a [u8],
    pub(crate) memory: &'a dyn Memory,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) device: &'a DeviceModel,
    pub(crate) globals: &'a [u64],
    /// Register files of each function that has been called.
    registers: Vec<OnceLock<Registers>>,
    pub(crate) started: Instant,
    pub(crate) failed: AtomicBool,
    pub(crate) workers: u64,
    pub(crate) workspace: u64,
    pub(crate) cancel: &'a AtomicBool,
    limits: Limits,
    /// The instructions that all workers had executed when they last compared them with the limits.
    executed: AtomicU64,
    /// The accesses of threads to device memory, if races are checked.
    pub(crate) accesses: Option<LaunchShadow>,
    pub(crate) order: Order,
    next: AtomicU64,
    /// Canceled clusters, whose work other clusters take over.
    taken_over: AtomicU64,
}

impl<'a> Prepared<'a> {
    /// Returns the number of instructions after which a worker compares its progress with the
    /// budget.
    pub(crate) fn check_interval(&self) -> u64 {
        let Limits { instructions, time } = self.limits;
        match instructions {
            Some(instructions) => instructions.clamp(1, CHECK_INTERVAL),
            None if time.is_some() => CHECK_INTERVAL,
            None => u64::MAX,
        }
    }

    /// Adds instructions of a worker, and returns the exceeded limit, if any.
    pub(crate) fn exceeded_limit(&self, instructions: u64) -> Option<ReportKind> {
        let executed = self.executed.fetch_add(instructions, Ordering::Relaxed) + instructions;
        let Limits {
            instructions: max_instructions,
            time: max_time,
        } = self.limits;
        if let Some(limit) = max_instructions
            && executed > limit
        {
            return Some(ReportKind::OverBudget(Budget::Instructions(limit)));
        }
        let limit = max_time.filter(|limit| self.started.elapsed() > *limit)?;
        Some(ReportKind::OverBudget(Budget::Time(limit)))
    }

    /// Orders the recorded accesses to device memory before later ones, if accesses are recorded.
    pub(crate) fn order_accesses(&self) {
        if let Some(accesses) = &self.accesses {
            accesses.advance();
        }
    }

    pub(crate) fn new(launch: &Launch<'a>) -> Result<Self, Box<Report>> {
        let shared_size = launch
            .kernel
            .dynamic_shared_start()
            .saturating_add(launch.dynamic_shared);
        let cluster = launch.kernel.required_cluster.unwrap_or(launch.cluster);
        let prepared = Self {
            program: launch.program,
            kernel: launch.kernel,
            grid: launch.grid,
            block: launch.block,
            cluster,
            dynamic_shared: launch.dynamic_shared,
            shared_size,
            params: launch.params,
            memory: launch.memory,
            runtime: launch.runtime,
            device: launch.device,
            globals: launch.globals,
            registers: launch
                .program
                .functions
                .iter()
                .map(|_| OnceLock::new())
                .collect(),
            started: Instant::now(),
            accesses: launch.program.checking.races.then(LaunchShadow::default),
            failed: AtomicBool::new(false),
            workers: launch.workers.max(1) as u64,
            workspace: launch.workspace,
            cancel: launch.cancel,
            limits: launch.limits,
            executed: AtomicU64::new(0),
            order: Order::new(clusters(launch.grid, cluster), launch.schedule),
            next: AtomicU64::new(0),
            taken_over: AtomicU64::new(0),
        };
        if let Some(reason) = prepared.invalid_reason(launch) {
            return Err(prepared.launch_fault(ReportKind::InvalidLaunch(reason)));
        }
        Ok(prepared)
    }

    /// Returns the register files of a function, with the launch's addresses in their constants.
    pub(crate) fn registers(&self, function: u32) -> &Registers {
        self.registers[function as usize].get_or_init(|| {
            let function = &self.program.functions[function as usize];
            let mut layout = function.layout.clone();
            for patch in &function.patches {
                layout.doubles[patch.row as usize] = match patch.value {
                    Late::Global(index, offset) => self.globals[index].wrapping_add_signed(offset),
                    Late::DynamicShared(offset) => {
                        u64::from(self.kernel.dynamic_shared_start()).wrapping_add_signed(offset)
                    }
                };
            }
            Registers::new(&layout)
        })
    }

    /// Returns the reason why the launch is invalid, if it is.
    fn invalid_reason(&self, launch: &Launch<'_>) -> Option<&'static str> {
        let threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
        let limit = launch.device.max_threads_per_block;
        let limit = limit.min(launch.kernel.max_threads_per_block.unwrap_or(limit));
        let named = launch.program.kernel(&launch.kernel.name);
        let conditions = [
            (
                launch.grid.contains(&0) || launch.block.contains(&0),
                "grid or block is empty",
            ),
            (
                self.cluster.contains(&0)
                    || (0..3).any(|axis| !launch.grid[axis].is_multiple_of(self.cluster[axis])),
                "grid dimensions are not multiples of the cluster dimensions",
            ),
            (
                self.cluster_size() > MAX_BLOCKS_IN_CLUSTER,
                "cluster exceeds the maximum number of blocks of the device",
            ),
            (
                threads > u64::from(limit),
                "block exceeds the maximum number of threads of the kernel",
            ),
            (
                launch
                    .kernel
                    .required_block
                    .is_some_and(|block| block != launch.block),
                "block dimensions differ from the kernel's .reqntid",
            ),
            (
                launch
                    .kernel
                    .static_shared
                    .saturating_add(launch.dynamic_shared)
                    > launch.device.max_shared_per_block,
                "block exceeds the shared memory of the device",
            ),
            (
                launch.params.len() < launch.kernel.param_size,
                "parameter buffer is too small",
            ),
            (
                launch.globals.len() != launch.program.globals.len(),
                "number of global addresses differs from the number of globals",
            ),
            (
                named.is_none_or(|kernel| kernel.function != launch.kernel.function),
                "kernel belongs to another program",
            ),
        ];
        conditions
            .into_iter()
            .find_map(|(is_invalid, reason)| is_invalid.then_some(reason))
    }

    /// Returns the next cluster to start: the index of its first block, and a number that selects
    /// the warps that run first.
    pub(crate) fn next_cluster(&self) -> Option<([u32; 3], u64)> {
        let position = self.next.fetch_add(1, Ordering::Relaxed);
        if position >= self.order.clusters {
            return None;
        }
        let (number, first) = self.order.at(position);
        let [x, y, _] = clusters(self.grid, self.cluster).map(u64::from);
        let index = [number % x, number / x % y, number / x / y];
        Some((
            std::array::from_fn(|axis| index[axis] as u32 * self.cluster[axis]),
            first,
        ))
    }

    /// Cancels the next cluster to start, and returns the index of its first block.
    pub(crate) fn take_over_cluster(&self) -> Option<[u32; 3]> {
        let (first, _) = self.next_cluster()?;
        self.taken_over.fetch_add(1, Ordering::Relaxed);
        Some(first)
    }

    /// Returns the number of blocks that run unless the launch is stopped.
    pub(crate) fn blocks_to_run(&self) -> u64 {
        let clusters = self.order.clusters - self.taken_over.load(Ordering::Relaxed);
        clusters.saturating_mul(self.cluster_size())
    }

    /// Returns the number of blocks in a cluster.
    pub(crate) fn cluster_size(&self) -> u64 {
        self.cluster
            .iter()
            .fold(1, |size, &extent| size.saturating_mul(u64::from(extent)))
    }
}

/// Returns the number of clusters of a grid in each direction.
fn clusters(grid: [u32; 3], cluster: [u32; 3]) -> [u32; 3] {
    std::array::from_fn(|axis| grid[axis] / cluster[axis].max(1))
}

impl fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("kernel", &self.kernel.name)
            .field("grid", &self.grid)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

impl Statistics {
    pub(crate) fn add(&mut self, other: &Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.blocks += other.blocks;
    }
}

/// A permutation of the cluster numbers: multiplication by a number coprime to their count, plus an
/// offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) clusters: u64,
    factor: u64,
    offset: u64,
}

impl Order {
    fn new(grid: [u32; 3], schedule: Schedule) -> Self {
        let product = grid
            .iter()
            .try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)));
        let clusters = product.unwrap_or(u64::MAX).max(1);
        let Schedule::Shuffled(seed) = schedule else {
            return Self {
                clusters,
                factor: 1,
                offset: 0,
            };
        };
        let mut factor = mix(seed) % clusters;
        while greatest_common_divisor(factor, clusters) != 1 {
            factor += 1;
        }
        Self {
            clusters,
            factor,
            offset: mix(seed ^ u64::MAX) % clusters,
        }
    }

    /// Returns the cluster at a position, and a number that selects its first warps.
    fn at(&self, position: u64) -> (u64, u64) {
        if self.factor == 1 && self.offset == 0 {
            return (position, 0);
        }
        let product = u128::from(position) * u128::from(self.factor) + u128::from(self.offset);
        let cluster = (product % u128::from(self.clusters)) as u64;
        (cluster, mix(cluster ^ self.factor))
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Scrambles a number, bijectively.
fn mix(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Prepared<'_> {
    /// Returns the variable that contains an address.
    pub(crate) fn variable_at(&self, address: u64, space: Space) -> Option<VariableAt<'_>> {
        let (space, address) = match space {
            Space::Generic => resolve(address),
            space => (space, address),
        };
        match space {
            Space::Shared => {
                let address = address % BLOCK_STRIDE;
                let variable = self.kernel.shared_variables.iter().find(|variable| {
                    address.checked_sub(variable.offset).is_some_and(|offset| {
                        offset < variable.size && address < u64::from(self.shared_size)
                    })
                })?;
                Some(VariableAt {
                    name: &variable.name,
                    size: variable.size,
                    shape: &variable.shape,
                    offset: address - variable.offset,
                })
            }
            Space::Global => {
                let globals = self.program.globals.iter().zip(self.globals);
                let (variable, start) = globals
                    .into_iter()
                    .find(|(variable, start)| address.wrapping_sub(**start) < variable.size)?;
                Some(VariableAt {
                    name: &variable.name,
                    size: variable.size,
                    shape: &variable.shape,
                    offset: address - start,
                })
            }
            _ => None,
        }
    }
}

impl Prepared<'_> {
    /// Creates a fault that has no instruction.
    pub(crate) fn launch_fault(&self, kind: ReportKind) -> Box<Report> {
        Box::new(Report::for_launch(&self.kernel.name, kind))
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::machine::launch::*;

    #[test]
    fn a_shuffled_order_visits_every_block_once() {
        for seed in 0..20 {
            let order = Order::new([7, 3, 2], Schedule::Shuffled(seed));
            let mut seen: Vec<_> = (0..42).map(|position| order.at(position).0).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..42).collect::<Vec<_>>());
        }
    }
}
