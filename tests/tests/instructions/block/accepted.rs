//! That the simulator accepts no form that has no test: spellings of many kinds, right ones and wrong ones, are loaded one by one.

use std::collections::BTreeSet;

use curium_driver::{Library, Stream};
use curium_sim::{Config, DeviceModel};
use curium_tests::on_simulator;

use super::pattern::expand;
use super::{BlockForm, forms, module};

/// Types, some of which no load, store or atomic has.
const TYPES: &str = "{pred,b8,u8,s8,b16,u16,s16,f16,bf16,b32,u32,s32,f32,f16x2,bf16x2,tf32,b64,u64,s64,f64,b128}";

/// Spellings, with the operands behind them: registers are `D` and `S`, by the type, and `A` is an address in the spelled space.
const CANDIDATES: [(&str, &str); 11] = [
    ("ld{,.global,.shared,.local,.const,.param,.shared::cta,.shared::cluster}{,.v2,.v4,.v8}.TYPES", "D, [A]"),
    (
        "ld{.weak,.relaxed,.acquire,.release,.acq_rel,.sc,.volatile,.mmio,.mmio.relaxed}{,.cta,.gpu,.sys}\
         {,.global,.shared,.local,.const}.{u8,b32,b64,v2.b32}",
        "D, [A]",
    ),
    ("ld{,.global,.shared,.const}{.ca,.cg,.cs,.lu,.cv,.wb,.wt,.nc,.ca.nc}.{u8,b32,v2.b32}", "D, [A]"),
    ("st{,.global,.shared,.local,.const,.param,.shared::cta,.shared::cluster}{,.v2,.v4,.v8}.TYPES", "[A], D"),
    (
        "st{.weak,.relaxed,.acquire,.release,.acq_rel,.sc,.volatile,.mmio,.mmio.relaxed}{,.cta,.gpu,.sys}\
         {,.global,.shared,.local}.{u8,b32,b64,v2.b32}",
        "[A], D",
    ),
    ("st{,.global,.shared}{.ca,.cg,.cs,.lu,.cv,.wb,.wt,.nc}.{u8,b32,v2.b32}", "[A], D"),
    (
        "atom{,.global,.shared,.local,.const}.{and,or,xor,exch,add,min,max,inc,dec}{,.noftz}{,.v2,.v4,.v8}.TYPES",
        "D, [A], S",
    ),
    ("atom{,.global,.shared}.cas.TYPES", "D, [A], S, S"),
    (
        "red{,.global,.shared,.local,.const}.{and,or,xor,exch,add,min,max,inc,dec}{,.noftz}{,.v2,.v4,.v8}.TYPES",
        "[A], S",
    ),
    ("redux.sync.{add,min,max,and,or,xor,inc}.TYPES", "D, S, -1"),
    ("{shfl.sync.{up,down,bfly,idx},match.{any,all,uni}.sync}.TYPES", "D, S, 1, 31, -1"),
];

/// Operands for a spelling.
fn operands(spelling: &str, template: &str) -> String {
    let words: Vec<&str> = spelling.split('.').collect();
    let kind = words[words.len() - 1];
    let class = match kind.trim_start_matches(|it: char| it.is_alphabetic()) {
        "" => "p",
        "8" | "16" => "h",
        "64" => "l",
        "128" => "q",
        _ => "r",
    };
    let count: usize = words.iter().find_map(|word| word.strip_prefix('v')?.parse().ok()).unwrap_or(1);
    let registers = |first: usize| {
        // There are four of 128 bits.
        let names: Vec<String> =
            (0..count).map(|at| format!("%{class}{}", if class == "q" { at % 2 } else { first + at })).collect();
        if count == 1 { names.concat() } else { format!("{{{}}}", names.join(", ")) }
    };
    let place =
        match words.iter().find(|word| ["shared", "local", "const", "param"].iter().any(|it| word.starts_with(it))) {
            Some(word) if word.starts_with("shared") => "%shared",
            Some(&"local") => "%local",
            Some(&"const") => "words",
            Some(_) => "table",
            None => "%work",
        };
    // The match of a warp takes two operands only.
    let template = if words[0] == "match" { "D, S, -1" } else { template };
    let first = if class == "p" { 0 } else { 8 };
    template
        .replace('D', &registers(first))
        .replace('S', &registers(if class == "p" { 0 } else { 16 }))
        .replace('A', place)
}

fn is_accepted(stream: &Stream, spelling: &str, template: &str) -> bool {
    let code = format!("{spelling} {};", operands(spelling, template));
    let form = BlockForm::new(spelling, code, |_, _| [0; 4]).needs(100);
    Library::from_ptx(stream, &module(&[&form])).is_ok()
}

#[test]
fn simulator_accepts_no_load_store_or_atomic_that_has_no_test() {
    on_simulator(Config::new().with_device_model(DeviceModel::B200), |test, _| {
        let (stream, forms) = (test.stream(), forms());
        let tested: BTreeSet<&str> = forms.iter().map(BlockForm::spelling).collect();
        let (mut untested, mut accepted) = (Vec::new(), 0);
        for (pattern, template) in CANDIDATES {
            for spelling in expand(&pattern.replace("TYPES", TYPES)) {
                if is_accepted(&stream, &spelling, template) {
                    accepted += 1;
                    if !tested.contains(spelling.as_str()) {
                        untested.push(spelling);
                    }
                }
            }
        }
        assert!(untested.is_empty(), "{} of {accepted} have no test: {untested:#?}", untested.len());
        assert!(accepted > 500, "only {accepted} are accepted");
    });
}
