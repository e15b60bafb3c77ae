//! Instructions that communicate among the lanes of a warp.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{Exchanged, Handler, NO_REGISTER, Role};
use crate::exec::ops::warp_wide::{
    run_active_mask, run_ballot, run_elect, run_match_all, run_match_any, run_reduce,
    run_reduce_float, run_vote, run_warp_barrier, shuffle_handler,
};
use crate::syntax::{
    Instruction, Keyword, Modifier, Opcode, Operand, Operation, ScalarType, VoteMode,
};

impl Lowerer<'_> {
    /// `shfl`, `vote`, `activemask`, `match`, `redux`.
    pub(super) fn warp_wide(&mut self, instruction: &Instruction) -> Lowered {
        match instruction.opcode {
            Opcode::Activemask => {
                let [destination] = &instruction.operands[..] else {
                    return Err(Refusal::form(instruction));
                };
                let d = self.destination(destination, ScalarType::B32)?;
                self.emit(run_active_mask, d, [0; 3]);
                Ok(())
            }
            Opcode::Shfl => self.shuffle(instruction),
            Opcode::Vote => self.vote(instruction),
            Opcode::Redux => self.reduce(instruction),
            _ => self.matching(instruction),
        }
    }

    /// `bar.warp.sync`.
    pub(super) fn warp_barrier(&mut self, instruction: &Instruction) -> Lowered {
        let [mask] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mask = self.source(mask, ScalarType::B32)?;
        let op = self.diverging(run_warp_barrier);
        op.imm = u64::from(mask);
        op.role = Role::Collective(Exchanged::None);
        Ok(())
    }

    /// `elect`: elects one lane of the member mask.
    pub(super) fn elect(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Pair(register, elected), members] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let register = register.map_or(Operand::Sink, Operand::Register);
        let members = self.members(Some(members))?;
        let d = self.destination(&register, ScalarType::B32)?;
        let e = self.predicate_destination(*elected)?;
        let op = self.diverging(run_elect);
        (op.d, op.e, op.imm) = (d, e, members);
        op.role = Role::Collective(Exchanged::None);
        Ok(())
    }

    fn shuffle(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, value, lane, clamp, members @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mode = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Shuffle(mode) => Some(*mode),
                _ => None,
            });
        let run = mode
            .and_then(shuffle_handler)
            .ok_or_else(|| Refusal::form(instruction))?;
        let a = self.source(value, ScalarType::B32)?;
        let b = self.source(lane, ScalarType::B32)?;
        let c = self.source(clamp, ScalarType::B32)?;
        let members = self.members(members.first())?;
        let sink = Operand::Sink;
        let (register, valid) = match destination {
            Operand::Pair(register, valid) => (register.map(Operand::Register), *valid),
            other => (Some(other.clone()), None),
        };
        let d = self.destination(register.as_ref().unwrap_or(&sink), ScalarType::B32)?;
        let e = match valid {
            Some(register) => self.predicate_register(register)?,
            None => NO_REGISTER,
        };
        let op = self.diverging(run);
        (op.a, op.b, op.c, op.d, op.e, op.imm) = (a, b, c, d, e, members);
        op.role = Role::Collective(Exchanged::Words);
        Ok(())
    }

    fn vote(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, source, members @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mode = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Vote(mode) => Some(*mode),
                _ => None,
            });
        let (a, negate) = self.predicate_source(source)?;
        let members = self.members(members.first())?;
        let (run, d): (Handler, u32) = match (mode, destination) {
            (Some(VoteMode::Ballot), register) => {
                (run_ballot, self.destination(register, ScalarType::B32)?)
            }
            (mode, Operand::Register(register)) => {
                let run: Handler = match mode {
                    Some(VoteMode::All) => run_vote::<0>,
                    Some(VoteMode::Any) => run_vote::<1>,
                    _ => run_vote::<2>,
                };
                (run, self.predicate_register(*register)?)
            }
            _ => return Err(Refusal::operand("a predicate")),
        };
        let op = self.diverging(run);
        (op.a, op.b, op.d, op.imm) = (a, negate, d, members);
        op.role = Role::Collective(Exchanged::Predicate);
        Ok(())
    }

    fn reduce(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source, members], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let operation = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Operation(operation) => Some(*operation),
                _ => None,
            });
        let absolute = instruction.has_keyword(Keyword::Abs);
        let nan = instruction.has(Modifier::Nan);
        if (absolute || nan) && scalar != ScalarType::F32 {
            return Err(Refusal::form(instruction));
        }
        let run: Handler = match (operation, scalar) {
            (Some(Operation::Min), ScalarType::F32) if nan => run_reduce_float::<false, true>,
            (Some(Operation::Min), ScalarType::F32) => run_reduce_float::<false, false>,
            (Some(Operation::Max), ScalarType::F32) if nan => run_reduce_float::<true, true>,
            (Some(Operation::Max), ScalarType::F32) => run_reduce_float::<true, false>,
            (Some(Operation::Add), ScalarType::U32 | ScalarType::S32) => run_reduce::<0>,
            (Some(Operation::Min), ScalarType::U32) => run_reduce::<1>,
            (Some(Operation::Max), ScalarType::U32) => run_reduce::<2>,
            (Some(Operation::Min), ScalarType::S32) => run_reduce::<3>,
            (Some(Operation::Max), ScalarType::S32) => run_reduce::<4>,
            (Some(Operation::And), ScalarType::B32) => run_reduce::<5>,
            (Some(Operation::Or), ScalarType::B32) => run_reduce::<6>,
            (Some(Operation::Xor), ScalarType::B32) => run_reduce::<7>,
            _ => return Err(Refusal::form(instruction)),
        };
        let a = self.source(source, ScalarType::B32)?;
        let members = self.members(Some(members))?;
        let d = self.destination(destination, ScalarType::B32)?;
        let op = self.diverging(run);
        (op.a, op.d, op.imm, op.e) = (a, d, members, u32::from(absolute));
        op.role = Role::Collective(Exchanged::Reduced);
        Ok(())
    }

    fn matching(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source, members], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let wide = scalar == ScalarType::B64;
        let all = instruction.has(Modifier::Vote(VoteMode::All));
        if !(wide || scalar == ScalarType::B32)
            || !(all || instruction.has(Modifier::Vote(VoteMode::Any)))
        {
            return Err(Refusal::form(instruction));
        }
        let a = self.source(source, scalar)?;
        let members = self.members(Some(members))?;
        let sink = Operand::Sink;
        let (register, agrees) = match destination {
            Operand::Pair(register, agrees) => (register.map(Operand::Register), *agrees),
            other => (Some(other.clone()), None),
        };
        let d = self.destination(register.as_ref().unwrap_or(&sink), ScalarType::B32)?;
        let e = match agrees {
            Some(register) => self.predicate_register(register)?,
            None => NO_REGISTER,
        };
        let run: Handler = match (all, wide) {
            (false, false) => run_match_any::<false>,
            (false, true) => run_match_any::<true>,
            (true, false) => run_match_all::<false>,
            (true, true) => run_match_all::<true>,
        };
        let op = self.diverging(run);
        (op.a, op.d, op.e, op.imm) = (a, d, e, members);
        op.role = Role::Collective(if wide {
            Exchanged::Double
        } else {
            Exchanged::Words
        });
        Ok(())
    }

    /// Returns the row of a member mask, or `NO_REGISTER` for the active lanes.
    fn members(&mut self, operand: Option<&Operand>) -> Lowered<u64> {
        Ok(match operand {
            Some(operand) => u64::from(self.source(operand, ScalarType::B32)?),
            None => u64::from(NO_REGISTER),
        })
    }
}
