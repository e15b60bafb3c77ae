//! Barriers, fences, waits, masks, lanes and atomic operations are necessary: without one of them, the simulator reports an error, or a
//! test has another result.

use crate::mutation::{Change, Equivalent, Suite};

const SUITE: Suite = Suite {
    ptx: include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_80.ptx")),
    modules: &[
        ("algorithms", include_str!("algorithms.rs")),
        ("features", include_str!("features.rs")),
        ("model", include_str!("model.rs")),
    ],
    without_mutants: &[
        "add",
        "add_line",
        "branch_on_a_remainder",
        "column_sums",
        "convolution",
        "cross_entropy",
        "drops_in_code_of_the_block",
        "embedding",
        "embedding_backward",
        "empty_memory",
        "empty_slices",
        "end_of_recursion",
        "fft_rows",
        "gemm_bf16",
        "layer_norm_backward",
        "lengths",
        "niches",
        "operations_of_core",
        "prefix_sum",
        "radix_count",
        "radix_scatter",
        "random_normal",
        "random_uniform",
        "recursion",
        "remainders",
        "small_matmul",
        "special_functions",
        "spmv",
        "streaming",
        "sum_f64",
        "texts",
        "top_k",
        "transpose_complex",
        "values_of_odd_sizes",
    ],
    equivalent: EQUIVALENT,
    folder: env!("CARGO_TARGET_TMPDIR"),
};

/// The last barrier of `synced` separates reads from later writes.
const NOTHING_FOLLOWS: &str = "no thread writes the memory after the last barrier";
const NOTHING_BEFORE: &str = "no thread has written the memory before";
const OWN_RESULT: &str = "only the thread that computed the result of the block uses it";
const NO_ORDER: &str =
    "each operation is of one element, and its result does not depend on the order of the threads";
const ANOTHER_WAIT: &str = "another wait follows before the copies are used";
const FEW_WARPS: &str = "the block has so few warps that the result of these lanes is not used";

const EQUIVALENT: &[Equivalent] = &[
    removed("atomics", "fence", &[], NO_ORDER),
    weakened(
        "atomics",
        "ld.relaxed",
        "compare-and-exchange checks the loaded value",
    ),
    weakened("atomics", "st.relaxed", "one thread stores"),
    removed("block_sum", "bar.sync", &[1], OWN_RESULT),
    removed(
        "branch_on_sum",
        "bar.sync",
        &[4],
        "the barrier of the sum follows before the tile is written again",
    ),
    removed(
        "curium_test_kernels_model_Double_as_curium_test_kernels_model_Step_run",
        "bar.sync",
        &[],
        NO_READER,
    ),
    removed(
        "curium_test_kernels_model_double",
        "bar.sync",
        &[],
        NO_READER,
    ),
    removed("early_return", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("matmul_async", "cp.async.wait_all", &[], ANOTHER_WAIT),
    removed("matmul_async", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("stencil_constant", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("stencil_clamp", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("stencil_wrap", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("stencil_mirror", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("moving_sum", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("laplace", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("filter_5x5", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("three_dimensions", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("pipelined_matmul", "bar.sync", &[0], NOTHING_BEFORE),
    removed("pipelined_matmul", "bar.sync", &[2], NOTHING_FOLLOWS),
    removed("matmul_stages", "bar.sync", &[0], NOTHING_BEFORE),
    removed("matmul_stages", "bar.sync", &[2], NOTHING_FOLLOWS),
    removed("pipelined_sums", "bar.sync", &[0], NOTHING_BEFORE),
    removed("pipelined_sums", "bar.sync", &[2], NOTHING_FOLLOWS),
    removed("pipelined_values", "bar.sync", &[0], NOTHING_BEFORE),
    removed("pipelined_values", "bar.sync", &[2], NOTHING_FOLLOWS),
    removed(
        "pipelined_values",
        "cp.async.wait_group",
        &[],
        "the stages are computed and not copied",
    ),
    removed("ring", "bar.sync", &[0], NOTHING_BEFORE),
    removed("ring", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("ring_of_two_producers", "bar.sync", &[0], NOTHING_BEFORE),
    removed("ring_of_two_producers", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("reductions", "bar.sync", &[1, 3], OWN_RESULT),
    removed("reverse", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("reverse_dynamic", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed("single_owner", "bar.sync", &[1], NOTHING_FOLLOWS),
    removed(
        "sort",
        "bar.sync",
        &[2, 3],
        "a barrier precedes, and nothing follows",
    ),
    removed("thread_returns", "bar.sync", &[1], OWN_RESULT),
    removed("transpose", "bar.sync", &[1], NOTHING_FOLLOWS),
    lane("reductions", "shfl.sync.up.b32", FEW_WARPS),
    lane("scan", ", 8, 0, -1", FEW_WARPS),
    lane("scan", ", 16, 0, -1", FEW_WARPS),
    lane(
        "warp_operations",
        "shfl.sync.idx",
        "all lanes have the same sum of integers",
    ),
];

const NO_READER: &str = "no thread reads elements of others between the barriers";

const fn removed(
    kernel: &'static str,
    instruction: &'static str,
    numbers: &'static [usize],
    reason: &'static str,
) -> Equivalent {
    Equivalent {
        kernel,
        change: Change::Removed,
        instruction,
        numbers,
        reason,
    }
}

const fn weakened(
    kernel: &'static str,
    instruction: &'static str,
    reason: &'static str,
) -> Equivalent {
    Equivalent {
        kernel,
        change: Change::Weakened,
        instruction,
        numbers: &[],
        reason,
    }
}

const fn lane(kernel: &'static str, instruction: &'static str, reason: &'static str) -> Equivalent {
    Equivalent {
        kernel,
        change: Change::Lane,
        instruction,
        numbers: &[],
        reason,
    }
}

/// Each mutant is noticed, or is listed with a reason.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]
fn mutants_are_noticed() {
    // They take many minutes.
    if std::env::var_os("CURIUM_TEST_MUTANTS").is_none() {
        println!("skipped: CURIUM_TEST_MUTANTS is neither `all` nor `quick`");
        return;
    }
    let figures = SUITE.run();
    println!("{figures}");
}
