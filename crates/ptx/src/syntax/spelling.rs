//! The spelling of instruction suffixes.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::keyword::Keyword;
use super::modifier::{
    CacheLevel, CacheOperator, Compare, Eviction, Modifier, Operation, Rounding, Scope, Semantics,
    ShuffleMode, Space, VoteMode,
};
use super::scalar::ScalarType;

/// Every suffix except shapes, by its spelling.
pub(super) static MODIFIERS: LazyLock<HashMap<&'static str, Modifier>> = LazyLock::new(|| {
    let mut table =
        HashMap::with_capacity(SPECIAL.len() + Keyword::ALL.len() + ScalarType::ALL.len());
    table.extend(SPECIAL);
    for &keyword in Keyword::ALL {
        table.insert(keyword.name(), Modifier::Keyword(keyword));
    }
    for &scalar in ScalarType::ALL {
        table.insert(scalar.name(), Modifier::Type(scalar));
    }
    for &space in Space::ALL {
        table.insert(space.name(), Modifier::Space(space));
    }
    for &rounding in Rounding::ALL {
        table.insert(rounding.name(), Modifier::Round(rounding));
    }
    for &operation in Operation::ALL {
        table.insert(operation.name(), Modifier::Operation(operation));
    }
    for &semantics in Semantics::ALL {
        table.insert(semantics.name(), Modifier::Semantics(semantics));
    }
    for &scope in Scope::ALL {
        table.insert(scope.name(), Modifier::Scope(scope));
    }
    for &operator in CacheOperator::ALL {
        table.insert(operator.name(), Modifier::Cache(operator));
    }
    for &mode in ShuffleMode::ALL {
        table.insert(mode.name(), Modifier::Shuffle(mode));
    }
    for &mode in VoteMode::ALL {
        table.insert(mode.name(), Modifier::Vote(mode));
    }
    for &comparison in Compare::ALL {
        // `.lo` and `.hi` are comparisons only for `setp` and similar instructions, see
        // `Modifier::parse`.
        if !matches!(comparison, Compare::Lower | Compare::Higher) {
            table.insert(comparison.name(), Modifier::Compare(comparison));
        }
    }
    table
});

/// Returns the spelling of a suffix except shapes: the longest one if there are several.
pub(super) fn text(modifier: Modifier) -> &'static str {
    let spellings = MODIFIERS
        .iter()
        .filter(|(_, spelled)| **spelled == modifier)
        .map(|(text, _)| *text);
    spellings.max_by_key(|text| text.len()).unwrap_or("?")
}

/// Suffixes without a family.
const SPECIAL: [(&str, Modifier); 33] = [
    ("v2", Modifier::Vector(2)),
    ("v4", Modifier::Vector(4)),
    ("v8", Modifier::Vector(8)),
    ("sat", Modifier::Saturate),
    ("satfinite", Modifier::SaturateFinite),
    ("ftz", Modifier::FlushToZero),
    ("approx", Modifier::Approximate),
    ("full", Modifier::FullRange),
    ("wide", Modifier::Wide),
    ("hi", Modifier::Hi),
    ("lo", Modifier::Lo),
    ("cc", Modifier::Carry),
    ("uni", Modifier::Uniform),
    ("NaN", Modifier::Nan),
    ("volatile", Modifier::Volatile),
    ("mmio", Modifier::Mmio),
    ("nc", Modifier::NonCoherent),
    ("gl", Modifier::Scope(Scope::Gpu)),
    ("L1", Modifier::Level(CacheLevel::L1)),
    ("L2", Modifier::Level(CacheLevel::L2)),
    (
        "L1::evict_normal",
        Modifier::Evict(CacheLevel::L1, Eviction::Normal),
    ),
    (
        "L1::evict_unchanged",
        Modifier::Evict(CacheLevel::L1, Eviction::Unchanged),
    ),
    (
        "L1::evict_first",
        Modifier::Evict(CacheLevel::L1, Eviction::First),
    ),
    (
        "L1::evict_last",
        Modifier::Evict(CacheLevel::L1, Eviction::Last),
    ),
    (
        "L1::no_allocate",
        Modifier::Evict(CacheLevel::L1, Eviction::NoAllocate),
    ),
    (
        "L2::evict_normal",
        Modifier::Evict(CacheLevel::L2, Eviction::Normal),
    ),
    (
        "L2::evict_unchanged",
        Modifier::Evict(CacheLevel::L2, Eviction::Unchanged),
    ),
    (
        "L2::evict_first",
        Modifier::Evict(CacheLevel::L2, Eviction::First),
    ),
    (
        "L2::evict_last",
        Modifier::Evict(CacheLevel::L2, Eviction::Last),
    ),
    ("L2::cache_hint", Modifier::CacheHint),
    ("L2::64B", Modifier::PrefetchSize(64)),
    ("L2::128B", Modifier::PrefetchSize(128)),
    ("L2::256B", Modifier::PrefetchSize(256)),
];
