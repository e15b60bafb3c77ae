//! Member masks that differ between the lanes of a warp.

use super::super::ReportKind;
use super::Bench;

/// Returns the masks of a partition of the lanes: lane `n` is in the group `label(n)`.
fn masks(label: impl Fn(u32) -> u32) -> [u32; 32] {
    let lanes = |wanted| {
        (0..32)
            .filter(|&lane| label(lane) == wanted)
            .fold(0, |mask, lane| mask | 1 << lane)
    };
    std::array::from_fn(|lane| lanes(label(lane as u32)))
}

/// Returns partitions: tiles of every size, and random ones.
fn partitions() -> Vec<[u32; 32]> {
    let tiles = [1, 2, 4, 8, 16]
        .map(|size| masks(|lane| lane / size))
        .into_iter();
    let random = (0..24_u32).map(|seed| {
        masks(|lane| {
            (lane.wrapping_add(seed * 37))
                .wrapping_mul(0x9E37_79B9)
                .rotate_left(9)
                % (seed % 7 + 1)
        })
    });
    tiles.chain(random).collect()
}

/// Runs a body with each lane's mask in `%r20`, and returns each lane's word at `%at4`.
fn run(masks: &[u32; 32], body: &str) -> Vec<u32> {
    let body = format!(
        "ld.global.u32 %r20, [%at4+1024];\nsetp.lt.u32 %p1, %t, 13;\n{body}\nst.global.u32 [%at4], %r2;"
    );
    let bench = Bench::body(&body, 4096);
    bench.memory.write(1024, masks);
    bench.results::<u32>(32)
}

/// Returns the lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// An instruction that writes `%r2`, and its expected result for a lane, from the lane's mask.
type Collective = (&'static str, fn(u32, u32) -> u32);

const COLLECTIVES: [Collective; 12] = [
    ("vote.sync.ballot.b32 %r2, %p1, %r20;", |_, mask| mask & 0x1fff),
    ("vote.sync.all.pred %p2, %p1, %r20; selp.u32 %r2, 1, 0, %p2;", |_, mask| u32::from(mask & 0x1fff == mask)),
    ("vote.sync.any.pred %p2, !%p1, %r20; selp.u32 %r2, 1, 0, %p2;", |_, mask| u32::from(mask & !0x1fff != 0)),
    ("vote.sync.uni.pred %p2, %p1, %r20; selp.u32 %r2, 1, 0, %p2;", |_, mask| {
        u32::from(mask & 0x1fff == mask || mask & 0x1fff == 0)
    }),
    ("redux.sync.add.s32 %r2, %t, %r20;", |_, mask| lanes(mask).sum()),
    ("redux.sync.max.u32 %r2, %t, %r20;", |_, mask| lanes(mask).max().unwrap_or_default()),
    ("redux.sync.xor.b32 %r2, %t, %r20;", |_, mask| lanes(mask).fold(0, |a, b| a ^ b)),
    ("and.b32 %r3, %t, 5; match.any.sync.b32 %r2, %r3, %r20;", |lane, mask| {
        lanes(mask).filter(|other| other & 5 == lane & 5).fold(0, |mask, lane| mask | 1 << lane)
    }),
    ("shr.u32 %r3, %t, 3; cvt.u64.u32 %d1, %r3; match.all.sync.b64 %r2|%p2, %d1, %r20;", |lane, mask| {
        if lanes(mask).all(|other| other >> 3 == lane >> 3) { mask } else { 0 }
    }),
    ("elect.sync %r2|%p2, %r20;", |_, mask| mask.trailing_zeros()),
    // Each lane reads from the highest lane of its mask.
    ("bfind.u32 %r3, %r20; shfl.sync.idx.b32 %r2, %t, %r3, 31, %r20;", |_, mask| 31 - mask.leading_zeros()),
    (
        ".shared .b32 box[32]; mov.u32 %r4, box; mad.lo.u32 %r5, %t, 4, %r4; st.shared.u32 [%r5], %t; bar.warp.sync %r20;
        bfind.u32 %r3, %r20; mad.lo.u32 %r5, %r3, 4, %r4; ld.shared.u32 %r2, [%r5];",
        |_, mask| 31 - mask.leading_zeros(),
    ),
];

/// Checks each instruction with all partitions, after the code `before`.
fn check(before: &str) {
    for masks in partitions() {
        for (code, expected) in COLLECTIVES {
            let results = run(&masks, &format!("{before}\n{code}"));
            let expected: Vec<u32> = (0..32)
                .map(|lane| expected(lane, masks[lane as usize]))
                .collect();
            assert_eq!(results, expected, "{code}\n{masks:08x?}");
        }
    }
}

#[test]
fn disjoint_member_masks_are_separate_groups() {
    check("");
}

/// Lanes of a group that arrive one after the other wait for each other.
#[test]
fn late_lanes_are_awaited() {
    // Each lane first counts to a different number.
    check(
        "mov.u32 %r10, 0;
        mul.lo.u32 %r11, %t, 11;
        and.b32 %r11, %r11, 31;
        AGAIN:
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p5, %r10, %r11;
        @%p5 bra AGAIN;",
    );
}

/// The lanes of a mask meet at instructions of the same kind, wherever they stand.
#[test]
fn lanes_in_both_arms_are_one_group() {
    for masks in partitions() {
        // The last one has a variable, which is another one in each arm.
        for (code, expected) in &COLLECTIVES[..COLLECTIVES.len() - 1] {
            let other = code.replace("%t", "%r8").replace("%r3", "%r9");
            let body = format!(
                "mov.u32 %r8, %t; and.b32 %r10, %t, 1; setp.eq.u32 %p6, %r10, 1;
                @%p6 bra ODD;
                {code}
                bra.uni END;
                ODD:
                {other}
                END:"
            );
            let expected: Vec<u32> = (0..32)
                .map(|lane| expected(lane, masks[lane as usize]))
                .collect();
            assert_eq!(run(&masks, &body), expected, "{code}\n{masks:08x?}");
        }
    }
}

/// Instructions of other kinds do not meet: the lanes wait for ever, which is reported.
#[test]
fn different_instructions_do_not_meet() {
    let body = "and.b32 %r10, %t, 1; setp.eq.u32 %p6, %r10, 1;
        @%p6 bra ODD;
        shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;
        bra.uni END;
        ODD:
        shfl.sync.up.b32 %r2, %t, 1, 0, -1;
        END:
        st.global.u32 [%at4], %r2;";
    let report = Bench::body(body, 4096)
        .launch(1, 32)
        .expect_err("the lanes wait for each other");
    assert!(
        matches!(
            report.kind,
            ReportKind::Deadlock | ReportKind::MissingMembers(_)
        ),
        "{report:?}"
    );
}

#[test]
fn complete_group_does_not_wait_for_the_others() {
    // The upper half spins until the lower half, a separate group, has passed the vote.
    let body = "setp.lt.u32 %p2, %t, 16;
        @%p2 bra VOTE;
        WAIT:
        ld.volatile.global.u32 %r3, [%p+2048];
        setp.eq.u32 %p3, %r3, 0;
        @%p3 bra WAIT;
        VOTE:
        vote.sync.ballot.b32 %r2, %p1, %r20;
        @%p2 st.volatile.global.u32 [%p+2048], 1;";
    let results = run(&masks(|lane| lane / 16), body);
    assert_eq!(results, [[0x1fff; 16], [0; 16]].concat());
}

#[test]
fn group_does_not_wait_for_lanes_that_have_ended() {
    let body = "vote.sync.ballot.b32 %r2, %p1, %r20; st.global.u32 [%at4], %r2; and.b32 %r3, %t, 3;
        setp.eq.u32 %p4, %r3, 3; @%p4 exit; vote.sync.ballot.b32 %r2, %p1, %r20;";
    assert_eq!(
        run(&masks(|lane| lane / 8), body),
        (0..32)
            .map(|lane: u32| {
                let tile = 0xff_u32 << (lane / 8 * 8);
                if lane % 4 == 3 {
                    tile & 0x1fff
                } else {
                    tile & 0x1fff & 0x7777_7777
                }
            })
            .collect::<Vec<_>>()
    );
}

#[test]
fn member_mask_without_the_calling_lane_is_reported() {
    for code in [
        "vote.sync.ballot.b32 %r2, %p1, %r3;",
        "bar.warp.sync %r3;",
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, %r3;",
    ] {
        let body =
            format!("setp.eq.u32 %p1, %t, 5; selp.u32 %r3, 0xffff0000, 0xffffffff, %p1; {code}");
        let fault = Bench::body(&body, 4096).launch(1, 32).expect_err(code);
        assert!(
            matches!(fault.kind, ReportKind::IllegalInstruction(reason) if reason.contains("member mask")),
            "{fault}"
        );
        assert_eq!(fault.thread, [5, 0, 0]);
    }
}
