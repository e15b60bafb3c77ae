//! Clusters of several blocks: special registers, cluster barriers, and accesses, atomics, arrivals
//! and copies to the next block.

mod object;

use super::atomic::{OPERATIONS, REDUCTIONS, Target};
use super::pattern::{expand, expand_named};
use super::{BlockForm, Output, THREADS};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = places();
    forms.extend(barriers());
    forms.extend(addresses());
    forms.extend(accesses());
    forms.extend(atomics());
    forms.extend(object::forms());
    forms.into_iter().map(|form| form.needs(90)).collect()
}

/// Grids and their clusters: the second is three-dimensional, and the third has the largest
/// portable cluster size.
const GRIDS: [([u32; 3], [u32; 3]); 5] = [
    ([4, 1, 1], [2, 1, 1]),
    ([2, 4, 2], [1, 2, 2]),
    ([4, 2, 2], [4, 2, 1]),
    ([6, 1, 1], [3, 1, 1]),
    ([1, 2, 4], [1, 1, 4]),
];

/// Returns the coordinates of a block in a grid; x varies fastest.
fn unfold(number: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    [number % x, number / x % y, number / x / y]
}

/// Special registers for a block's position in its cluster, and the cluster's position in the grid.
fn places() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (grid, cluster) in GRIDS {
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            type Value = fn([u32; 3]) -> u32;
            let values: [(&str, Value); 6] = [
                ("ctaid", |[block, ..]| block),
                ("nctaid", |[_, grid, _]| grid),
                ("clusterid", |[block, _, cluster]| block / cluster),
                ("nclusterid", |[_, grid, cluster]| grid / cluster),
                ("cluster_ctaid", |[block, _, cluster]| block % cluster),
                ("cluster_nctaid", |[.., cluster]| cluster),
            ];
            for (register, value) in values {
                let spelling = format!("mov.u32 %{register}.{name}");
                let code = format!("mov.u32 %r8, %{register}.{name}; st.global.b32 [%out], %r8;");
                forms.push(in_clusters(
                    &spelling,
                    code,
                    grid,
                    cluster,
                    move |_: &[Sources], position: usize| -> Output {
                        let block = unfold((position / THREADS) as u32, grid);
                        [
                            value([block[axis], grid[axis], cluster[axis]]).into(),
                            0,
                            0,
                            0,
                        ]
                    },
                ));
            }
        }
        let rank = move |position: usize| {
            let block = unfold((position / THREADS) as u32, grid);
            let within: [u32; 3] = std::array::from_fn(|axis| block[axis] % cluster[axis]);
            u64::from((within[2] * cluster[1] + within[1]) * cluster[0] + within[0])
        };
        let ranks = "mov.u32 %r8, %cluster_ctarank; mov.u32 %r9, %cluster_nctarank; st.global.b32 [%out], %r8; st.global.b32 [%out+8], %r9;";
        let blocks = u64::from(cluster.iter().product::<u32>());
        forms.push(in_clusters(
            "mov.u32 %cluster_ctarank",
            ranks.into(),
            grid,
            cluster,
            move |_, position| [rank(position), blocks, 0, 0],
        ));
        let explicit = "mov.pred %p1, %is_explicit_cluster; selp.b64 %l8, 1, 0, %p1; st.global.b64 [%out], %l8;";
        forms.push(in_clusters(
            "mov.pred %is_explicit_cluster",
            explicit.into(),
            grid,
            cluster,
            |_, _| [1, 0, 0, 0],
        ));
    }
    forms
}

fn in_clusters(
    spelling: &str,
    code: String,
    grid: [u32; 3],
    cluster: [u32; 3],
    left: impl Fn(&[Sources], usize) -> Output + 'static,
) -> BlockForm {
    BlockForm::new(format!("{spelling} in {cluster:?} of {grid:?}"), code, left)
        .in_clusters(grid, cluster)
}

/// Cluster sizes in one dimension, each with a grid of two clusters.
const SIZES: [u32; 3] = [2, 4, 8];

/// Prepares an exchange with the next block of the cluster, cyclically: each thread stores its
/// operands in its own shared memory, and computes its location in the next block in `%r21`, the
/// generic address in `%l21`, and the rank of the next block in `%r20`.
const NEXT: &str = "st.shared.v2.b64 [%shared], {%l0, %l1};
    st.shared.v2.b64 [%shared+16], {%l2, %l3};
    mov.u32 %r20, %cluster_ctarank;
    add.u32 %r20, %r20, 1;
    mov.u32 %r19, %cluster_nctarank;
    rem.u32 %r20, %r20, %r19;
    mapa.shared::cluster.u32 %r21, %shared, %r20;
    mapa.u64 %l21, %generic, %r20;
    ";
/// Synchronizes all blocks of the cluster.
const MEET: &str = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    ";

/// Returns the thread with the same number in the next and in the previous block of the cluster.
fn next(position: usize, size: u32) -> usize {
    around(position, size, 1)
}

fn before(position: usize, size: u32) -> usize {
    around(position, size, size as usize - 1)
}

fn around(position: usize, size: u32, steps: usize) -> usize {
    let block = position / THREADS;
    let thread = position % THREADS;
    let size = size as usize;
    (block / size * size + (block % size + steps) % size) * THREADS + thread
}

/// Returns a form that runs in two clusters of the given size.
fn exchange(
    spelling: &str,
    code: String,
    size: u32,
    left: impl Fn(&[Sources], usize) -> Output + 'static,
) -> BlockForm {
    let form = BlockForm::new(format!("{spelling} in clusters of {size}"), code, left);
    form.in_clusters([2 * size, 1, 1], [size, 1, 1])
}

/// Returns each spelling of the cluster barrier: a word passes to the next block through its shared
/// memory.
fn barriers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let arrivals = expand("barrier.cluster.arrive{,.release,.relaxed}{,.aligned}");
    let waits = expand("barrier.cluster.wait{,.acquire}{,.aligned}");
    for (arrive, wait) in arrivals
        .iter()
        .flat_map(|arrive| waits.iter().map(move |wait| (arrive, wait)))
    {
        let fence = if arrive.contains("relaxed") {
            "fence.acq_rel.cluster;\n    "
        } else {
            ""
        };
        for size in SIZES {
            // Work between the arrival and the wait, the intended use.
            let code = format!(
                "{NEXT}{fence}{arrive};
    add.u64 %l9, %l0, 1;
    {wait};
    ld.shared::cluster.b64 %l8, [%r21];
    st.global.v2.b64 [%out], {{%l8, %l9}};
    {MEET}"
            );
            forms.push(exchange(
                &format!("{arrive} {wait}"),
                code,
                size,
                move |all, position| {
                    [
                        all[next(position, size)][0],
                        all[position][0].wrapping_add(1),
                        0,
                        0,
                    ]
                },
            ));
        }
    }
    // Exited threads are not waited for.
    let code = format!(
        "setp.ge.u32 %p1, %thread, 40;
    @%p1 exit;
    {NEXT}barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared::cluster.b64 %l8, [%r21];
    st.global.b64 [%out], %l8;
    barrier.cluster.arrive;
    barrier.cluster.wait;"
    );
    forms.push(exchange(
        "barrier.cluster without threads that ended",
        code,
        2,
        |all, position| {
            [
                if position % THREADS < 40 {
                    all[next(position, 2)][0]
                } else {
                    0
                },
                0,
                0,
                0,
            ]
        },
    ));
    // A word advances by one block in each of several phases.
    let turns = format!(
        "{NEXT}mov.b32 %r8, 0;
    mov.b64 %l10, %l0;
TURN:
    {MEET}ld.shared::cluster.b64 %l10, [%r21];
    {MEET}st.shared.b64 [%shared], %l10;
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p1, %r8, 5;
    @%p1 bra TURN;
    st.global.b64 [%out], %l10;
    {MEET}"
    );
    forms.push(exchange(
        "barrier.cluster five times",
        turns,
        8,
        |all, position| [all[around(position, 8, 5)][0], 0, 0, 0],
    ));
    forms
}

/// `mapa` and `getctarank` in both directions, for every block of the cluster.
fn addresses() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let ways = [
        (
            "mapa.shared::cluster.u32",
            "%r8",
            "%shared",
            "ld.shared::cluster.b64",
            "getctarank.shared::cluster.u32",
        ),
        (
            "mapa.shared::cluster.u64",
            "%l8",
            "%l20",
            "ld.shared::cluster.b64",
            "getctarank.shared::cluster.u64",
        ),
        ("mapa.u64", "%l8", "%generic", "ld.b64", "getctarank.u64"),
    ];
    for ((map, to, from, load, rank), size) in ways
        .into_iter()
        .flat_map(|way| SIZES.map(|size| (way, size)))
    {
        for block in ["%r20", "0", "1"] {
            // The rank of a mapped address is the block, and mapping it back returns the original
            // address.
            let code = format!(
                "{NEXT}cvt.u64.u32 %l20, %shared;
    {map} {to}, {from}, {block};
    {MEET}{load} %l9, [{to}];
    {rank} %r9, {to};
    mov.u32 %r10, %cluster_ctarank;
    {map} {to}, {to}, %r10;
    {load} %l10, [{to}];
    cvt.u64.u32 %l11, %r9;
    {rank} %r9, {from};
    cvt.u64.u32 %l12, %r9;
    st.global.v2.b64 [%out], {{%l9, %l11}};
    st.global.v2.b64 [%out+16], {{%l10, %l12}};
    {MEET}"
            );
            forms.push(exchange(
                &format!("{map} {rank} to {block}"),
                code,
                size,
                move |all, position| {
                    let own_rank = (position / THREADS) as u32 % size;
                    let rank = block.parse().unwrap_or((own_rank + 1) % size);
                    let source = around(position, size, (rank + size - own_rank) as usize);
                    [
                        all[source][0],
                        rank.into(),
                        all[position][0],
                        own_rank.into(),
                    ]
                },
            ));
        }
    }
    forms
}

/// Loads from and stores to the next block, of each width, by shared and by generic addresses.
fn accesses() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let orders = expand("{,.volatile,.relaxed.cluster,.acquire.cluster,.relaxed.gpu,.relaxed.sys}");
    for (order, space) in orders
        .iter()
        .flat_map(|order| [".shared::cluster", ""].map(|space| (order, space)))
    {
        let address = if space.is_empty() { "%l21" } else { "%r21" };
        for (kind, register, bits) in [
            ("u8", "%r8", 8),
            ("b16", "%h8", 16),
            ("b32", "%r8", 32),
            ("b64", "%l8", 64),
        ] {
            let spelling = format!("ld{order}{space}.{kind}");
            let stored_bits = bits.max(16) * if bits == 8 { 2 } else { 1 };
            let code = format!(
                "{NEXT}{MEET}{spelling} {register}, [{address}];\n    st.global.b{stored_bits} [%out], {register};\n    {MEET}"
            );
            forms.push(exchange(&spelling, code, 4, move |all, position| {
                [all[next(position, 4)][0] & u64::MAX >> (64 - bits), 0, 0, 0]
            }));
            let order = if order.contains("acquire") {
                ".release.cluster"
            } else {
                order
            };
            let spelling = format!("st{order}{space}.{kind}");
            let register = register.replace('8', "1");
            let kind = kind.replace("u8", "b8");
            let spelling = spelling.replace("u8", &kind);
            let code = format!(
                "{NEXT}{MEET}{spelling} [{address}], {register};\n    {MEET}ld.shared.b64 %l9, [%shared];\n    st.global.b64 [%out], %l9;"
            );
            forms.push(exchange(&spelling, code, 4, move |all, position| {
                let mask = u64::MAX >> (64 - bits);
                [
                    all[before(position, 4)][1] & mask | all[position][0] & !mask,
                    0,
                    0,
                    0,
                ]
            }));
        }
    }
    for space in [".shared::cluster", ""] {
        let address = if space.is_empty() { "%l21" } else { "%r21" };
        let code = format!(
            "{NEXT}{MEET}ld{space}.v2.b64 {{%l8, %l9}}, [{address}];
    ld{space}.v4.b32 {{%r8, %r9, %r10, %r11}}, [{address}+16];
    st.global.v2.b64 [%out], {{%l8, %l9}};
    st.global.v4.b32 [%out+16], {{%r8, %r9, %r10, %r11}};
    {MEET}"
        );
        forms.push(exchange(
            &format!("ld{space}.v2.b64 and .v4.b32"),
            code,
            4,
            |all, position| all[next(position, 4)],
        ));
        let code = format!(
            "{NEXT}{MEET}st{space}.v2.b64 [{address}+16], {{%l0, %l1}};
    st{space}.v4.b32 [{address}], {{%r0, %r1, %r2, %r3}};
    {MEET}ld.shared.v2.b64 {{%l8, %l9}}, [%shared];
    ld.shared.v2.b64 {{%l10, %l11}}, [%shared+16];
    st.global.v2.b64 [%out], {{%l8, %l9}};
    st.global.v2.b64 [%out+16], {{%l10, %l11}};"
        );
        forms.push(exchange(
            &format!("st{space}.v2.b64 and .v4.b32"),
            code,
            4,
            |all, position| {
                let low = all[before(position, 4)].map(|word| word & 0xffff_ffff);
                [
                    low[0] | low[1] << 32,
                    low[2] | low[3] << 32,
                    all[before(position, 4)][0],
                    all[before(position, 4)][1],
                ]
            },
        ));
    }
    forms
}

/// Atomics and reductions of each operation in the next block's shared memory: the returned values
/// and the resulting memory.
fn atomics() -> Vec<BlockForm> {
    let names = [("OPERATIONS", OPERATIONS), ("REDUCTIONS", REDUCTIONS)];
    let mut forms = Vec::new();
    for pattern in [
        "atom{.shared::cluster,}.OPERATIONS",
        "atom{.relaxed,.acquire,.release,.acq_rel}.cluster.shared::cluster.{add.u32,cas.b64,exch.b32,max.s64,add.f32}",
        "red{.shared::cluster,}.REDUCTIONS",
        "red{.relaxed,.release}.cluster.shared::cluster.{add.u32,min.s64,or.b64}",
    ] {
        forms.extend(
            expand_named(pattern, &names)
                .iter()
                .map(|spelling| atomic(spelling)),
        );
    }
    // Many threads of all blocks add to one location in the first block.
    let code = format!(
        "mov.u32 %r8, block;
    setp.eq.u32 %p1, %thread, 0;
    @%p1 st.shared.b64 [%shared], 0;
    mapa.shared::cluster.u32 %r9, %r8, 0;
    {MEET}atom.shared::cluster.add.u64 %l8, [%r9], %l0;
    {MEET}ld.shared::cluster.b64 %l9, [%r9];
    st.global.b64 [%out], %l9;
    {MEET}"
    );
    forms.push(exchange(
        "atom.shared::cluster.add.u64 by all",
        code,
        8,
        |all, position| {
            let cluster = position / (8 * THREADS);
            let cluster_sources = all[cluster * 8 * THREADS..][..8 * THREADS].iter();
            [
                cluster_sources.fold(0, |sum: u64, words| sum.wrapping_add(words[0])),
                0,
                0,
                0,
            ]
        },
    ));
    forms
}

fn atomic(spelling: &str) -> BlockForm {
    let target = Target::parse(spelling, true);
    let class = target.class();
    let bits = target.bits;
    let address = if spelling.contains("shared") {
        "%r21"
    } else {
        "%l21"
    };
    let returns = spelling.starts_with("atom");
    let third = if target.operation == "cas" {
        format!(", %{class}2")
    } else {
        String::new()
    };
    // Half of the comparisons succeed.
    let same = if target.operation == "cas" {
        "and.b64 %l9, %l3, 1; setp.eq.u64 %p1, %l9, 0; @%p1 mov.b64 %l1, %l17; cvt.u32.u64 %r1, %l1;\n    "
    } else {
        ""
    };
    let result = if returns {
        format!("%{class}8, ")
    } else {
        String::new()
    };
    let leave = if returns {
        format!("st.global.b{bits} [%out], %{class}8;\n    ")
    } else {
        String::new()
    };
    let code = format!(
        "{NEXT}{MEET}ld.shared::cluster.b64 %l17, [%r21];
    {same}{MEET}{spelling} {result}[{address}], %{class}1{third};
    {leave}{MEET}ld.shared.b{bits} %{class}9, [%shared];
    st.global.b{bits} [%out+8], %{class}9;"
    );
    let of_halves = spelling.ends_with("x2");
    let form = exchange(spelling, code, 4, move |all, position| {
        let mask = u64::MAX >> (64 - bits);
        let compares = target.operation == "cas";
        // The effect of a thread on the words of the next block.
        let change = |of: &Sources, there: &Sources| {
            let operand = if compares && of[3].is_multiple_of(2) {
                there[0]
            } else {
                of[1]
            };
            target.value(
                (there[0] & mask).into(),
                (operand & mask).into(),
                (of[2] & mask).into(),
            ) as u64
        };
        let old = if returns {
            all[next(position, 4)][0] & mask
        } else {
            0
        };
        [old, change(&all[before(position, 4)], &all[position]), 0, 0]
    });
    if of_halves {
        form.left_out(ADDS_INTEGERS)
    } else {
        form
    }
}

const ADDS_INTEGERS: &str = "the compiler of CUDA 13.0 adds two halves in another block's shared memory as one integer, by a load and a store";
