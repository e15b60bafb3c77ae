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
    table.extend(
        Keyword::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Keyword(it))),
    );
    table.extend(
        ScalarType::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Type(it))),
    );
    table.extend(
        Space::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Space(it))),
    );
    table.extend(
        Rounding::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Round(it))),
    );
    table.extend(
        Operation::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Operation(it))),
    );
    table.extend(
        Semantics::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Semantics(it))),
    );
    table.extend(
        Scope::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Scope(it))),
    );
    table.extend(
        CacheOperator::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Cache(it))),
    );
    table.extend(
        ShuffleMode::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Shuffle(it))),
    );
    table.extend(
        VoteMode::ALL
            .iter()
            .map(|&it| (it.name(), Modifier::Vote(it))),
    );
    // `.lo` and `.hi` are comparisons only for `setp` and similar instructions, see `Modifier::parse`.
    let plain = |it: &&Compare| !matches!(it, Compare::Lower | Compare::Higher);
    table.extend(
        Compare::ALL
            .iter()
            .filter(plain)
            .map(|&it| (it.name(), Modifier::Compare(it))),
    );
    table
});

/// Returns the spelling of a suffix except shapes: the longest one if there are several.
pub(super) fn of(modifier: Modifier) -> &'static str {
    let ways = MODIFIERS
        .iter()
        .filter(|(_, it)| **it == modifier)
        .map(|(text, _)| *text);
    ways.max_by_key(|text| text.len()).unwrap_or("?")
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
