//! Loads and stores: every type, width, state space and modifier.

use super::pattern::{expand, expand_named};
use super::{BlockForm, Output, TABLE, output_from_bytes};
use crate::form::Sources;

/// The types of loads and stores, except the 128-bit ones.
const TYPES: &str = "{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}";
/// Vectors of at most 128 bits.
const VECTORS: &str = "{v2.{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64},\
                       v4.{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32}}";
/// Vectors of eight narrow elements.
const NARROW: &str = "v8.{b8,u8,s8,b16,u16,s16}";
/// Vectors of 256 bits, in global memory only.
const WIDE: &str = "{v4.{b64,u64,s64,f64},v8.{b32,u32,s32,f32}}";
/// The writable state spaces.
const SPACES: &str = "{,.global,.shared,.shared::cta,.local}";
/// The types tested with each hint.
const SOME: &str = "{u8,s16,b32,f32,b64,v2.b32,v4.b32}";

/// The minimum compute capability, and spellings; capitalized names are replaced by their
/// definitions.
const PATTERNS: [(u32, &str); 34] = [
    (75, "ldSPACES.{TYPES,VECTORS}"),
    (75, "ld{.const,.param}.{TYPES,VECTORS}"),
    (75, "ld.param::entry.SOME"),
    (90, "ld.shared::cluster.{TYPES,VECTORS}"),
    (75, "{ld,st}SPACES.NARROW"),
    (75, "ld{.const,.param}.NARROW"),
    (90, "{ld,st}.shared::cluster.NARROW"),
    (75, "ldu{,.global}.{TYPES,VECTORS}"),
    (
        75,
        "ld{,.global,.shared,.shared::cta,.local,.const,.param}.b128",
    ),
    (90, "{ld,st}.shared::cluster.b128"),
    (100, "ld{,.global}.WIDE"),
    (75, "ld{,.global,.shared,.const}{.ca,.cg,.cs,.lu,.cv}.SOME"),
    (75, "ld.global{.ca,.cg,.cs,}.nc.SOME"),
    (75, "ld.weak{,.global,.shared,.local,.const}.SOME"),
    (75, "ld.volatile{,.global,.shared}.SOME"),
    (
        75,
        "ld{.relaxed,.acquire}{.cta,.gpu,.sys}{,.global,.shared}.SOME",
    ),
    (90, "ld{.relaxed,.acquire}.cluster{,.global,.shared}.SOME"),
    (75, "ld.mmio.relaxed.sys{,.global}.{u8,s16,b32,f32,b64}"),
    (
        75,
        "ld.global.L1::{evict_normal,evict_unchanged,evict_first,evict_last,no_allocate}.SOME",
    ),
    (75, "ld.global.L2::64B.SOME"),
    (80, "ld.global.L2::{128B,256B}.SOME"),
    (
        80,
        "ld.global{,.nc,.L1::evict_last,.L1::no_allocate.L2::128B}.L2::cache_hint.SOME",
    ),
    (75, "stSPACES.{TYPES,VECTORS}"),
    (90, "st.shared::cluster.{TYPES,VECTORS}"),
    (75, "st{,.global,.shared,.shared::cta,.local}.b128"),
    (100, "st{,.global}.WIDE"),
    (75, "st{,.global,.shared}{.wb,.cg,.cs,.wt}.SOME"),
    (75, "st.weak{,.global,.shared,.local}.SOME"),
    (75, "st.volatile{,.global,.shared}.SOME"),
    (
        75,
        "st{.relaxed,.release}{.cta,.gpu,.sys}{,.global,.shared}.SOME",
    ),
    (90, "st{.relaxed,.release}.cluster{,.global,.shared}.SOME"),
    (75, "st.mmio.relaxed.sys{,.global}.{u8,s16,b32,f32,b64}"),
    (
        75,
        "st.global.L1::{evict_normal,evict_unchanged,evict_first,evict_last,no_allocate}.SOME",
    ),
    (80, "st.global{,.L1::evict_last}.L2::cache_hint.SOME"),
];

/// The definitions of the names.
const NAMES: &[(&str, &str)] = &[
    ("TYPES", TYPES),
    ("VECTORS", VECTORS),
    ("NARROW", NARROW),
    ("WIDE", WIDE),
    ("SOME", SOME),
    ("SPACES", SPACES),
];

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (architecture, pattern) in PATTERNS {
        for spelling in expand_named(pattern, NAMES) {
            let moved = Moved::parse(&spelling);
            let form = if spelling.starts_with("st") {
                store(&spelling, &moved)
            } else {
                load(&spelling, &moved, None)
            };
            let form = match misunderstood(&spelling) {
                Some(reason) => form.left_out(reason),
                None => form,
            };
            forms.push(form.needs(architecture));
        }
    }
    forms.extend(wider());
    forms.extend(generic_to_shared());
    forms.extend(promised());
    forms
}

/// Loads with the guarantee that the address is uniform.
fn promised() -> Vec<BlockForm> {
    expand("ld{,.global{,.nc,.L1::evict_last,.L2::cache_hint}}.v2.b64")
        .into_iter()
        .map(|spelling: String| {
            let hint = if spelling.contains("cache_hint") {
                ", %l31"
            } else {
                ""
            };
            let code = format!(
                "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;
    ld.param.u64 %l30, [in];
    {spelling} {{%l8, %l9}}, [%l30].unified{hint};
    st.global.v2.b64 [%out], {{%l8, %l9}};"
            );
            let form = BlockForm::new(format!("{spelling} unified"), code, |all, _| {
                [all[0][0], all[0][1], 0, 0]
            });
            form.needs(80)
        })
        .collect()
}

/// Returns the reason why a real driver miscompiles eight elements of 8 or 16 bits, which the
/// assembler accepts.
fn misunderstood(spelling: &str) -> Option<&'static str> {
    let is_narrow = spelling.contains(".v8.") && !spelling.ends_with("32");
    is_narrow.then_some(if spelling.starts_with("ld") {
        "the compiler of the driver for CUDA 13.0 ends the process with a segmentation fault"
    } else {
        "the compiler of CUDA 13.0 stores the first element only"
    })
}

/// Loads of one integer into wider registers.
fn wider() -> Vec<BlockForm> {
    let spellings = expand("ld{,.global,.shared,.local,.param}.{b8,u8,s8,b16,u16,s16,b32,u32,s32}");
    let form = |spelling: &String, bits: u32| {
        let moved = Moved::parse(spelling);
        (moved.register() < bits).then(|| load(spelling, &moved, Some(bits)))
    };
    spellings
        .iter()
        .flat_map(|spelling| [form(spelling, 32), form(spelling, 64)])
        .flatten()
        .collect()
}

/// Generic accesses of shared memory.
fn generic_to_shared() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for spelling in expand(&format!("{{ld,st}}.{{{TYPES},{VECTORS}}}")) {
        let moved = Moved::parse(&spelling);
        let mut form = if spelling.starts_with("st") {
            store(&spelling, &moved)
        } else {
            load(&spelling, &moved, None)
        };
        form.code = form.code.replace("[%work", "[%generic");
        form.name += " to shared memory";
        forms.push(form);
    }
    forms
}

/// The data of an access.
struct Moved {
    count: usize,
    bits: u32,
    signed: bool,
}

impl Moved {
    fn parse(spelling: &str) -> Self {
        let count = spelling
            .split('.')
            .find_map(|word| word.strip_prefix('v')?.parse().ok())
            .unwrap_or(1);
        let last = spelling.rsplit('.').next().expect("a spelling has words");
        let bits = last[1..].parse().expect("the last word is a type");
        Self {
            count,
            bits,
            signed: last.starts_with('s'),
        }
    }

    /// Returns the bits of a register of this width.
    fn register(&self) -> u32 {
        self.bits.max(16)
    }

    /// Returns the size in memory in bytes.
    fn bytes(&self) -> usize {
        self.count * self.bits as usize / 8
    }

    /// Returns the operand, in braces if it is a vector.
    fn operand(&self, registers: &[String]) -> String {
        let list = registers.join(", ");
        if self.count == 1 {
            list
        } else {
            format!("{{{list}}}")
        }
    }
}

fn class(bits: u32) -> char {
    match bits {
        16 => 'h',
        32 => 'r',
        64 => 'l',
        _ => 'q',
    }
}

/// Returns the thread's location in the spelled state space; for read-only loads, its operands.
fn base_address(spelling: &str) -> &'static str {
    if spelling.starts_with("ldu") || spelling.contains(".nc.") {
        return "%in";
    }
    match spelling.split('.').find(|word| {
        ["const", "param", "shared", "local"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    }) {
        Some("const") => "words",
        Some(word) if word.starts_with("param") => "table",
        Some("local") => "%local",
        Some(_) => "%shared",
        None => "%work",
    }
}

/// Returns the state space for ordinary accesses to the thread's location.
fn plain(address: &str) -> &'static str {
    match address {
        "%local" => ".local",
        "%shared" => ".shared",
        "%work" => "",
        _ => "none",
    }
}

/// Returns the cache policy of accesses that have one.
fn policy(spelling: &str) -> (&'static str, &'static str) {
    if spelling.contains("cache_hint") {
        return (
            "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;\n    ",
            ", %l31",
        );
    }
    ("", "")
}

/// Stores words, and loads them with the form: the result is the loaded registers.
fn load(spelling: &str, moved: &Moved, wider: Option<u32>) -> BlockForm {
    let address = base_address(spelling);
    let bits = wider.unwrap_or(moved.register());
    let space = plain(address);
    let class = class(bits);
    let (make, hint) = policy(spelling);
    let put = if space == "none" {
        String::new()
    } else {
        (0..4)
            .map(|word| format!("st{space}.b64 [{address}+{}], %l{word};\n    ", 8 * word))
            .collect()
    };
    let first = if class == 'q' { 0 } else { 8 };
    let registers: Vec<String> = (first..first + moved.count)
        .map(|number| format!("%{class}{number}"))
        .collect();
    let stores: String = (registers.iter().enumerate())
        .map(|(index, register)| {
            format!(
                "\n    st.global.b{bits} [%out+{}], {register};",
                index * bits as usize / 8
            )
        })
        .collect();
    let operand = moved.operand(&registers);
    let code = format!("{put}{make}{spelling} {operand}, [{address}]{hint};{stores}");
    let name = wider.map_or_else(
        || spelling.to_owned(),
        |bits| format!("{spelling} into {bits} bits"),
    );
    let count = moved.count;
    let width = moved.bits;
    let signed = moved.signed;
    let is_table = ["words", "table"].contains(&address);
    BlockForm::new(name, code, move |all, thread| {
        let source = if is_table { TABLE } else { all[thread] };
        let from = bytes(source);
        let mut output = Vec::new();
        for element in 0..count {
            let size = width as usize / 8;
            let element = &from[element * size..][..size];
            let fill = if signed && element[size - 1] >= 0x80 {
                0xff
            } else {
                0
            };
            output.extend(
                (0..bits as usize / 8).map(|index| element.get(index).copied().unwrap_or(fill)),
            );
        }
        words(&output)
    })
}

/// Stores registers over zeros with the form: the result is the memory after it.
fn store(spelling: &str, moved: &Moved) -> BlockForm {
    let address = base_address(spelling);
    let (make, hint) = policy(spelling);
    let space = plain(address);
    let bits = moved.register();
    let class = class(bits);
    let mut fill = String::new();
    let mut registers = Vec::new();
    for element in 0..moved.count {
        registers.push(format!(
            "%{class}{}",
            if class == 'q' { 0 } else { 8 + element }
        ));
        let word = element % 4;
        let shift = 32 * (element / 4);
        fill += &match class {
            'q' => "mov.b128 %q0, {%l0, %l1};\n    ".to_owned(),
            'l' => format!("mov.b64 %l{}, %l{word};\n    ", 8 + element),
            _ => format!(
                "shr.u64 %l30, %l{word}, {shift};\n    cvt.u{bits}.u64 %{class}{}, %l30;\n    ",
                8 + element
            ),
        };
    }
    let clear: String = (0..4)
        .map(|word| format!("st{space}.b64 [{address}+{}], 0;\n    ", 8 * word))
        .collect();
    let stores: String = (0..4)
        .map(|word| {
            format!(
                "\n    ld{space}.b64 %l20, [{address}+{0}];\n    st.global.b64 [%out+{0}], %l20;",
                8 * word
            )
        })
        .collect();
    let operand = moved.operand(&registers);
    let code = format!("{clear}{fill}{make}{spelling} [{address}], {operand}{hint};{stores}");
    let count = moved.count;
    let size = moved.bits as usize / 8;
    let bytes = moved.bytes();
    BlockForm::new(spelling, code, move |all, thread| {
        let mut output = vec![0; 32];
        for (at, byte) in output.iter_mut().enumerate().take(bytes) {
            let element = at / size;
            let within = at % size;
            *byte = if size == 16 {
                all[thread][within / 8].to_le_bytes()[within % 8]
            } else {
                (all[thread][element % 4] >> (32 * (element / 4))).to_le_bytes()[within]
            };
        }
        debug_assert!(count * size <= 32);
        words(&output)
    })
}

fn bytes(words: Sources) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns bytes as the result of a thread, padded with zeros.
fn words(bytes: &[u8]) -> Output {
    let mut all = [0; 32];
    all[..bytes.len()].copy_from_slice(bytes);
    output_from_bytes(|index| all[index])
}
