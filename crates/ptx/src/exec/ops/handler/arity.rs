//! Handlers by the number of operands.

use super::{is_inlined, recreate, versions, write};
use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::lane::{LANES, Lane};

macro_rules! arity {
    ($(#[$doc:meta])* $pick:ident = $run:ident($($operand:ident: $ty:ident),+)) => {
        versions! {
            $(#[$doc])*
            $pick(operation: F) = $run [$($ty,)+ D, F; WIDE]
            where
                $($ty: Lane<Raw: InFile>,)+ D: Lane<Raw: InFile>, F: Fn($($ty),+) -> D + Copy + Send + 'static
        }

        #[inline(always)]
        fn $run<$($ty,)+ D, F, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op, operation: F) -> Control
        where
            $($ty: Lane<Raw: InFile>,)+
            D: Lane<Raw: InFile>,
            F: Fn($($ty),+) -> D + Copy + Send + 'static,
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

            fn pointer<$($ty,)+ D, F>(_operation: F) -> fn($($ty),+) -> D
            where
                F: Fn($($ty),+) -> D + Copy + Send + 'static,
            {
                // SAFETY: this function received a value of `F`.
                |$($operand),+| unsafe { recreate::<F>() }($($operand),+)
            }

            let f = move |$($operand: $ty::Raw),+| operation($($ty::from_raw($operand)),+).into_raw();
            if is_inlined(WIDE) { run(unit, op, f) } else { run_by_lane(unit, op, pointer(f)) }
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
