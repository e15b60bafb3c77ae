//! The operations of the PTX ISA.

use std::fmt;

macro_rules! opcodes {
    ($($variant:ident $text:literal,)*) => {
        /// What an instruction does, by the first word of its mnemonic.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub(crate) enum Opcode {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        /// Every opcode by its spelling, sorted for the search.
        const OPCODES: &[(&str, Opcode)] = &[$(($text, Opcode::$variant),)*];

        impl Opcode {
            /// The opcode as written.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

opcodes! {
    Abs "abs",
    Activemask "activemask",
    Add "add",
    Addc "addc",
    Alloca "alloca",
    And "and",
    Applypriority "applypriority",
    Atom "atom",
    Bar "bar",
    Barrier "barrier",
    Bfe "bfe",
    Bfi "bfi",
    Bfind "bfind",
    Bmsk "bmsk",
    Bra "bra",
    Brev "brev",
    Brkpt "brkpt",
    Brx "brx",
    Call "call",
    Clusterlaunchcontrol "clusterlaunchcontrol",
    Clz "clz",
    Cnot "cnot",
    Copysign "copysign",
    Cos "cos",
    Cp "cp",
    Createpolicy "createpolicy",
    Cvt "cvt",
    Cvta "cvta",
    Discard "discard",
    Div "div",
    Dp2a "dp2a",
    Dp4a "dp4a",
    Elect "elect",
    Ex2 "ex2",
    Exit "exit",
    Fence "fence",
    Fma "fma",
    Fns "fns",
    Getctarank "getctarank",
    Griddepcontrol "griddepcontrol",
    Isspacep "isspacep",
    Istypep "istypep",
    Ld "ld",
    Ldmatrix "ldmatrix",
    Ldu "ldu",
    Lg2 "lg2",
    Lop3 "lop3",
    Mad "mad",
    Mad24 "mad24",
    Madc "madc",
    Mapa "mapa",
    Match "match",
    Max "max",
    Mbarrier "mbarrier",
    Membar "membar",
    Min "min",
    Mma "mma",
    Mov "mov",
    Movmatrix "movmatrix",
    Mul "mul",
    Mul24 "mul24",
    Multimem "multimem",
    Nanosleep "nanosleep",
    Neg "neg",
    Not "not",
    Or "or",
    Pmevent "pmevent",
    Popc "popc",
    Prefetch "prefetch",
    Prefetchu "prefetchu",
    Prmt "prmt",
    Rcp "rcp",
    Red "red",
    Redux "redux",
    Rem "rem",
    Ret "ret",
    Rsqrt "rsqrt",
    Sad "sad",
    Selp "selp",
    Set "set",
    Setmaxnreg "setmaxnreg",
    Setp "setp",
    Shf "shf",
    Shfl "shfl",
    Shl "shl",
    Shr "shr",
    Sin "sin",
    Slct "slct",
    Sqrt "sqrt",
    St "st",
    Stackrestore "stackrestore",
    Stacksave "stacksave",
    Stmatrix "stmatrix",
    Sub "sub",
    Subc "subc",
    Suld "suld",
    Suq "suq",
    Sured "sured",
    Sust "sust",
    Szext "szext",
    Tanh "tanh",
    Tcgen05 "tcgen05",
    Tensormap "tensormap",
    Testp "testp",
    Tex "tex",
    Tld4 "tld4",
    Trap "trap",
    Txq "txq",
    Vabsdiff "vabsdiff",
    Vabsdiff2 "vabsdiff2",
    Vabsdiff4 "vabsdiff4",
    Vadd "vadd",
    Vadd2 "vadd2",
    Vadd4 "vadd4",
    Vavrg2 "vavrg2",
    Vavrg4 "vavrg4",
    Vmad "vmad",
    Vmax "vmax",
    Vmax2 "vmax2",
    Vmax4 "vmax4",
    Vmin "vmin",
    Vmin2 "vmin2",
    Vmin4 "vmin4",
    Vote "vote",
    Vset "vset",
    Vset2 "vset2",
    Vset4 "vset4",
    Vshl "vshl",
    Vshr "vshr",
    Vsub "vsub",
    Vsub2 "vsub2",
    Vsub4 "vsub4",
    Wgmma "wgmma",
    Wmma "wmma",
    Xor "xor",
}

impl Opcode {
    /// The opcode spelled `text`.
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
