//! A worker: a host thread that runs blocks until all have ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::aligned::BypassCache;
use super::block::{Block, FragmentPosition};
use super::warp::{Failure, Progress};
use crate::exec::check::report::{
    Area, NearbyAllocation, Report, ReportKind, Severity, StreamRace, ThreadGroup, Trap,
};
use crate::exec::check::source::CodeLocation;
use crate::exec::check::undefined::Flow;
use crate::exec::check::watch::Watcher;
use crate::exec::frame::Frame;
use crate::exec::machine::access_pattern_cache::AccessPatternCache;
use crate::exec::machine::barrier::Wait;
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::cluster::{Cluster, block_rank};
use crate::exec::machine::launch::{Prepared, Statistics};
use crate::exec::machine::objects::Objects;
use crate::exec::machine::op::Op;
use crate::exec::machine::program::Function;
use crate::exec::machine::unit::Unit;
use crate::exec::machine::warp_state::WarpState;
use crate::exec::matrix::workspace::Matrices;
use crate::exec::memory::SegmentCache;
use crate::exec::memory::window::{BLOCK_STRIDE, resolve};
use crate::exec::space::Space;

/// The maximum number of resident threads on a multiprocessor.
const THREADS_PER_MULTIPROCESSOR: u64 = 2048;

/// The maximum number of groups of threads in a report.
const MAX_GROUPS: usize = 8;

/// The maximum number of calls in a report.
const MAX_CALLERS: usize = 16;

/// The number of warp instructions after which other threads are started: they take about as long
/// as the start of a thread.
const SPAWN_THRESHOLD: u64 = 2048;

/// The state of one host thread.
#[derive(Debug)]
pub(crate) struct Worker<'l> {
    pub(crate) launch: &'l Prepared<'l>,
    cache: SegmentCache,
    objects: Objects,
    matrices: Option<Box<Matrices>>,
    /// The access patterns of the address registers of the current fragment.
    patterns: AccessPatternCache,
    watcher: Option<Box<dyn Watcher + 'l>>,
    /// The control flow around aligned barriers at which warps diverged.
    pub(crate) bypasses: BypassCache,
    statistics: Statistics,
    /// The number of instructions at which the worker compares its progress with the budget, and
    /// that of the last time.
    next_check: u64,
    last_check: u64,
}

impl<'l> Worker<'l> {
    /// Creates an idle worker.
    pub(crate) fn new(launch: &'l Prepared<'l>) -> Self {
        let watcher = launch
            .program
            .checking
            .races
            .then(|| launch.memory.watcher())
            .flatten();
        Self {
            launch,
            cache: SegmentCache::default(),
            objects: Objects::default(),
            matrices: None,
            patterns: AccessPatternCache::default(),
            watcher,
            bypasses: BypassCache::default(),
            statistics: Statistics::default(),
            next_check: launch.check_interval(),
            last_check: 0,
        }
    }

    /// Runs blocks until all have ended or the launch is stopped. Calls `call_for_help` once if
    /// that takes long.
    pub(crate) fn run(
        mut self,
        call_for_help: &mut dyn FnMut(),
    ) -> Result<Statistics, Box<Report>> {
        let mut is_alone = true;
        let mut resident: VecDeque<Block> = VecDeque::new();
        let mut spare = Vec::new();
        let limit = self.resident_limit();
        // The number of consecutive turns of blocks in which no instruction was executed.
        let mut idle = 0;
        loop {
            if self.is_stopped() {
                return Ok(self.statistics);
            }
            if is_alone && self.executed() > SPAWN_THRESHOLD {
                is_alone = false;
                call_for_help();
            }
            // Paused blocks may wait for blocks that have not started, so some are started.
            if resident.len() < limit
                && let Some((index, first)) = self.launch.next_cluster()
            {
                self.start_cluster(index, first, &mut spare, &mut resident);
            }
            let Some(mut block) = resident.pop_front() else {
                return Ok(self.statistics);
            };
            let before = self.executed();
            match block.run(&mut self) {
                Ok(Progress::Done) => {
                    self.statistics.blocks += 1;
                    spare.push(block);
                }
                Ok(_) => {
                    idle = if self.executed() == before {
                        idle + 1
                    } else {
                        0
                    };
                    if idle > resident.len() {
                        let (warp, failure) = block.deadlock(&self);
                        return Err(self.report(&block, warp, failure));
                    }
                    resident.push_back(block);
                }
                Err((warp, failure)) => return Err(self.report(&block, warp, failure)),
            }
        }
    }

    /// Starts the blocks of a cluster ahead of the others.
    fn start_cluster(
        &self,
        index: [u32; 3],
        first: u64,
        spare: &mut Vec<Block>,
        resident: &mut VecDeque<Block>,
    ) {
        let [width, height, depth] = self.launch.cluster;
        let ranks = width * height * depth;
        let mut blocks = Vec::with_capacity(ranks as usize);
        for rank in 0..ranks {
            let offset = [rank % width, rank / width % height, rank / width / height];
            let index = std::array::from_fn(|axis| index[axis] + offset[axis]);
            let mut block = spare.pop().unwrap_or_else(|| Block::new(self));
            block.start(index, first, self);
            blocks.push(block);
        }
        if ranks > 1 {
            let members = blocks
                .iter()
                .map(|block| Arc::clone(&block.state.shared))
                .collect();
            let threads = self.launch.block.iter().product::<u32>() * ranks;
            let cluster = Arc::new(Cluster::new(members, threads));
            for (rank, block) in (0..).zip(&mut blocks) {
                block.state.cluster = Arc::clone(&cluster);
                block.state.rank = rank;
            }
        }
        for block in blocks.into_iter().rev() {
            resident.push_front(block);
        }
    }

    /// Returns the maximum number of resident blocks: this worker's share of the device's capacity.
    fn resident_limit(&self) -> usize {
        let threads: u64 = self.launch.block.iter().map(|&n| u64::from(n)).product();
        let device = u64::from(self.launch.device.multiprocessors) * THREADS_PER_MULTIPROCESSOR;
        (device / threads).div_ceil(self.launch.workers).max(1) as usize
    }

    /// Returns a function of the program.
    pub(crate) fn function(&self, index: u32) -> &'l Function {
        &self.launch.program.functions[index as usize]
    }

    /// Returns the code of a function.
    pub(crate) fn code(&self, index: u32) -> &'l [Op] {
        &self.function(index).code
    }

    /// Returns the propagation of undefined bytes through the instruction at an index, if any.
    pub(crate) fn flow(function: &'l Function, pc: u32) -> Option<&'l Flow> {
        let index = function
            .flows
            .binary_search_by_key(&pc, |(flow_pc, _)| *flow_pc)
            .ok()?;
        Some(&function.flows[index].1)
    }

    /// Returns the number of warp instructions executed so far.
    pub(crate) fn executed(&self) -> u64 {
        self.statistics.warp_instructions
    }

    /// Counts instructions executed by the lanes of `mask`.
    pub(crate) fn count(&mut self, instructions: u64, mask: u32) {
        self.statistics.warp_instructions += instructions;
        self.statistics.thread_instructions += instructions * u64::from(mask.count_ones());
    }

    /// Returns the limit of the launch that it exceeds, if any.
    #[inline(always)]
    pub(crate) fn exceeded_limit(&mut self) -> Option<ReportKind> {
        if self.statistics.warp_instructions < self.next_check {
            return None;
        }
        self.compare_with_limits()
    }

    #[cold]
    fn compare_with_limits(&mut self) -> Option<ReportKind> {
        let executed = self.executed();
        let since = executed - self.last_check;
        self.last_check = executed;
        self.next_check = executed.saturating_add(self.launch.check_interval());
        self.launch.exceeded_limit(since)
    }

    /// Returns `true` if the launch is canceled or has failed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.launch.failed.load(Ordering::Relaxed) || self.launch.cancel.load(Ordering::Relaxed)
    }

    /// Creates the context of a handler.
    pub(crate) fn unit<'r>(
        &'r mut self,
        frame: &'r mut Frame,
        warp: &'r mut WarpState,
        block: &'r mut BlockState,
    ) -> Unit<'r> {
        Unit {
            frame,
            warp,
            block,
            launch: self.launch,
            cache: &mut self.cache,
            objects: &mut self.objects,
            matrices: &mut self.matrices,
            watcher: match &mut self.watcher {
                Some(watcher) => Some(&mut **watcher),
                None => None,
            },
            active: 0,
            wait: Wait::default(),
            trap: None,
            patterns: self.patterns.cleared(),
        }
    }

    /// Returns `true` if the launch continues without the faulting threads.
    pub(crate) fn continues_after(&self, block: &Block, warp: usize, failure: Failure) -> bool {
        let report = self.report(block, warp, failure);
        self.launch.runtime.continues_after(&report) || report.severity() == Severity::Warning
    }

    fn report(&self, block: &Block, warp: usize, failure: Failure) -> Box<Report> {
        let trap = failure.trap;
        let launch = self.launch;
        let variable = trap
            .access
            .zip(trap.space)
            .and_then(|(access, space)| launch.variable_at(access.address, space))
            .map(|variable| variable.element());
        let mut location = self.locate(failure.function, failure.line);
        let mut callers = self.callers(block, warp, failure);
        if trap.kind == ReportKind::Assert
            && location.source.is_empty()
            && let Some(caller) = callers.iter().position(|caller| !caller.source.is_empty())
        {
            // Functions of the compiler, which have no source lines, call `__assertfail` for the
            // function with the assertion.
            location = callers.drain(..=caller).next_back().unwrap_or_default();
        }
        let reason = match (trap.kind, trap.access, trap.space) {
            (ReportKind::Assert, ..) => block.assertion(warp, !location.source.is_empty()),
            (ReportKind::Deadlock, ..) => block.incomplete_barriers(),
            (ReportKind::Uninitialized, Some(access), Some(space))
                if block.has_pending_copy(access, space) =>
            {
                "an asynchronous copy to these bytes is pending".into()
            }
            _ => Box::default(),
        };
        Box::new(Report {
            block: block.state.index,
            thread: block.thread(warp, trap.lane),
            reason,
            location,
            callers,
            loaded_at: self.locate_other(trap.loaded_at),
            other: self.locate_other(trap.other_line),
            threads: self.threads(block, trap.kind),
            access: trap.access,
            variable: variable.unwrap_or_default(),
            nearby: self.nearby_allocation(block, warp, trap).map(Box::new),
            stream_race: trap.conflict.map(StreamRace::new).map(Box::new),
            facts: self.facts(block, warp, failure),
            ..*launch.launch_fault(trap.kind)
        })
    }

    /// Returns the instruction of a function at a PTX line.
    fn locate(&self, function: u32, line: u32) -> CodeLocation {
        CodeLocation {
            function: self.function(function).name.as_str().into(),
            ..self.launch.program.source.locate(line)
        }
    }

    /// Returns the instruction at a PTX line, if it is not 0.
    fn locate_other(&self, line: u32) -> Option<Box<CodeLocation>> {
        (line != 0).then(|| Box::new(self.launch.program.source.locate(line)))
    }

    /// Returns the calls that led to the function of a fault, innermost first.
    fn callers(&self, block: &Block, warp: usize, failure: Failure) -> Vec<CodeLocation> {
        let calls = block.calls(warp, failure);
        calls
            .take(MAX_CALLERS)
            .map(|(function, pc)| self.locate(function, self.code(function)[pc as usize].line))
            .collect()
    }

    /// Returns the positions of a block's threads, if they are the cause of a report.
    fn threads(&self, block: &Block, kind: ReportKind) -> Vec<ThreadGroup> {
        if !matches!(kind, ReportKind::Deadlock | ReportKind::OverBudget(_)) {
            return Vec::new();
        }
        let mut groups: Vec<(FragmentPosition, ThreadGroup)> = Vec::new();
        for (position, lanes) in block.positions() {
            let count = lanes.mask.count_ones();
            let has_room = groups.len() < MAX_GROUPS;
            match groups.iter_mut().find(|(other, _)| *other == position) {
                Some((_, group)) => group.count += count,
                None if !has_room => {}
                None => {
                    let line = self.code(position.function)[position.pc as usize].line;
                    let group = ThreadGroup {
                        count,
                        first: block.thread(lanes.warp, lanes.mask.trailing_zeros() as usize),
                        waits: position.waits,
                        location: self.locate(position.function, line),
                    };
                    groups.push((position, group));
                }
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns the memory of an access or near it, unless the driver determines it.
    fn nearby_allocation(
        &self,
        block: &Block,
        warp: usize,
        trap: Trap,
    ) -> Option<NearbyAllocation> {
        let access = trap.access?;
        let space = trap.space?;
        let (space, offset) = match space {
            Space::Generic => resolve(access.address),
            space => (space, access.address),
        };
        let shared_size = u64::from(self.launch.shared_size);
        let (area, size, offset) = match space {
            Space::Shared if offset >= BLOCK_STRIDE => {
                let area = Area::Cluster {
                    rank: block_rank(offset, 0),
                    blocks: self.launch.cluster_size() as u32,
                };
                (area, shared_size, offset % BLOCK_STRIDE)
            }
            Space::Shared => (Area::Shared, shared_size, offset),
            Space::Local | Space::Frame => (Area::Local, block.local_size(warp), offset),
            Space::Param => (Area::Parameters, self.launch.params.len() as u64, offset),
            Space::Global | Space::Generic => return None,
        };
        Some(NearbyAllocation {
            address: access.address - offset,
            size,
            is_freed: false,
            freed_by: Box::default(),
            area,
        })
    }
}
