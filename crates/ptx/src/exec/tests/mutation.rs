//! Damaged programs: they are refused, fault, or run. Nothing panics, and nothing exhausts the
//! host's memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::super::memory::tests::Arena;
use super::super::{DeviceModel, Launch, Schedule, lower, run};
use super::{BASE, Host};
use crate::syntax;

/// Sources with most constructs of programs.
const SOURCES: [&str; 3] = [
    include_str!("matmul.ptx"),
    include_str!("bodies.ptx"),
    include_str!("../../syntax/tests/kernels.ptx"),
];
/// Replacements for tokens.
const TOKENS: [&str; 40] = [
    "u64",
    "s32",
    "f32",
    "b16",
    "f16x2",
    "b128",
    "pred",
    ".global",
    ".shared",
    ".local",
    ".param",
    "ld",
    "st",
    "atom",
    "mma",
    "shfl",
    "bar",
    "cp.async",
    "mbarrier",
    "wmma",
    "bra",
    "call",
    "ret",
    "0",
    "-1",
    "4294967296",
    "99999999999",
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ".v4",
    ".sync",
    "_",
];

/// Splits a text into words, numbers and signs.
fn tokens(text: &str) -> Vec<&str> {
    let is_word =
        |character: char| character.is_alphanumeric() || matches!(character, '_' | '%' | '$');
    let mut tokens = Vec::new();
    let mut remaining = text;
    while let Some(first) = remaining.chars().next() {
        let length = if is_word(first) {
            remaining
                .find(|character| !is_word(character))
                .unwrap_or(remaining.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = remaining.split_at(length);
        tokens.push(token);
        remaining = after;
    }
    tokens
}

/// Loads a program and runs its kernels briefly.
fn try_program(text: &str) -> bool {
    let Ok(program) = syntax::parse(text)
        .map_err(drop)
        .and_then(|module| lower(&module).map_err(drop))
    else {
        return false;
    };
    let memory = Arena::new(BASE, 4096);
    let globals = vec![BASE; program.globals().len()];
    for kernel in program.kernels() {
        let cancel = AtomicBool::new(false);
        let done = AtomicBool::new(false);
        let launch = Launch {
            program: &program,
            kernel,
            grid: [2, 1, 1],
            block: [33, 1, 1],
            cluster: [1; 3],
            dynamic_shared: 64,
            params: &BASE.to_le_bytes().repeat(kernel.param_size.div_ceil(8)),
            globals: &globals,
            memory: &memory,
            runtime: &Host::default(),
            device: &DeviceModel::default(),
            workers: 1,
            schedule: Schedule::InOrder,
            workspace: 0,
            cancel: &cancel,
            limits: super::Limits::default(),
        };
        thread::scope(|scope| {
            let watch = scope.spawn(|| {
                for _ in 0..20 {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::park_timeout(Duration::from_millis(1));
                }
                cancel.store(true, Ordering::Relaxed);
            });
            // A fault is an acceptable outcome.
            let _ = run(&launch);
            done.store(true, Ordering::Relaxed);
            watch.thread().unpark();
        });
    }
    true
}

#[test]
fn exchanged_tokens_do_not_panic() {
    let mut random = Rng::with_seed(0);
    let mut loaded = 0;
    for round in 0..1500 {
        let source = SOURCES[round % SOURCES.len()];
        let header = if source.contains(".version") {
            ""
        } else {
            ".version 8.8\n.target sm_100\n.address_size 64\n"
        };
        let mut tokens = tokens(source);
        for _ in 0..=random.usize(..3) {
            let position = random.usize(..tokens.len());
            let other = tokens[random.usize(..tokens.len())];
            tokens[position] = if random.usize(..2) == 0 {
                TOKENS[random.usize(..TOKENS.len())]
            } else {
                other
            };
        }
        loaded += usize::from(try_program(&format!("{header}{}", tokens.concat())));
    }
    assert!(
        loaded > 50,
        "only {loaded} of the programs ran, so this tests little"
    );
}

#[test]
fn impossible_sizes_are_refused() {
    let refused = |body: &str, parameters: &str| {
        let text = format!(
            ".version 8.8\n.target sm_100\n.address_size 64\n{}.entry main({parameters}) {{ {} ret; }}",
            if body.starts_with(".global") {
                body
            } else {
                ""
            },
            if body.starts_with(".global") {
                ""
            } else {
                body
            }
        );
        syntax::parse(&text).is_err() || lower(&syntax::parse(&text).expect("it parsed")).is_err()
    };
    let huge = "[9223372036854775807]";
    for space in [".global", ".shared", ".local"] {
        assert!(refused(&format!("{space} .b8 large{huge};"), ""), "{space}");
        assert!(
            refused(&format!("{space} .b8 large[4000000000];"), ""),
            "{space}"
        );
    }
    assert!(refused("", &format!(".param .b8 large{huge}")));
    assert!(refused("", ".param .b8 large[40000]"));
    assert!(!refused(
        ".shared .b8 small[4000];",
        ".param .b8 small[4000]"
    ));
}
