//! Handlers by the number of operands.

use super::{is_inlined, operation, versions, write};
use crate::exec::frame::InFile;
use crate::exec::lane::{LANES, Lane};
use crate::exec::op::{Control, Handler, Op};
use crate::exec::unit::Unit;

macro_rules! arity {
    ($(#[$doc:meta])* $pick:ident = $run:ident($($operand:ident: $ty:ident),+)) => {
        versions! {
            $(#[$doc])*
            $pick(_operation: F) = $run [$($ty,)+ D, F; WIDE]
            where
                $($ty: Lane<Raw: InFile>,)+ D: Lane<Raw: InFile>, F: Fn($($ty),+) -> D + Copy + 'static
        }

        #[inline(always)]
        fn $run<$($ty,)+ D, F, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control
        where
            $($ty: Lane<Raw: InFile>,)+
            D: Lane<Raw: InFile>,
            F: Fn($($ty),+) -> D + Copy + 'static,
        {
            #[inline(always)]
            fn run<$($ty: InFile,)+ D: InFile>(unit: &mut Unit<'_>, op: &Op, f: impl Fn($($ty),+) -> D) -> Control {
                $(let $operand = unit.frame.row::<$ty>(op.$operand);)+
                let mut result = [D::default(); LANES];
                for lane in 0..LANES {
                    result[lane] = f($($operand[lane]),+);
                }
                write(unit, op.d, &result);
                Control::Next
            }

            #[inline(never)]
            fn run_by_lane<$($ty: InFile,)+ D: InFile>(unit: &mut Unit<'_>, op: &Op, f: fn($($ty),+) -> D) -> Control {
                run(unit, op, f)
            }

            let f = |$($operand: $ty::Raw),+| operation::<F>()($($ty::from_raw($operand)),+).into_raw();
            if is_inlined(WIDE) { run(unit, op, f) } else { run_by_lane(unit, op, f) }
        }
    };
}

arity! {
    /// `d = f(a)`.
    unary = run_unary(a: A)
}

arity! {
    /// `d = f(a, b)`.
    binary = run_binary(a: A, b: B)
}

arity! {
    /// `d = f(a, b, c)`.
    ternary = run_ternary(a: A, b: B, c: C)
}

arity! {
    /// `d = f(a, b, c, e)`.
    quaternary = run_quaternary(a: A, b: B, c: C, e: E)
}
