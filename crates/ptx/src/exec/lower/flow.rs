//! Branches, exits, and barriers.

use super::error::{Lowered, Refusal};
use super::function::{Fixup, Lowerer};
use crate::exec::machine::barrier::Reduction;
use crate::exec::machine::op::{Control, Handler, NO_REGISTER, Op, Role};
use crate::exec::ops::flow::{
    ARRIVE_ONLY, EVERYONE, HAS_VOTE, NEGATED_VOTE, run_barrier, run_cluster_arrive,
    run_cluster_wait, run_trap,
};
use crate::exec::run::aligned::run_check_aligned;
use crate::syntax::{
    Instruction, Keyword, LabelId, Modifier, Opcode, Operand, Operation, Parameter, ScalarType,
    Scope,
};

impl Lowerer<'_> {
    /// Lowers an instruction that may continue elsewhere than at the next one.
    pub(super) fn flow(&mut self, instruction: &Instruction) -> Lowered {
        match instruction.opcode {
            Opcode::Bra => {
                let [Operand::Label(label)] = instruction.operands[..] else {
                    return Err(Refusal::form(instruction));
                };
                self.fixups.push(Fixup::Branch(self.out.code.len(), label));
                self.push(Op::new(|_, _| Control::Branch)).role = Role::Branch;
                Ok(())
            }
            Opcode::Brx => {
                let [ref index, Operand::BranchTargets(list)] = instruction.operands[..] else {
                    return Err(Refusal::form(instruction));
                };
                let a = self.source(index, ScalarType::U32)?;
                let op = self.diverging(|_, _| Control::BranchIndexed);
                (op.a, op.imm) = (a, u64::from(list.0));
                op.role = Role::IndexedBranch;
                Ok(())
            }
            Opcode::Ret => {
                self.store_register_results()?;
                self.diverging(|_, _| Control::Return).role = Role::End;
                Ok(())
            }
            Opcode::Exit => {
                self.diverging(|_, _| Control::Exit).role = Role::End;
                Ok(())
            }
            Opcode::Trap | Opcode::Brkpt => {
                self.push(Op::new(run_trap));
                Ok(())
            }
            _ if instruction.has_keyword(Keyword::Warp) => self.warp_barrier(instruction),
            _ => self.barrier(instruction),
        }
    }

    /// Appends an instruction that either all lanes of its fragment execute, or none.
    pub(super) fn diverging(&mut self, run: Handler) -> &mut Op {
        let op = self.push(Op::new(run));
        op.splits = true;
        op
    }

    /// Appends the return after the last instruction.
    pub(super) fn end_function(&mut self) {
        self.diverging(|_, _| Control::Return).role = Role::End;
    }

    /// Sets the targets of branches once all code is there.
    pub(super) fn resolve_branches(&mut self) {
        for fixup in std::mem::take(&mut self.fixups) {
            let Fixup::Branch(op, label) = fixup;
            self.out.code[op].imm = u64::from(self.label_target(label));
        }
        let lists = self.function.branch_targets.iter();
        self.out.branch_tables = lists
            .map(|list| {
                list.labels
                    .iter()
                    .map(|&label| self.label_target(label))
                    .collect()
            })
            .collect();
    }

    fn label_target(&self, label: LabelId) -> u32 {
        let label = &self.function.labels[label.0 as usize];
        self.starts[label.instruction as usize]
    }

    /// Loads register parameters from the caller's memory.
    pub(super) fn load_register_parameters(&mut self) -> Lowered {
        for parameter in &self.function.parameters {
            if let Parameter::Register(register) = parameter
                && let Some(&home) = self.register_homes.get(register)
            {
                self.register_from_frame(*register, home)?;
            }
        }
        Ok(())
    }

    fn store_register_results(&mut self) -> Lowered {
        for parameter in &self.function.returns {
            if let Parameter::Register(register) = parameter
                && let Some(&home) = self.register_homes.get(register)
            {
                self.register_to_frame(*register, home)?;
            }
        }
        Ok(())
    }

    fn barrier(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has(Modifier::Scope(Scope::Cluster)) {
            self.order();
            let run = if instruction.has_keyword(Keyword::Arrive) {
                run_cluster_arrive
            } else {
                run_cluster_wait
            };
            self.fence();
            self.check_aligned(instruction, NO_REGISTER);
            self.diverging(run);
            return Ok(());
        }
        let reduces = instruction.has_keyword(Keyword::Red);
        let (destination, operands) = match &instruction.operands[..] {
            [destination, rest @ ..] if reduces => (Some(destination), rest),
            all => (None, all),
        };
        let (vote, operands) = match operands {
            [rest @ .., vote] if reduces => (Some(vote), rest),
            all => (None, all),
        };
        let a = match operands.first() {
            Some(number) => self.source(number, ScalarType::U32)?,
            None => self.word(0),
        };
        let c = match operands.get(1) {
            Some(count) => self.source(count, ScalarType::U32)?,
            None => EVERYONE,
        };
        let (d, reduction) = match destination {
            None => (0, Reduction::None),
            Some(destination) => self.reduction(instruction, destination)?,
        };
        let (b, vote) = match vote {
            None => (0, 0),
            Some(vote) => {
                let (predicate, negate) = self.predicate_source(vote)?;
                let negated = if negate == 0 { 0 } else { NEGATED_VOTE };
                (predicate, HAS_VOTE | negated)
            }
        };
        let arrive = if instruction.has_keyword(Keyword::Arrive) {
            ARRIVE_ONLY
        } else {
            0
        };
        self.check_aligned(instruction, a);
        let op = self.diverging(run_barrier);
        (op.a, op.b, op.c, op.d, op.e) = (a, b, c, d, reduction as u32);
        op.imm = arrive | vote;
        Ok(())
    }

    /// Appends a check that all threads of a warp execute the barrier that follows, if it requires
    /// that.
    fn check_aligned(&mut self, instruction: &Instruction, number: u32) {
        let is_aligned =
            instruction.opcode == Opcode::Bar || instruction.has_keyword(Keyword::Aligned);
        if self.context.checking.races && is_aligned {
            let op = self.diverging(run_check_aligned);
            op.a = number;
            op.role = Role::CheckAligned;
        }
    }

    fn reduction(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
    ) -> Lowered<(u32, Reduction)> {
        if instruction.has_operation(Operation::PopulationCount) {
            return Ok((
                self.destination(destination, ScalarType::U32)?,
                Reduction::Count,
            ));
        }
        let Operand::Register(register) = destination else {
            return Err(Refusal::operand("a predicate"));
        };
        let reduction = if instruction.has_operation(Operation::And) {
            Reduction::All
        } else {
            Reduction::Any
        };
        Ok((self.predicate_register(*register)?, reduction))
    }
}
