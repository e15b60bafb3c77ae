//! Mutants that are equivalent to the original, and those whose difference the simulator does not
//! model.

use std::collections::BTreeMap;

use crate::mutant::{Change, Mutant};

/// A class of mutants that no test can notice, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Equivalence {
    /// Why they compute the same in every order of execution.
    pub reason: &'static str,
    /// The mutants.
    pub mutants: &'static [Pattern],
}

/// Instructions whose effect on order the simulator does not model. A mutant of these that no test
/// notices can fail on a GPU.
pub(crate) const UNMODELED: &[Equivalence] = &[
    Equivalence {
        reason: "the simulator's memory is sequentially consistent, and its race detector counts every access across a fence as ordered",
        mutants: &[removed(ANY, "fence.", &[]), removed(ANY, "membar.", &[])],
    },
    Equivalence {
        reason: "the race detector compares no accesses across a fence or an ordered access, and the workspace of a cooperative grid is not tracked",
        mutants: &[
            weakened(ANY, "atom.add.u32", &[]),
            weakened(ANY, "ld.relaxed.", &[]),
            weakened(ANY, "st.relaxed.", &[]),
        ],
    },
    Equivalence {
        reason: "the simulator computes a `wgmma` product when it is issued",
        mutants: &[
            removed(ANY, "wgmma.fence", &[]),
            removed(ANY, "wgmma.commit_group", &[]),
            removed(ANY, "wgmma.wait_group", &[]),
        ],
    },
    Equivalence {
        reason: "the simulator performs a bulk copy when it is issued, and does not check its accesses for races: a wait that ends too early is not noticed",
        mutants: &[
            removed(ANY, "cp.async.bulk.commit_group", &[]),
            removed(ANY, "cp.async.bulk.wait_group", &[]),
            weakened(ANY, "mbarrier.arrive.expect_tx", &[]),
            removed(ANY, "mbarrier.arrive", &[]),
            removed(ANY, "mbarrier.try_wait", &[]),
        ],
    },
    Equivalence {
        reason: "the memory of a block of a cluster exists in the simulator until the whole cluster has ended",
        mutants: &[
            removed(ANY, "barrier.cluster.arrive", &[]),
            removed(ANY, "barrier.cluster.wait", &[]),
        ],
    },
];

/// The function of a pattern that matches in all of them.
const ANY: &str = "*";

/// Mutants of a function.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The name, or `*` for any.
    function: &'static str,
    change: Change,
    /// A part of the instruction.
    instruction: &'static str,
    /// The numbers of these mutants among those of the function with this change and this
    /// instruction. Empty: any.
    numbers: &'static [usize],
}

/// An instruction that is left out.
pub const fn removed(
    function: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
) -> Pattern {
    Pattern {
        function,
        change: Change::Removed,
        instruction,
        numbers,
    }
}

/// An operation that is not atomic or not ordered.
pub const fn weakened(
    function: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
) -> Pattern {
    Pattern {
        function,
        change: Change::Weakened,
        instruction,
        numbers,
    }
}

/// A shuffle from another lane.
pub const fn lane(
    function: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
) -> Pattern {
    Pattern {
        function,
        change: Change::Lane,
        instruction,
        numbers,
    }
}

/// An operation of a warp without lane 5.
pub const fn mask(
    function: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
) -> Pattern {
    Pattern {
        function,
        change: Change::Mask,
        instruction,
        numbers,
    }
}

/// A reduction of a block with the own condition only.
pub const fn own_vote(
    function: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
) -> Pattern {
    Pattern {
        function,
        change: Change::OwnVote,
        instruction,
        numbers,
    }
}

impl Pattern {
    /// Returns `true` if the pattern matches only mutants by number, all of which must be
    /// equivalent.
    pub(crate) fn has_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }
}

/// Finds the patterns of mutants, which are passed in their order.
pub(crate) struct Matcher<'a> {
    patterns: Vec<&'a Pattern>,
    /// The reason of each pattern.
    reasons: Vec<&'static str>,
    /// The number of mutants so far, by pattern and function.
    counts: BTreeMap<(usize, usize), usize>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(equivalences: &'a [Equivalence]) -> Self {
        let mut patterns = Vec::new();
        let mut reasons = Vec::new();
        for equivalence in equivalences {
            for pattern in equivalence.mutants {
                patterns.push(pattern);
                reasons.push(equivalence.reason);
            }
        }
        Self {
            patterns,
            reasons,
            counts: BTreeMap::new(),
        }
    }

    pub(crate) fn reason(&self, pattern: usize) -> &'static str {
        self.reasons[pattern]
    }

    pub(crate) fn patterns(&self) -> &[&'a Pattern] {
        &self.patterns
    }

    /// Returns the index of the first pattern of a mutant.
    pub(crate) fn find(&mut self, mutant: &Mutant) -> Option<usize> {
        let mut first = None;
        for (index, pattern) in self.patterns.iter().enumerate() {
            let is_function = pattern.function == ANY || pattern.function == mutant.function;
            if !is_function
                || pattern.change != mutant.change
                || !mutant.instruction.contains(pattern.instruction)
            {
                continue;
            }
            let count = self.counts.entry((index, mutant.item)).or_default();
            let number = *count;
            *count += 1;
            if pattern.numbers.is_empty() || pattern.numbers.contains(&number) {
                first = first.or(Some(index));
            }
        }
        first
    }
}
