//! The video instructions: arithmetic on bytes, halves and words that are selected from registers.

use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::LANES;

/// Runs `vadd` and the other video instructions.
pub(crate) fn run_video(unit: &mut Unit<'_>, op: &Op) -> Control {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let video = &function.videos[op.table_index()];
    let [a, b, c] = [op.a, op.b, op.c].map(|row| unit.frame.row::<u32>(row));
    let mut result = [0; LANES];
    for (lane, value) in result.iter_mut().enumerate() {
        *value = video.apply(a[lane], b[lane], c[lane]);
    }
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}
