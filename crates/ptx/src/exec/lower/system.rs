//! Functions that every module may call without a definition: `vprintf`, `malloc`, `free`,
//! `__assertfail` and `cudaGraphSetConditional`.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::RuntimeUse;
use crate::exec::machine::op::Op;
use crate::exec::ops::handler::moves::copy;
use crate::exec::ops::system::{run_allocate, run_assertion, run_condition, run_free, run_print};
use crate::syntax::{Call, Operand, ScalarType, Symbol};

/// Returns `true` if every module may call the function without a definition.
#[must_use]
pub fn is_system_function(name: &str) -> bool {
    matches!(
        name,
        "vprintf"
            | "malloc"
            | "free"
            | "cudaGraphSetConditional"
            | "__assertfail"
            | "__assert_fail"
    )
}

impl Lowerer<'_> {
    /// Lowers a call of a device runtime function.
    pub(super) fn system_call(&mut self, name: &str, call: &Call) -> Lowered {
        let run = match (name, call.arguments.len()) {
            ("vprintf", 2) => run_print,
            ("malloc", 1) => run_allocate,
            ("free", 1) => run_free,
            ("cudaGraphSetConditional", 2) => run_condition,
            ("__assertfail" | "__assert_fail", 4 | 5) => run_assertion,
            _ => return Err(Refusal(format!("unresolved extern function `{name}`"))),
        };
        self.out.runtime.add(RuntimeUse {
            prints: name == "vprintf",
            allocates: matches!(name, "malloc" | "free"),
        });
        let mut rows = [0; 4];
        for (row, argument) in rows.iter_mut().zip(&call.arguments) {
            let offset = self.argument(argument)?;
            *row = self.new_double();
            self.copy_from_frame(Slot::Double(*row), offset)?;
        }
        let d = self.new_double();
        let [a, b, c, e] = rows;
        // The runtime handles one thread after the other, and the lanes continue together.
        let op = self.push(Op {
            d,
            a,
            b,
            c,
            e,
            ..Op::new(run)
        });
        op.splits = true;
        if let Some(result) = call.returns.first() {
            match result {
                Operand::Symbol(Symbol::Local(id), 0) => {
                    let offset = self.frame_home(*id)?;
                    self.copy_to_frame(Slot::Double(d), offset)?;
                }
                Operand::Register(register) => {
                    let to = self.destination_slot(self.slot(*register), ScalarType::B64)?;
                    self.emit(copy::<u64>(), to, [d, 0, 0]);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
