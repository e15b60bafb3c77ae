//! Queries of textures and surfaces: `txq`, `suq`, `istypep`.

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::image::Query;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::Lanes;

/// The row of an absent level.
pub(crate) const NO_LEVEL: u32 = u32::MAX;

pub(crate) fn run_texture_query(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let level = if op.b == NO_LEVEL {
            0
        } else {
            unit.frame.row::<u32>(op.b)[lane]
        };
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let Some(texture) = unit.launch.runtime.texture(handle) else {
            return unit.fault(Trap::new(ReportKind::IllegalAddress, lane));
        };
        unit.frame.row_mut::<u32>(op.d).0[lane] = texture.query(Query::from_number(op.imm), level);
    }
    Control::Next
}

pub(crate) fn run_surface_query(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let Some(surface) = unit.launch.runtime.surface(handle) else {
            return unit.fault(Trap::new(ReportKind::IllegalAddress, lane));
        };
        unit.frame.row_mut::<u32>(op.d).0[lane] = surface.query(Query::from_number(op.imm));
    }
    Control::Next
}

pub(crate) fn run_false(unit: &mut Unit<'_>, op: &Op) -> Control {
    unit.frame.set_predicate(op.d, 0, unit.active);
    Control::Next
}
