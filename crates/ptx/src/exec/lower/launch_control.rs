//! `clusterlaunchcontrol`: a running cluster cancels one that has not started, and takes over its
//! work.
//!
//! The layout of a response's 128 bits is opaque in PTX. Here the lower 64 bits hold the first
//! block's index in x and y. The upper 64 bits hold the index in z, and above it the flag of a
//! canceled cluster.

use super::address::state;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{Handler, Op};
use crate::exec::memory::window::SHARED_WINDOW;
use crate::exec::ops::handler::moves::{lower_word, upper_word};
use crate::exec::ops::launch_control::{run_is_canceled, run_take_over};
use crate::syntax::{Instruction, Keyword, Operand, ScalarType};

impl Lowerer<'_> {
    /// `clusterlaunchcontrol`.
    pub(super) fn control_launch(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::TryCancel) {
            self.take_over(instruction)
        } else {
            self.query_response(instruction)
        }
    }

    /// `.try_cancel`
    fn take_over(&mut self, instruction: &Instruction) -> Lowered {
        let is_complete = instruction.has_keyword(Keyword::Async)
            && instruction.has_keyword(Keyword::MbarrierCompleteTxBytes);
        let ([Operand::Address(response), Operand::Address(barrier)], true) =
            (&instruction.operands[..], is_complete)
        else {
            return Err(Refusal::form(instruction));
        };
        if instruction.types().ne([ScalarType::B128]) {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(*response)?;
        let b = self.address_row(*barrier)?;
        let run: Handler = if instruction.has_keyword(Keyword::MulticastClusterAll) {
            run_take_over::<true>
        } else {
            run_take_over::<false>
        };
        self.fence();
        // Addresses are relative to the shared memory window, unless they are generic.
        let window = if state(instruction).is_none() {
            SHARED_WINDOW
        } else {
            0
        };
        self.push(Op {
            a,
            b,
            ..Op::new(run)
        })
        .imm = window;
        Ok(())
    }

    /// `.query_cancel`
    fn query_response(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, response] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        if !instruction.has_keyword(Keyword::QueryCancel)
            || instruction.types().last() != Some(ScalarType::B128)
        {
            return Err(Refusal::form(instruction));
        }
        let [low, high] = self.quad(response)?;
        match destination {
            Operand::Register(register) if instruction.has_keyword(Keyword::IsCanceled) => {
                let d = self.predicate_register(*register)?;
                self.push(Op {
                    a: high,
                    d,
                    ..Op::new(run_is_canceled)
                });
                Ok(())
            }
            Operand::Vector(parts)
                if instruction.has_keyword(Keyword::GetFirstCtaid) && parts.len() == 4 =>
            {
                for (part, axis) in parts.iter().zip(0..3) {
                    self.index(part, axis, [low, high])?;
                }
                Ok(())
            }
            single => {
                let words = [
                    Keyword::GetFirstCtaidX,
                    Keyword::GetFirstCtaidY,
                    Keyword::GetFirstCtaidZ,
                ];
                let axis = words
                    .into_iter()
                    .position(|keyword| instruction.has_keyword(keyword))
                    .ok_or_else(|| Refusal::form(instruction))?;
                self.index(single, axis, [low, high])
            }
        }
    }

    /// Loads one component of the first block's index.
    fn index(&mut self, destination: &Operand, axis: usize, [low, high]: [u32; 2]) -> Lowered {
        let d = self.destination(destination, ScalarType::B32)?;
        let (run, a) = [
            (lower_word(), low),
            (upper_word(), low),
            (lower_word(), high),
        ][axis];
        self.emit(run, d, [a, 0, 0]);
        Ok(())
    }
}
