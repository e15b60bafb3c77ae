//! mbarrier objects in shared memory, and addresses in other blocks of the cluster.

use super::asynchronous::{address_space, state};
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::op::{Handler, Op};
use crate::exec::ops::barrier_object::{
    ARRIVE, COMPLETE, DROP, EXPECT, EXPECT_AND_ARRIVE, EXPECT_AND_DROP, INIT, INVALIDATE,
    pending_count, run_map_address, run_rank, run_test, run_update,
};
use crate::exec::ops::handler::moves::{copy, lower_word};
use crate::syntax::{Instruction, Keyword, Operand, ScalarType};

impl Lowerer<'_> {
    /// `mbarrier`.
    pub(super) fn barrier_object(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::PendingCount) {
            let [destination, state] = &instruction.operands[..] else {
                return Err(Refusal::form(instruction));
            };
            let a = self.source(state, ScalarType::B64)?;
            let d = self.destination(destination, ScalarType::U32)?;
            self.emit(pending_count(), d, [a, 0, 0]);
            return Ok(());
        }
        if instruction.has_keyword(Keyword::TestWait) || instruction.has_keyword(Keyword::TryWait) {
            return self.test_barrier_object(instruction);
        }
        let (destination, rest) = match &instruction.operands[..] {
            [Operand::Address(address), rest @ ..] => (None, (*address, rest)),
            [destination, Operand::Address(address), rest @ ..] => {
                (Some(destination), (*address, rest))
            }
            _ => return Err(Refusal::form(instruction)),
        };
        let (address, operands) = rest;
        let run: Handler = if instruction.has_keyword(Keyword::Init) {
            run_update::<INIT>
        } else if instruction.has_keyword(Keyword::Inval) {
            run_update::<INVALIDATE>
        } else if instruction.has_keyword(Keyword::ArriveDrop) {
            if instruction.has_keyword(Keyword::ExpectTx) {
                run_update::<EXPECT_AND_DROP>
            } else {
                run_update::<DROP>
            }
        } else if instruction.has_keyword(Keyword::Arrive) {
            if instruction.has_keyword(Keyword::ExpectTx) {
                run_update::<EXPECT_AND_ARRIVE>
            } else {
                run_update::<ARRIVE>
            }
        } else if instruction.has_keyword(Keyword::ExpectTx) {
            run_update::<EXPECT>
        } else if instruction.has_keyword(Keyword::CompleteTx) {
            run_update::<COMPLETE>
        } else {
            return Err(Refusal::form(instruction));
        };
        let a = self.address_row(address)?;
        let b = match operands.first() {
            Some(count) => self.source(count, ScalarType::U32)?,
            None => self.word(1),
        };
        let d = self.destination(destination.unwrap_or(&Operand::Sink), ScalarType::B64)?;
        self.fence();
        let space = address_space(state(instruction, 0));
        self.push(Op {
            a,
            b,
            d,
            space,
            ..Op::new(run)
        });
        Ok(())
    }

    fn test_barrier_object(&mut self, instruction: &Instruction) -> Lowered {
        let [
            Operand::Register(destination),
            Operand::Address(address),
            phase,
            ..,
        ] = &instruction.operands[..]
        else {
            return Err(Refusal::form(instruction));
        };
        let by_parity = instruction.has_keyword(Keyword::Parity);
        let a = self.address_row(*address)?;
        let b = if by_parity {
            self.source(phase, ScalarType::U32)?
        } else {
            self.source(phase, ScalarType::B64)?
        };
        let d = self.predicate_register(*destination)?;
        let run: Handler = if by_parity {
            run_test::<true>
        } else {
            run_test::<false>
        };
        let space = address_space(state(instruction, 0));
        self.push(Op {
            a,
            b,
            d,
            space,
            ..Op::new(run)
        });
        self.fence();
        Ok(())
    }

    /// `mapa`, `getctarank`: the address in another block of the cluster, and the rank of an
    /// address's block.
    pub(super) fn map_address(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, address, rest @ ..], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let a = self.source(address, scalar)?;
        let a = self.source_slot(
            if scalar.bits() == 64 {
                Slot::Double(a)
            } else {
                Slot::Word(a)
            },
            true,
        )?;
        let generic = u64::from(state(instruction, 0).is_none());
        match rest {
            [rank] => {
                let b = self.source(rank, ScalarType::U32)?;
                let wide = self.new_double();
                self.emit(run_map_address, wide, [a, b, 0]).imm = generic;
                let d = self.destination(destination, scalar)?;
                let run = if scalar.bits() == 64 {
                    copy::<u64>()
                } else {
                    lower_word()
                };
                self.emit(run, d, [wide, 0, 0]);
            }
            [] => {
                let d = self.destination(destination, ScalarType::U32)?;
                self.emit(run_rank, d, [a, 0, 0]).imm = generic;
            }
            _ => return Err(Refusal::form(instruction)),
        }
        Ok(())
    }
}
