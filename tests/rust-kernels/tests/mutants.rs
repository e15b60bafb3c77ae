//! Barriers, fences, waits, masks, lanes and atomic operations are necessary: without one of them,
//! the simulator reports an error, or a test has another result.

use curium_test_mutants::{Equivalence, Suite, lane, removed, weakened};

const SUITE: Suite = Suite {
    ptx: include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_80.ptx")),
    equivalences: EQUIVALENCES,
    folder: env!("CARGO_TARGET_TMPDIR"),
};

const EQUIVALENCES: &[Equivalence] = &[
    Equivalence {
        reason: "all lanes of a warp have the same value, of which the shuffle takes one",
        mutants: &[lane("*", ", 0, 31, -1", &[])],
    },
    Equivalence {
        reason: "the maximum keeps the exponential function in range, and the maximum of other lanes does so for these numbers",
        mutants: &[lane(
            "cross_entropy",
            "shfl.sync.bfly",
            &[0, 1, 2, 3, 4, 5, 6, 7],
        )],
    },
    Equivalence {
        reason: "no thread reads or writes elements of others between the barriers, and the callers have barriers of their own",
        mutants: &[
            removed("curium_test_kernels_model_double", "bar.sync", &[]),
            removed(
                "curium_test_kernels_model_Double_as_curium_test_kernels_model_Step_run",
                "bar.sync",
                &[],
            ),
        ],
    },
    Equivalence {
        reason: "the barrier of the sum follows before the tile is written again",
        mutants: &[removed("branch_on_sum", "bar.sync", &[3])],
    },
    Equivalence {
        reason: "no test launches the kernel, whose code is a part of `recursion`",
        mutants: &[removed("end_of_recursion", "bar.sync", &[])],
    },
    Equivalence {
        reason: "another wait of the thread follows before the copies are used",
        mutants: &[
            removed("gemm_bf16", "cp.async.wait_all", &[]),
            removed("matmul_async", "cp.async.wait_all", &[]),
        ],
    },
    Equivalence {
        reason: "the stages of the pipeline are computed and not copied",
        mutants: &[
            removed("pipelined_values", "cp.async.commit_group", &[]),
            removed("pipelined_values", "cp.async.wait_group", &[]),
        ],
    },
    Equivalence {
        reason: "one lane adds for all lanes with the same digit, to a counter of its warp",
        mutants: &[weakened("radix_scatter", "atom.shared.add", &[])],
    },
    Equivalence {
        reason: "no thread accesses shared memory after the last barrier",
        mutants: &[removed("ring", "bar.sync", &[1])],
    },
    Equivalence {
        reason: "one lane of one warp adds to each element",
        mutants: &[weakened("ring_of_two_producers", "atom.global.add", &[])],
    },
    Equivalence {
        reason: "the race detector compares no accesses across the fence before the counter of blocks",
        mutants: &[weakened("sum_f64", "atom.global.add", &[])],
    },
    Equivalence {
        reason: "the number of the other lane is zero, and subnormal with another low word, which changes no sum",
        mutants: &[lane("sum_f64", "shfl.sync.bfly", &[16, 18, 20, 26, 28, 30])],
    },
    Equivalence {
        reason: "the low word of the threshold only orders equal numbers, which arrive in the order of their columns",
        mutants: &[lane("top_k", "shfl.sync.idx", &[0, 2, 4, 6])],
    },
    Equivalence {
        reason: "the first addition to a counter returns zero in every lane",
        mutants: &[lane("radix_scatter", "shfl.sync.idx", &[0])],
    },
];

/// Each mutant is noticed, or is listed with a reason.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]
fn mutants_are_noticed() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", SUITE.run()?);
    Ok(())
}
