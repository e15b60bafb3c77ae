//! Control transfers of warp fragments: branches, calls, returns, and exits.

use super::fragment::Fragment;
use super::warp::Warp;
use super::worker::Worker;
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::frame::{Caller, Frame};
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::program::{CallSite, Callee};
use crate::exec::machine::warp_state::LOCAL_LIMIT;
use crate::exec::values::lane::{Lanes, Row};

/// The maximum depth of calls, which also ends recursion without local variables.
const DEPTH_LIMIT: u32 = 10_000;
/// The minimum alignment of a function's local memory.
const FRAME_ALIGN: u64 = 16;

impl Warp {
    /// Performs a control transfer.
    pub(crate) fn transfer(
        &mut self,
        index: usize,
        control: Control,
        active: u32,
        op: &Op,
        block: &mut BlockState,
        worker: &Worker<'_>,
    ) -> Result<(), Trap> {
        match control {
            Control::Branch => {
                let is_backward = op.branch_target() <= self.fragments[index].pc;
                self.split(index, active, op.branch_target());
                self.fragments[index].pc += 1;
                if is_backward {
                    self.count_backward_branches(self.fragments.len() - 1, 1);
                }
                Ok(())
            }
            Control::BranchIndexed => self.branch_indexed(index, op, worker),
            Control::Call => self.call(index, op, worker),
            Control::Return => {
                self.leave(index, block, worker);
                Ok(())
            }
            _ => {
                self.exit(index, block);
                Ok(())
            }
        }
    }

    fn branch_indexed(&mut self, index: usize, op: &Op, worker: &Worker<'_>) -> Result<(), Trap> {
        let Fragment { mask, frame, .. } = self.fragments[index];
        let frame = &self.frames[frame as usize];
        let table = &worker.function(frame.function).branch_tables[op.table_index()];
        let leader = mask.trailing_zeros() as usize;
        let choice = frame.row::<u32>(op.a)[leader];
        let Some(&target) = table.get(choice as usize) else {
            return Err(Trap::new(ReportKind::InvalidProgramCounter, leader));
        };
        let row = frame.row::<u32>(op.a);
        let same = Lanes(mask).filter(|&lane| row[lane] == choice);
        let same = same.fold(0, |lanes, lane| lanes | 1 << lane);
        let pc = self.fragments[index].pc;
        if same != mask {
            self.split(index, mask & !same, pc);
        }
        self.fragments[index].pc = target;
        if target <= pc {
            self.count_backward_branches(index, 1);
        }
        Ok(())
    }

    /// Enters a function. Lanes with another callee remain, and call it later.
    fn call(&mut self, index: usize, op: &Op, worker: &Worker<'_>) -> Result<(), Trap> {
        let Fragment {
            pc,
            mask,
            frame: caller,
            depth,
            ..
        } = self.fragments[index];
        let from = &self.frames[caller as usize];
        let site = &worker.function(from.function).calls[op.table_index()];
        let (callee, lanes) = callee(site, from, mask, worker)?;
        let function = worker.function(callee);
        let caller_base = from.local;
        let end = caller_base + worker.function(from.function).local_size;
        let alloca_end = Lanes(lanes)
            .map(|lane| self.state.alloca_end[lane])
            .max()
            .unwrap_or(0);
        let base = end
            .max(alloca_end)
            .next_multiple_of(function.local_align.max(FRAME_ALIGN));
        if lanes != mask {
            self.split(index, mask & !lanes, pc);
        }
        if base + function.local_size > LOCAL_LIMIT || depth >= DEPTH_LIMIT {
            let lane = lanes.trailing_zeros() as usize;
            return Err(Trap::new(ReportKind::HardwareStackError, lane));
        }
        let words = ((base + function.local_size) / 8) as usize;
        if self.state.local.len() < words {
            self.state.local.resize(words, Row::splat(0));
        }
        for (&source, &(target, size)) in site.arguments.iter().zip(&function.params) {
            self.copy_local(caller_base + source, base + target, size, lanes);
        }
        if worker.launch.program.checking.uninitialized {
            self.state.written.enter(base, function.local_size, lanes);
            for (&source, &(target, size)) in site.arguments.iter().zip(&function.params) {
                self.state
                    .written
                    .copy(caller_base + source, base + target, size, lanes);
            }
        }
        let new = self.new_frame();
        let frame = &mut self.frames[new as usize];
        frame.reset(callee, worker.launch.registers(callee));
        frame.local = base;
        frame.lanes = lanes;
        frame.caller = Some(Caller { frame: caller, pc });
        let fragment = &mut self.fragments[index];
        fragment.frame = new;
        fragment.depth = depth + 1;
        fragment.pc = 0;
        Ok(())
    }

    /// Returns to the caller, or ends the threads of a kernel.
    fn leave(&mut self, index: usize, block: &mut BlockState, worker: &Worker<'_>) {
        let Fragment { mask, frame, .. } = self.fragments[index];
        let from = &self.frames[frame as usize];
        let Some(caller) = from.caller else {
            return self.exit(index, block);
        };
        let base = from.local;
        let returns = &worker.function(from.function).returns;
        let to = &self.frames[caller.frame as usize];
        let caller_base = to.local;
        let op = &worker.code(to.function)[caller.pc as usize];
        let site = &worker.function(to.function).calls[op.table_index()];
        for (&target, &(source, size)) in site.results.iter().zip(returns) {
            self.copy_local(base + source, caller_base + target, size, mask);
            if worker.launch.program.checking.uninitialized {
                self.state
                    .written
                    .copy(base + source, caller_base + target, size, mask);
            }
        }
        // A return releases the memory that the function allocated with `alloca`.
        for lane in Lanes(mask) {
            self.state.alloca_end[lane] = self.state.alloca_end[lane].min(base);
        }
        self.release(frame, mask);
        let fragment = &mut self.fragments[index];
        fragment.frame = caller.frame;
        fragment.depth -= 1;
        fragment.pc = caller.pc + 1;
    }

    /// Ends the threads of a fragment.
    pub(crate) fn exit(&mut self, index: usize, block: &mut BlockState) {
        let fragment = self.fragments.swap_remove(index);
        let mut frame = Some(fragment.frame);
        while let Some(index) = frame {
            frame = self.frames[index as usize]
                .caller
                .map(|caller| caller.frame);
            self.release(index, fragment.mask);
        }
        self.state.live &= !fragment.mask;
        block.exit(fragment.mask.count_ones());
    }

    fn release(&mut self, frame: u32, lanes: u32) {
        let target = &mut self.frames[frame as usize];
        target.lanes &= !lanes;
        if target.lanes == 0 {
            self.free.push(frame);
        }
    }

    pub(crate) fn new_frame(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame::default());
            self.frames.len() as u32 - 1
        })
    }

    /// Copies between local variables, whose sizes are whole words.
    fn copy_local(&mut self, source: u64, target: u64, size: u64, lanes: u32) {
        for word in 0..size.div_ceil(8) {
            let values = self.state.local[(source / 8 + word) as usize].0;
            self.state.local[(target / 8 + word) as usize].merge(&values, lanes);
        }
    }
}

/// Returns the callee of the first lane, and the lanes with the same callee.
fn callee(
    site: &CallSite,
    frame: &Frame,
    mask: u32,
    worker: &Worker<'_>,
) -> Result<(u32, u32), Trap> {
    let register = match site.callee {
        Callee::Direct(function) => return Ok((function, mask)),
        Callee::Indirect(register) => register,
    };
    let row = frame.row::<u64>(register);
    let leader = mask.trailing_zeros() as usize;
    let address = row[leader];
    let index = worker.launch.program.function_at(address);
    let Some((index, function)) = index else {
        return Err(Trap::new(ReportKind::InvalidProgramCounter, leader));
    };
    if function.params.len() != site.arguments.len() || function.returns.len() != site.results.len()
    {
        return Err(Trap::new(ReportKind::InvalidProgramCounter, leader));
    }
    let same = Lanes(mask).filter(|&lane| row[lane] == address);
    Ok((index, same.fold(0, |lanes, lane| lanes | 1 << lane)))
}
