//! The dot suffixes of instructions.

use std::fmt;

use super::keyword::Keyword;
use super::opcode::Opcode;
use super::scalar::ScalarType;
use super::spelling;

/// One dot suffix of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub(crate) enum Modifier {
    /// `.u32`: a type.
    Type(ScalarType),
    /// `.global`: a state space.
    Space(Space),
    /// `.rn`: a rounding.
    Round(Rounding),
    /// `.lt`: a comparison.
    Compare(Compare),
    /// `.v2`, `.v4`, `.v8`: the number of elements.
    Vector(u8),
    /// `.add`: the operation of an atomic, a reduction, or a boolean combination.
    Operation(Operation),
    /// `.sat`
    Saturate,
    /// `.satfinite`
    SaturateFinite,
    /// `.ftz`
    FlushToZero,
    /// `.approx`
    Approximate,
    /// `.full`
    FullRange,
    /// `.wide`
    Wide,
    /// `.hi` of a product or a half.
    Hi,
    /// `.lo` of a product or a half.
    Lo,
    /// `.cc`: the instruction writes the carry flag.
    Carry,
    /// `.uni`
    Uniform,
    /// `.NaN`
    Nan,
    /// `.volatile`
    Volatile,
    /// `.mmio`
    Mmio,
    /// `.nc`
    NonCoherent,
    /// `.relaxed`: memory-ordering semantics.
    Semantics(Semantics),
    /// `.gpu`: the scope of a memory operation.
    Scope(Scope),
    /// `.ca`: a cache operator.
    Cache(CacheOperator),
    /// `.L1`, `.L2`
    Level(CacheLevel),
    /// `.L1::evict_last`
    Evict(CacheLevel, Eviction),
    /// `.L2::128B`: the number of bytes to prefetch.
    PrefetchSize(u16),
    /// `.L2::cache_hint`: the last operand is a cache policy.
    CacheHint,
    /// `.down`: the mode of `shfl`.
    Shuffle(ShuffleMode),
    /// `.ballot`: the mode of `vote` and `match`.
    Vote(VoteMode),
    /// `.m16n8k16`
    Shape(Shape),
    /// Any other suffix.
    Keyword(Keyword),
}

impl Modifier {
    /// Returns the suffix `text`, without its dot, of an instruction with that opcode.
    pub(super) fn parse(text: &str, opcode: Opcode) -> Option<Self> {
        match text {
            "lo" if opcode.compares() => return Some(Self::Compare(Compare::Lower)),
            "hi" if opcode.compares() => return Some(Self::Compare(Compare::Higher)),
            _ => {}
        }
        spelling::MODIFIERS
            .get(text)
            .copied()
            .or_else(|| Shape::parse(text).map(Self::Shape))
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(Shape { m, n, k }) => write!(f, "m{m}n{n}k{k}"),
            Self::Compare(compare) => f.write_str(compare.name()),
            other => f.write_str(spelling::text(*other)),
        }
    }
}

macro_rules! suffixes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub(crate) enum $name {
            $(#[doc = concat!("`.", $text, "`: ", $what, ".")] $variant,)*
        }

        impl $name {
            /// Every variant.
            pub(super) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the suffix as written, without its dot.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

suffixes! {
    /// A state space.
    Space {
        Const "const" "constant memory",
        Global "global" "device memory",
        Local "local" "memory of one thread",
        Param "param" "parameters",
        ParamEntry "param::entry" "parameters of the kernel",
        ParamFunction "param::func" "parameters of the device function",
        Shared "shared" "memory of one block",
        SharedCta "shared::cta" "memory of the own block",
        SharedCluster "shared::cluster" "memory of any block of the cluster",
    }
}

suffixes! {
    /// A rounding.
    Rounding {
        NearestEven "rn" "to the nearest, ties to even",
        Zero "rz" "towards zero",
        Down "rm" "towards minus infinity",
        Up "rp" "towards plus infinity",
        NearestAway "rna" "to the nearest, ties away from zero",
        Stochastic "rs" "stochastically, by random bits given",
        IntegerNearestEven "rni" "to the nearest integer, ties to even",
        IntegerZero "rzi" "to an integer, towards zero",
        IntegerDown "rmi" "to an integer, towards minus infinity",
        IntegerUp "rpi" "to an integer, towards plus infinity",
    }
}

suffixes! {
    /// A comparison. The `u` forms are true if an operand is NaN.
    Compare {
        Equal "eq" "equal",
        NotEqual "ne" "not equal",
        Less "lt" "less",
        LessEqual "le" "less or equal",
        Greater "gt" "greater",
        GreaterEqual "ge" "greater or equal",
        Lower "lo" "less, unsigned",
        LowerSame "ls" "less or equal, unsigned",
        Higher "hi" "greater, unsigned",
        HigherSame "hs" "greater or equal, unsigned",
        EqualUnordered "equ" "equal or unordered",
        NotEqualUnordered "neu" "not equal or unordered",
        LessUnordered "ltu" "less or unordered",
        LessEqualUnordered "leu" "less, equal or unordered",
        GreaterUnordered "gtu" "greater or unordered",
        GreaterEqualUnordered "geu" "greater, equal or unordered",
        Ordered "num" "neither is NaN",
        Unordered "nan" "one is NaN",
    }
}

suffixes! {
    /// The operation of an atomic, a reduction, or a boolean combination.
    Operation {
        And "and" "bitwise and",
        Or "or" "bitwise or",
        Xor "xor" "bitwise exclusive or",
        Add "add" "sum",
        Min "min" "smaller",
        Max "max" "larger",
        Increment "inc" "increment, wrapping at a bound",
        Decrement "dec" "decrement, wrapping at a bound",
        Exchange "exch" "exchange",
        CompareAndSwap "cas" "compare and swap",
        PopulationCount "popc" "number of true predicates",
    }
}

suffixes! {
    /// Memory-ordering semantics.
    Semantics {
        Weak "weak" "not ordered",
        Relaxed "relaxed" "ordered per location",
        Acquire "acquire" "later accesses stay after",
        Release "release" "earlier accesses stay before",
        AcquireRelease "acq_rel" "both",
        SequentiallyConsistent "sc" "in one order for all",
    }
}

suffixes! {
    /// The scope of a memory operation.
    Scope {
        Cta "cta" "the block",
        Cluster "cluster" "the cluster",
        Gpu "gpu" "the device; also written `.gl`",
        System "sys" "all devices and the host",
    }
}

suffixes! {
    /// A cache operator.
    CacheOperator {
        All "ca" "cache at all levels",
        Global "cg" "cache at the global level",
        Streaming "cs" "likely accessed once",
        LastUse "lu" "not used again",
        Volatile "cv" "fetch again",
        WriteBack "wb" "write back at all levels",
        WriteThrough "wt" "write through to the system",
    }
}

suffixes! {
    /// The mode of `shfl`.
    ShuffleMode {
        Up "up" "the lane minus a distance",
        Down "down" "the lane plus a distance",
        Butterfly "bfly" "the lane xor a mask",
        Index "idx" "that lane",
    }
}

suffixes! {
    /// The mode of `vote` and `match`; `.uni` is [`Modifier::Uniform`].
    VoteMode {
        All "all" "whether all agree",
        Any "any" "whether or which agree",
        Ballot "ballot" "the mask of lanes where it is true",
    }
}

/// A level of the cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum CacheLevel {
    /// `L1`
    L1,
    /// `L2`
    L2,
}

/// The eviction priority of a cache line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub(crate) enum Eviction {
    /// `evict_normal`
    Normal,
    /// `evict_unchanged`
    Unchanged,
    /// `evict_first`
    First,
    /// `evict_last`
    Last,
    /// `no_allocate`
    NoAllocate,
}

/// The shape of a matrix operation, `.m16n8k16`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Shape {
    /// Rows.
    pub(crate) m: u16,
    /// Columns.
    pub(crate) n: u16,
    /// The inner extent; 0 in `.m8n8`.
    pub(crate) k: u16,
}

impl Shape {
    fn parse(text: &str) -> Option<Self> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k').unwrap_or((rest, "0"));
        Some(Self {
            m: m.parse().ok()?,
            n: n.parse().ok()?,
            k: k.parse().ok()?,
        })
    }
}
