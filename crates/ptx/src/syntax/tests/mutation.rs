//! Damaged texts: parsing them returns, and soon.

use super::TestResult;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::KERNELS;
use crate::syntax::parse;

/// The sample is parsed in a fraction of this time; the rest is for slow machines.
const MAX_DURATION: Duration = Duration::from_secs(2);

/// Returns `true` if a parse took longer than a limit for processors. An emulator is much slower;
/// `CURIUM_TEST_RUNNER` names it.
fn is_too_long(time: Duration, limit: Duration) -> bool {
    let slowdown = if std::env::var_os("CURIUM_TEST_RUNNER").is_some() {
        50
    } else {
        1
    };
    time >= limit * slowdown
}

fn try_parse(source: &str) -> TestResult {
    let start = Instant::now();
    if let Err(error) = parse(source) {
        assert!(error.line() >= 1 && error.column() >= 1);
        let lines = u32::try_from(source.lines().count())? + 1;
        assert!(error.line() <= lines, "{error} lies beyond the text");
    }
    assert!(
        !is_too_long(start.elapsed(), MAX_DURATION),
        "this took too long:\n{source}"
    );
    Ok(())
}

#[test]
fn truncated_texts_do_not_panic() -> TestResult {
    for end in (0..KERNELS.len()).filter(|end| KERNELS.is_char_boundary(*end)) {
        try_parse(&KERNELS[..end])?;
    }
    Ok(())
}

#[test]
fn flipped_bytes_do_not_panic() -> TestResult {
    let mut random = Rng::with_seed(0);
    for _ in 0..4000 {
        let mut bytes = KERNELS.as_bytes().to_vec();
        for _ in 0..=random.usize(..4) {
            let position = random.usize(..bytes.len());
            bytes[position] ^= 1 << random.usize(..8);
        }
        try_parse(&String::from_utf8_lossy(&bytes))?;
    }
    Ok(())
}

#[test]
fn moved_parts_do_not_panic() -> TestResult {
    let mut random = Rng::with_seed(42);
    for _ in 0..2000 {
        let mut bytes = KERNELS.as_bytes().to_vec();
        let from = random.usize(..bytes.len() - 30);
        let piece: Vec<u8> = bytes[from..from + random.usize(..30)].to_vec();
        let to = random.usize(..bytes.len());
        bytes.splice(to..to, piece);
        try_parse(&String::from_utf8_lossy(&bytes))?;
    }
    Ok(())
}

#[test]
fn parsing_takes_linear_time() -> TestResult {
    let header = ".version 8.7\n.target sm_90\n.address_size 64\n";
    for piece in [
        "{",
        "[",
        "(",
        "@",
        "%",
        "\"",
        "/*",
        ".",
        ":",
        "a:",
        "{a:",
        "- ",
        ".func f(){",
        "1+",
        "a?",
        "::",
        "\u{1F600}",
    ] {
        for prefix in [
            "",
            ".func f() { ",
            ".global .u32 a = ",
            ".func f() { .reg .b32 %r<9>; mov.u32 %r1, ",
        ] {
            try_parse(&format!("{header}{prefix}{}", piece.repeat(20_000)))?;
        }
    }
    Ok(())
}

#[test]
fn ten_thousand_lines() -> TestResult {
    let mut source = String::from(
        ".version 8.7\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .b32 %r<10000>;\n",
    );
    for line in 1..10_000 {
        source.push_str(&format!(
            "\tmad.lo.s32 \t%r{line}, %r{}, %r{}, {line};\n",
            line - 1,
            line / 2
        ));
    }
    source.push_str("ret;\n}\n");
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            parse(&source).expect("valid");
            start.elapsed()
        })
        .min()
        .ok_or("no measurement")?;
    // The goal is 50 ms in release builds; other builds and a busy machine need more.
    assert!(!is_too_long(best, Duration::from_secs(1)), "{best:?}");
    Ok(())
}
