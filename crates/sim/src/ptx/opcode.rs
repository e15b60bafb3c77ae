//! The operations of the PTX ISA.

use std::fmt;

/// The table of instructions: calls a macro with a row for each opcode, in the order of their spellings.
///
/// A row has the variant of [`Opcode`], the spelling, and
/// 1. the method of `validate::Context` that checks the form; `any_form` leaves that to the lowering,
/// 2. the method of `exec::lower`'s `Lowerer` that lowers it; `unsupported` refuses it by name,
/// 3. what it does to the order of accesses by other threads ([`Effect`]).
macro_rules! for_each_opcode {
    ($callback:ident) => {
        $callback! {
            Abs "abs" unary arithmetic alone;
            Activemask "activemask" any_form warp_wide joins;
            Add "add" sum sum_with_carry alone;
            Addc "addc" any_form extended alone;
            Alloca "alloca" any_form stack alone;
            And "and" logic logic alone;
            Applypriority "applypriority" any_form hint alone;
            Atom "atom" atomic returning_atomic orders;
            Bar "bar" barrier flow joins;
            Barrier "barrier" any_form flow joins;
            Bfe "bfe" any_form arithmetic alone;
            Bfi "bfi" any_form arithmetic alone;
            Bfind "bfind" any_form arithmetic alone;
            Bmsk "bmsk" any_form arithmetic alone;
            Bra "bra" branch flow alone;
            Brev "brev" any_form arithmetic alone;
            Brkpt "brkpt" any_form flow alone;
            Brx "brx" any_form flow alone;
            Call "call" call call alone;
            Clusterlaunchcontrol "clusterlaunchcontrol" any_form control_launch orders;
            Clz "clz" any_form arithmetic alone;
            Cnot "cnot" any_form arithmetic alone;
            Copysign "copysign" any_form arithmetic alone;
            Cos "cos" any_form arithmetic alone;
            Cp "cp" any_form copy_asynchronously orders;
            Createpolicy "createpolicy" any_form create_policy alone;
            Cvt "cvt" convert convert alone;
            Cvta "cvta" convert_address convert_address alone;
            Discard "discard" any_form hint alone;
            Div "div" quotient arithmetic alone;
            Dp2a "dp2a" any_form arithmetic alone;
            Dp4a "dp4a" any_form arithmetic alone;
            Elect "elect" any_form elect joins;
            Ex2 "ex2" function_of_one arithmetic alone;
            Exit "exit" any_form flow alone;
            Fence "fence" any_form memory_fence orders;
            Fma "fma" fused arithmetic alone;
            Fns "fns" any_form arithmetic alone;
            Getctarank "getctarank" any_form map_address alone;
            Griddepcontrol "griddepcontrol" any_form hint alone;
            Isspacep "isspacep" any_form is_in_space alone;
            Istypep "istypep" any_form is_reference alone;
            Ld "ld" load load alone;
            Ldmatrix "ldmatrix" any_form move_small_matrices joins;
            Ldu "ldu" load load alone;
            Lg2 "lg2" any_form arithmetic alone;
            Lop3 "lop3" any_form table_logic alone;
            Mad "mad" product sum_with_carry alone;
            Mad24 "mad24" any_form arithmetic alone;
            Madc "madc" any_form extended alone;
            Mapa "mapa" any_form map_address alone;
            Match "match" any_form warp_wide joins;
            Max "max" sum arithmetic alone;
            Mbarrier "mbarrier" barrier_object barrier_object orders;
            Membar "membar" any_form memory_fence orders;
            Min "min" sum arithmetic alone;
            Mma "mma" any_form multiply_matrices joins;
            Mov "mov" mov mov alone;
            Movmatrix "movmatrix" any_form transpose_matrix joins;
            Mul "mul" product arithmetic alone;
            Mul24 "mul24" any_form arithmetic alone;
            Multimem "multimem" any_form unsupported orders;
            Nanosleep "nanosleep" any_form hint alone;
            Neg "neg" unary arithmetic alone;
            Not "not" unary logic alone;
            Or "or" logic logic alone;
            Pmevent "pmevent" any_form hint alone;
            Popc "popc" any_form arithmetic alone;
            Prefetch "prefetch" any_form hint alone;
            Prefetchu "prefetchu" any_form hint alone;
            Prmt "prmt" any_form arithmetic alone;
            Rcp "rcp" function_of_one arithmetic alone;
            Red "red" reduction any_reduction orders;
            Redux "redux" any_form warp_wide joins;
            Rem "rem" any_form arithmetic alone;
            Ret "ret" nothing flow alone;
            Rsqrt "rsqrt" any_form arithmetic alone;
            Sad "sad" any_form arithmetic alone;
            Selp "selp" select select alone;
            Set "set" any_form set alone;
            Setmaxnreg "setmaxnreg" any_form hint alone;
            Setp "setp" compare set_predicate alone;
            Shf "shf" any_form arithmetic alone;
            Shfl "shfl" shuffle warp_wide joins;
            Shl "shl" shift arithmetic alone;
            Shr "shr" shift arithmetic alone;
            Sin "sin" any_form arithmetic alone;
            Slct "slct" any_form select_by_sign alone;
            Sqrt "sqrt" function_of_one arithmetic alone;
            St "st" store any_store alone;
            Stackrestore "stackrestore" any_form stack alone;
            Stacksave "stacksave" any_form stack alone;
            Stmatrix "stmatrix" any_form move_small_matrices joins;
            Sub "sub" sum sum_with_carry alone;
            Subc "subc" any_form extended alone;
            Suld "suld" any_form load_surface alone;
            Suq "suq" any_form query_image alone;
            Sured "sured" any_form reduce_surface alone;
            Sust "sust" any_form store_surface alone;
            Szext "szext" any_form arithmetic alone;
            Tanh "tanh" any_form arithmetic alone;
            Tcgen05 "tcgen05" any_form unsupported alone;
            Tensormap "tensormap" any_form replace_in_tensor_map alone;
            Testp "testp" any_form test_property alone;
            Tex "tex" any_form texture alone;
            Tld4 "tld4" any_form gather_texture alone;
            Trap "trap" any_form flow alone;
            Txq "txq" any_form query_image alone;
            Vabsdiff "vabsdiff" any_form video alone;
            Vabsdiff2 "vabsdiff2" any_form video alone;
            Vabsdiff4 "vabsdiff4" any_form video alone;
            Vadd "vadd" any_form video alone;
            Vadd2 "vadd2" any_form video alone;
            Vadd4 "vadd4" any_form video alone;
            Vavrg2 "vavrg2" any_form video alone;
            Vavrg4 "vavrg4" any_form video alone;
            Vmad "vmad" any_form video alone;
            Vmax "vmax" any_form video alone;
            Vmax2 "vmax2" any_form video alone;
            Vmax4 "vmax4" any_form video alone;
            Vmin "vmin" any_form video alone;
            Vmin2 "vmin2" any_form video alone;
            Vmin4 "vmin4" any_form video alone;
            Vote "vote" any_form warp_wide joins;
            Vset "vset" any_form video alone;
            Vset2 "vset2" any_form video alone;
            Vset4 "vset4" any_form video alone;
            Vshl "vshl" any_form video alone;
            Vshr "vshr" any_form video alone;
            Vsub "vsub" any_form video alone;
            Vsub2 "vsub2" any_form video alone;
            Vsub4 "vsub4" any_form video alone;
            Wgmma "wgmma" any_form warpgroup joins;
            Wmma "wmma" any_form tile joins;
            Xor "xor" logic logic alone;
        }
    };
}

pub(crate) use for_each_opcode;

/// What an instruction that is no load or store does to the order of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Alone,
    /// It may order accesses of the thread before it and after it.
    Orders,
    /// The threads of a warp execute it together.
    Joins,
}

macro_rules! define {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident;)*) => {
        /// What an instruction does, by the first word of its mnemonic.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum Opcode {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        /// Every opcode by its spelling, sorted for the search.
        const OPCODES: &[(&str, Opcode)] = &[$(($text, Opcode::$variant),)*];

        impl Opcode {
            /// Returns the opcode as written.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns what it does to the order of accesses.
            #[must_use]
            pub(crate) const fn effect(self) -> Effect {
                match self { $(Self::$variant => effect!($effect),)* }
            }
        }
    };
}

macro_rules! effect {
    (alone) => {
        Effect::Alone
    };
    (orders) => {
        Effect::Orders
    };
    (joins) => {
        Effect::Joins
    };
}

for_each_opcode!(define);

impl Opcode {
    /// Returns the opcode spelled `text`.
    #[must_use]
    pub(crate) fn from_name(text: &str) -> Option<Self> {
        let index = OPCODES.binary_search_by_key(&text, |entry| entry.0).ok()?;
        Some(OPCODES[index].1)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{OPCODES, Opcode};

    #[test]
    fn opcodes_are_sorted_so_that_each_is_found() {
        assert!(OPCODES.is_sorted_by(|a, b| a.0 < b.0));
        for &(text, opcode) in OPCODES {
            assert_eq!(Opcode::from_name(text), Some(opcode));
            assert_eq!(opcode.name(), text);
        }
        assert_eq!(Opcode::from_name("frobnicate"), None);
    }
}
