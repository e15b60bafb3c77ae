//! Atomics and reductions: every operation, type, state space, memory order and scope. A thread
//! writes the value that the atomic returned and the value in memory after it.

use super::pattern::{expand, expand_named};
use super::{BlockForm, output_from_bytes};
use crate::form::Sources;
use crate::reference::integer::Integer;
use crate::reference::real::{
    BF16, Extreme, F16, F32, F64, Format, Mode, Operation, Round, arithmetic, extreme,
};

/// The scalar atomic operations.
pub(super) const OPERATIONS: &str = "{{and,or,xor,exch,cas}.{b32,b64},add.{u32,s32,u64,f32,f64},{min,max}.{u32,s32,u64,s64},\
                          {inc,dec}.u32,add.noftz.{f16,f16x2}}";
/// The scalar reductions.
pub(super) const REDUCTIONS: &str = "{{and,or,xor}.{b32,b64},add.{u32,s32,u64,f32,f64},{min,max}.{u32,s32,u64,s64},{inc,dec}.u32,\
                          add.noftz.{f16,f16x2}}";
/// The operations of newer devices.
const NEWER: &str = "add.noftz.{bf16,bf16x2}";
/// The vector operations, on global memory only.
const VECTORS: &str =
    "{add.{v2,v4}.f32,{add,min,max}.noftz.{{v2,v4,v8}.{f16,bf16},{v2,v4}.{f16x2,bf16x2}}}";

/// The operations tested with every memory order.
const SOME: &str = "{add.u32,cas.b64,exch.b32,max.s64,add.f32}";

/// The minimum compute capability, and spellings; capitalized names are replaced by their
/// definitions.
const PATTERNS: [(u32, &str); 18] = [
    (75, "atom{,.global,.shared,.shared::cta}.OPERATIONS"),
    (
        75,
        "atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.gpu,.sys}.global.OPERATIONS",
    ),
    (
        75,
        "atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.gpu,.sys}{,.shared}.SOME",
    ),
    (
        75,
        "atom{.relaxed,.acquire,.release,.acq_rel,.cta,.gpu,.sys}.global.SOME",
    ),
    (75, "atom{,.global,.shared}.cas.b16"),
    (80, "atom.global.L2::cache_hint.{exch.{b32,b64},REDUCTIONS}"),
    (
        90,
        "atom{.relaxed,.acquire,.release,.acq_rel}.cluster.global.OPERATIONS",
    ),
    (90, "atom.shared::cluster.OPERATIONS"),
    (90, "atom{,.global,.shared,.acq_rel.gpu.global}.NEWER"),
    (
        90,
        "atom{,.global,.shared,.acq_rel.gpu.global}.{exch,cas}.b128",
    ),
    (
        90,
        "atom{,.global,.acq_rel.gpu.global,.global.L2::cache_hint}.VECTORS",
    ),
    (75, "red{,.global,.shared,.shared::cta}.REDUCTIONS"),
    (
        75,
        "red{.relaxed,.release}{.cta,.gpu,.sys}.global.REDUCTIONS",
    ),
    (80, "red.global.L2::cache_hint.REDUCTIONS"),
    (90, "red{.relaxed,.release}.cluster.global.REDUCTIONS"),
    (90, "red.shared::cluster.REDUCTIONS"),
    (90, "red{,.global,.shared,.release.gpu.global}.NEWER"),
    (
        90,
        "red{,.global,.release.gpu.global,.global.L2::cache_hint}.VECTORS",
    ),
];

/// The definitions of the names.
const NAMES: &[(&str, &str)] = &[
    ("OPERATIONS", OPERATIONS),
    ("REDUCTIONS", REDUCTIONS),
    ("NEWER", NEWER),
    ("VECTORS", VECTORS),
    ("SOME", SOME),
];

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (architecture, pattern) in PATTERNS {
        forms.extend(
            expand_named(pattern, NAMES)
                .iter()
                .map(|spelling| form(spelling, false).needs(architecture)),
        );
    }
    let generic = expand(&format!("{{atom.{OPERATIONS},red.{REDUCTIONS}}}"));
    forms.extend(generic.iter().map(|spelling| form(spelling, true)));
    forms
}

/// The operand of an atomic in memory.
pub(super) struct Target {
    pub(super) operation: String,
    kind: String,
    /// The number of elements of the vector.
    count: usize,
    pub(super) bits: u32,
    is_shared: bool,
}

impl Target {
    pub(super) fn parse(spelling: &str, generic_shared: bool) -> Self {
        let words: Vec<&str> = spelling.split('.').collect();
        let forms = [
            "and", "or", "xor", "exch", "cas", "add", "min", "max", "inc", "dec",
        ];
        let operation = words
            .iter()
            .find(|word| forms.contains(word))
            .expect("an atomic has an operation");
        let count = words
            .iter()
            .find_map(|word| word.strip_prefix('v')?.parse().ok())
            .unwrap_or(1);
        let kind = words[words.len() - 1];
        let bits = if let Some(half) = kind.strip_suffix("x2") {
            2 * half
                .trim_start_matches(char::is_alphabetic)
                .parse::<u32>()
                .expect("the type has a width")
        } else {
            kind.trim_start_matches(char::is_alphabetic)
                .parse()
                .expect("the type has a width")
        };
        let is_shared = generic_shared || words.iter().any(|word| word.starts_with("shared"));
        Self {
            operation: (*operation).to_owned(),
            kind: kind.to_owned(),
            count,
            bits,
            is_shared,
        }
    }

    pub(super) fn class(&self) -> char {
        match self.bits {
            16 => 'h',
            32 => 'r',
            64 => 'l',
            _ => 'q',
        }
    }

    /// Returns the value of one element in memory after the operation.
    pub(super) fn value(&self, a: u128, b: u128, c: u128) -> u128 {
        let low = a as u64;
        let high = b as u64;
        let third = c as u64;
        let kind = self.kind.as_str();
        let pair = |format: Format| {
            let mask = format.sign() | (format.sign() - 1);
            let first = low >> format.width & mask;
            let second = high >> format.width & mask;
            u128::from(
                self.float(format, low & mask, high & mask)
                    | self.float(format, first, second) << format.width,
            )
        };
        match (self.operation.as_str(), kind) {
            ("and", _) => a & b,
            ("or", _) => a | b,
            ("xor", _) => a ^ b,
            ("exch", _) => b,
            ("cas", _) => {
                if a == b {
                    c
                } else {
                    a
                }
            }
            ("inc", _) => u128::from(if low >= high { 0 } else { low + 1 }),
            ("dec", _) => u128::from(if low == 0 || low > high {
                high
            } else {
                low - 1
            }),
            (_, "f32") => u128::from(self.float(F32, low, high)),
            (_, "f64") => u128::from(self.float(F64, low, high)),
            (_, "f16") => u128::from(self.float(F16, low, high)),
            (_, "bf16") => u128::from(self.float(BF16, low, high)),
            (_, "f16x2") => pair(F16),
            (_, "bf16x2") => pair(BF16),
            _ => {
                let integer = Integer {
                    bits: self.bits,
                    signed: kind.starts_with('s'),
                };
                let a = integer.value(low);
                let b = integer.value(high);
                let _ = third;
                u128::from(integer.wrap(match self.operation.as_str() {
                    "min" => a.min(b),
                    "max" => a.max(b),
                    _ => a + b,
                }))
            }
        }
    }

    /// Sums of `f32` flush subnormal numbers in global memory, but not in shared memory.
    fn float(&self, format: Format, a: u64, b: u64) -> u64 {
        if self.operation == "add" {
            let mode = Mode {
                flush: format == F32 && !self.is_shared,
                ..Mode::new(Round::Nearest)
            };
            return arithmetic(format, Operation::Add, mode, &[a, b]);
        }
        extreme(
            format,
            Extreme {
                largest: self.operation == "max",
                ..Extreme::default()
            },
            a,
            b,
        )
    }
}

/// Returns element `index` of the value that a thread stores, combines or swaps: its operands,
/// rotated differently for each.
fn element(words: &Sources, index: usize, source: usize, bits: u32) -> u128 {
    let turned = |word: u64| word.rotate_left(7 * index as u32);
    if bits == 128 {
        // Half of the comparisons use the stored word itself, so that they succeed.
        return match source {
            0 => u128::from(words[1]) << 64 | u128::from(words[0]),
            1 if words[3].is_multiple_of(2) => u128::from(words[1]) << 64 | u128::from(words[0]),
            _ => u128::from(words[3]) << 64 | u128::from(words[2]),
        };
    }
    let word = match source {
        1 if words[3].is_multiple_of(2) && index == 0 => words[0],
        source => words[source],
    };
    u128::from(turned(word) & u64::MAX >> (64 - bits))
}

fn form(spelling: &str, generic_shared: bool) -> BlockForm {
    let target = Target::parse(spelling, generic_shared);
    let returns = spelling.starts_with("atom");
    let class = target.class();
    let size = target.bits as usize / 8;
    let (address, space) = match (target.is_shared, generic_shared) {
        (true, true) => ("%generic", ""),
        (true, false) => ("%shared", ".shared"),
        _ => ("%work", ".global"),
    };
    let mut code = String::from(
        "and.b64 %l4, %l3, 1;
    setp.eq.u64 %p1, %l4, 0;
    mov.b64 %l5, %l1;
    @%p1 mov.b64 %l5, %l0;\n    ",
    );
    let mut operands = [const { Vec::new() }; 4];
    for index in 0..target.count {
        code += &put(&target, index, address, space, &mut operands);
    }
    let list = |registers: &[String]| {
        let all = registers.join(", ");
        if target.count == 1 {
            all
        } else {
            format!("{{{all}}}")
        }
    };
    let [results, sources, swapped, _] = &operands;
    let hint = if spelling.contains("cache_hint") {
        code += "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;\n    ";
        ", %l31"
    } else {
        ""
    };
    let third = if target.operation == "cas" {
        format!(", {}", list(swapped))
    } else {
        String::new()
    };
    let result = if returns {
        format!("{}, ", list(results))
    } else {
        String::new()
    };
    code += &format!(
        "{spelling} {result}[{address}], {}{third}{hint};\n    ",
        list(sources)
    );
    let bytes = target.count * size;
    for (index, register) in results.iter().enumerate().filter(|_| returns) {
        code += &if class == 'q' {
            format!(
                "mov.b128 {{%l6, %l7}}, {register}; st.global.v2.b64 [%out], {{%l6, %l7}};\n    "
            )
        } else {
            format!(
                "st.global.b{} [%out+{}], {register};\n    ",
                target.bits,
                index * size
            )
        };
    }
    let width = size.min(8);
    for at in (0..bytes).step_by(width) {
        let register = ["%h30", "%r30", "%l30"][width.trailing_zeros() as usize - 1];
        let bits = 8 * width;
        code += &format!(
            "ld{space}.b{bits} {register}, [{address}+{at}]; st.global.b{bits} [%out+{}], {register};\n    ",
            16 + at
        );
    }
    let name = if generic_shared {
        format!("{spelling} in shared memory")
    } else {
        spelling.to_owned()
    };
    BlockForm::new(name, code, move |all, thread| {
        let mut bytes = [0_u8; 32];
        for index in 0..target.count {
            let [a, b, c] =
                [0, 1, 2].map(|source| element(&all[thread], index, source, target.bits));
            let then = target.value(a, b, c);
            if returns {
                bytes[index * size..][..size].copy_from_slice(&a.to_le_bytes()[..size]);
            }
            bytes[16 + index * size..][..size].copy_from_slice(&then.to_le_bytes()[..size]);
        }
        output_from_bytes(|index| bytes[index])
    })
}

/// Code that stores an element and loads its operands into registers; returns the register names.
fn put(
    target: &Target,
    index: usize,
    address: &str,
    space: &str,
    operands: &mut [Vec<String>; 4],
) -> String {
    let class = target.class();
    let bits = target.bits;
    if class == 'q' {
        for (list, name) in operands.iter_mut().zip(["%q0", "%q1", "%q2"]) {
            list.push(name.to_owned());
        }
        return format!(
            "st{space}.v2.b64 [{address}], {{%l0, %l1}};
    mov.b64 %l8, %l2; mov.b64 %l9, %l3;
    @%p1 mov.b64 %l8, %l0;
    @%p1 mov.b64 %l9, %l1;
    mov.b128 %q1, {{%l8, %l9}};
    mov.b128 %q2, {{%l2, %l3}};
    "
        );
    }
    let compared = if index == 0 { "%l5" } else { "%l1" };
    let registers = [8, 16, 24, 0].map(|first| format!("%{class}{}", first + index));
    for (list, register) in operands.iter_mut().zip(&registers) {
        list.push(register.clone());
    }
    let turn = |from: &str, to: &str| {
        let operand = 7 * index;
        let right = 64 - 7 * index;
        let narrow = match bits {
            64 => format!("mov.b64 {to}, %l28"),
            // The compiler of CUDA 13.0 uses the upper half of an addend that is the low word of a
            // 64-bit register's upper word, if it combines two half-precision sums in shared
            // memory.
            32 if target.kind.ends_with("x2") => {
                format!("st.global.b64 [%work+32], %l28; ld.volatile.global.b32 {to}, [%work+32]")
            }
            _ => format!("cvt.u{bits}.u64 {to}, %l28"),
        };
        if index == 0 {
            return format!("mov.b64 %l28, {from}; {narrow};\n    ");
        }
        format!(
            "shl.b64 %l28, {from}, {operand}; shr.u64 %l29, {from}, {right}; or.b64 %l28, %l28, %l29; {narrow};\n    "
        )
    };
    let [first, second, third, _] = &registers;
    let offset = index * bits as usize / 8;
    turn("%l0", first)
        + &format!("st{space}.b{bits} [{address}+{offset}], {first};\n    ")
        + &turn(compared, second)
        + &turn("%l2", third)
}
