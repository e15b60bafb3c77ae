//! Moves of predicates and of special registers: `mov`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::LANES;
use crate::syntax::SpecialRegister;

pub(crate) fn run_predicate_copy(unit: &mut Unit<'_>, op: &Op) -> Control {
    let value = unit.frame.predicate(op.a) ^ op.e;
    unit.frame.set_predicate(op.d, value, unit.active);
    Control::Next
}

/// The special registers, in the order of their numbers.
pub(crate) const REGISTERS: [SpecialRegister; 55] = {
    use SpecialRegister as S;
    [
        S::TidX,
        S::TidY,
        S::TidZ,
        S::NtidX,
        S::NtidY,
        S::NtidZ,
        S::CtaidX,
        S::CtaidY,
        S::CtaidZ,
        S::NctaidX,
        S::NctaidY,
        S::NctaidZ,
        S::Laneid,
        S::Warpid,
        S::Nwarpid,
        S::Smid,
        S::Nsmid,
        S::LanemaskEq,
        S::LanemaskLe,
        S::LanemaskLt,
        S::LanemaskGe,
        S::LanemaskGt,
        S::Clock,
        S::ClockHi,
        S::GlobaltimerLo,
        S::GlobaltimerHi,
        S::TotalSmemSize,
        S::DynamicSmemSize,
        S::AggrSmemSize,
        S::ClusteridX,
        S::ClusteridY,
        S::ClusteridZ,
        S::NclusteridX,
        S::NclusteridY,
        S::NclusteridZ,
        S::ClusterCtaidX,
        S::ClusterCtaidY,
        S::ClusterCtaidZ,
        S::ClusterNctaidX,
        S::ClusterNctaidY,
        S::ClusterNctaidZ,
        S::ClusterCtarank,
        S::ClusterNctarank,
        S::IsExplicitCluster,
        S::ReservedSmemOffsetBegin,
        S::ReservedSmemOffsetEnd,
        S::ReservedSmemOffsetCap,
        S::Gridid,
        S::Clock64,
        S::Globaltimer,
        S::CurrentGraphExec,
        S::Environment(0),
        S::Environment(1),
        S::Environment(2),
        S::PerformanceCounter(0),
    ]
};

/// Returns the row with the same value in every lane.
fn all(value: u32) -> [u32; LANES] {
    [value; LANES]
}

/// Returns the row with a value that depends on the lane.
fn per_lane(value: impl Fn(u32) -> u32) -> [u32; LANES] {
    std::array::from_fn(|lane| value(lane as u32))
}

pub(crate) fn run_special(unit: &mut Unit<'_>, op: &Op) -> Control {
    use SpecialRegister as S;
    let register = REGISTERS[op.table_index()];
    let [tid_x, tid_y, tid_z] = &unit.warp.thread;
    let launch = unit.launch;

    let row = match register {
        S::TidX => *tid_x,
        S::TidY => *tid_y,
        S::TidZ => *tid_z,
        S::NtidX => all(launch.block[0]),
        S::NtidY => all(launch.block[1]),
        S::NtidZ => all(launch.block[2]),
        S::CtaidX => all(unit.block.index[0]),
        S::CtaidY => all(unit.block.index[1]),
        S::CtaidZ => all(unit.block.index[2]),
        S::NctaidX => all(launch.grid[0]),
        S::NctaidY => all(launch.grid[1]),
        S::NctaidZ => all(launch.grid[2]),
        // Without clusters, per_lane block is its own cluster.
        S::ClusteridX => all(unit.block.index[0] / launch.cluster[0]),
        S::ClusteridY => all(unit.block.index[1] / launch.cluster[1]),
        S::ClusteridZ => all(unit.block.index[2] / launch.cluster[2]),
        S::NclusteridX => all(launch.grid[0] / launch.cluster[0]),
        S::NclusteridY => all(launch.grid[1] / launch.cluster[1]),
        S::NclusteridZ => all(launch.grid[2] / launch.cluster[2]),
        S::ClusterCtaidX => all(unit.block.index[0] % launch.cluster[0]),
        S::ClusterCtaidY => all(unit.block.index[1] % launch.cluster[1]),
        S::ClusterCtaidZ => all(unit.block.index[2] % launch.cluster[2]),
        S::ClusterNctaidX => all(launch.cluster[0]),
        S::ClusterNctaidY => all(launch.cluster[1]),
        S::ClusterNctaidZ => all(launch.cluster[2]),
        S::ClusterCtarank => all(unit.block.rank),
        S::ClusterNctarank => all(launch.cluster_size() as u32),
        S::IsExplicitCluster => all(u32::from(launch.cluster != [1; 3])),
        S::Laneid => per_lane(|lane| lane),
        S::Warpid => all(unit.warp.index),
        S::Nwarpid => all(launch.device.max_threads_per_block.div_ceil(32)),
        S::Smid => {
            all((unit.block.number % u64::from(launch.device.multiprocessors.max(1))) as u32)
        }
        S::Nsmid => all(launch.device.multiprocessors),
        S::LanemaskEq => per_lane(|lane| 1 << lane),
        S::LanemaskLt => per_lane(|lane| (1 << lane) - 1),
        S::LanemaskLe => per_lane(|lane| u32::MAX >> (31 - lane)),
        S::LanemaskGe => per_lane(|lane| u32::MAX << lane),
        S::LanemaskGt => per_lane(|lane| !(u32::MAX >> (31 - lane))),
        S::Clock => all(clock(unit) as u32),
        S::ClockHi => all((clock(unit) >> 32) as u32),
        S::GlobaltimerLo => all(nanoseconds() as u32),
        S::GlobaltimerHi => all((nanoseconds() >> 32) as u32),
        S::TotalSmemSize | S::AggrSmemSize => all(launch.shared_size),
        S::DynamicSmemSize => all(launch.dynamic_shared),
        // CUDA's headers read the address from these two registers, the upper half first.
        S::Environment(1) => all((launch.workspace >> 32) as u32),
        S::Environment(2) => all(launch.workspace as u32),
        _ => all(0),
    };
    unit.frame.row_mut::<u32>(op.d).merge(&row, unit.active);
    Control::Next
}

pub(crate) fn run_wide_special(unit: &mut Unit<'_>, op: &Op) -> Control {
    let value = match REGISTERS[op.table_index()] {
        SpecialRegister::Clock64 => clock(unit),
        SpecialRegister::Globaltimer => nanoseconds(),
        SpecialRegister::Gridid => 1,
        _ => 0,
    };
    unit.frame
        .row_mut::<u64>(op.d)
        .merge(&[value; LANES], unit.active);
    Control::Next
}

/// Returns the ticks of the device's clock since the launch began.
fn clock(unit: &Unit<'_>) -> u64 {
    let elapsed = unit.launch.started.elapsed().as_nanos();
    (elapsed * u128::from(unit.launch.device.clock_khz) / 1_000_000) as u64
}

/// Returns the nanoseconds of the host's clock.
fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_nanos() as u64)
}
