//! Malformed input: no function panics, and each takes time proportional to the length of its
//! input.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use curium_format::{Target, elf, fat_binary, ptx, tile_ir};

type TestResult = Result<(), Box<dyn Error>>;

const CUBINS: [&[u8]; 2] = [
    include_bytes!("../../driver/tests/images/bump.sm_75.cubin"),
    include_bytes!("../../driver/tests/images/bump.sm_100.cubin"),
];

const FAT_BINARIES: [&[u8]; 6] = [
    include_bytes!("../../driver/tests/images/bump.fatbin"),
    include_bytes!("../../driver/tests/images/bump.compressed.fatbin"),
    include_bytes!("../../sim/tests/images/plain.fatbin"),
    include_bytes!("../../sim/tests/images/lz4.fatbin"),
    include_bytes!("../../sim/tests/images/together.fatbin"),
    include_bytes!("../../sim/tests/images/machine.fatbin"),
];

/// An empty Tile IR module of version 13.1.
const TILE_IR: &[u8] = b"\x7fTileIR\0\x0d\x01\0\0\0";

const PTX: &str = include_str!("../../driver/tests/images/bump.ptx");

/// Texts that, repeated, once took time in the square of their length in one of the scanners, and
/// others of their kind.
const UNITS: &[&str] = &[
    ".visible /* ",
    ".visible // ",
    ".visible \"",
    "/* .weak .global ",
    "// .common .const\n",
    ".visible .global ",
    ".visible .global 1 ",
    ".entry a(",
    ".entry a(.param .align ",
    ".entry ",
    ".entry a(.param .u32 x[",
    ".entry a(.param .u32 x,",
    "/*/",
    "/**/",
    "\"",
    "\\\"",
    ".pragma \"a\";",
    "a",
    "1 ",
    "1e",
    "\n",
    " ",
    "{",
    "}",
    "} ",
    "(",
    ")",
    ";",
    "::",
    ".a::",
    "\u{e9}",
    ".func (",
    ".version 7.8 ",
    ".version 7.8\n",
    ".file 1 ",
    ".section a { ",
    ".visible .global .u32 a; ",
    ".visible .global .u32 a, ",
    ".visible .entry k() { ret; } ",
    "// a\n",
    "/* a */ ",
];

/// Calls every function on PTX.
fn read_text(text: &str) {
    black_box(ptx::header(text));
    black_box(ptx::version(text));
    for kernel in ptx::kernels(text) {
        black_box(kernel.parameters().count());
    }
    for statement in ptx::statements(text) {
        black_box(statement.names().count());
        black_box(statement.result());
        black_box(statement.split_body());
    }
    black_box(ptx::variables(text).count());
    let mut end = 0;
    for token in ptx::Scanner::new(text) {
        assert!(token.start >= end && token.end > token.start, "{token:?}");
        end = token.end;
        black_box(Target::parse(token.text));
        black_box(ptx::integer(token.text));
    }
}

/// Calls every function on binaries.
fn read_binary(bytes: &[u8]) {
    black_box(elf::check(bytes).is_ok());
    black_box(elf::variables(bytes).count());
    black_box(tile_ir::check(bytes).is_ok());
    black_box(fat_binary::check(bytes).is_ok());
    if let Ok(entries) = fat_binary::entries(bytes) {
        assert!(entries.count() <= bytes.len());
    }
}

#[test]
fn whole_binaries_pass_and_truncated_ones_fail() {
    for cubin in CUBINS {
        assert_eq!(elf::check(cubin), Ok(()));
        for length in 0..cubin.len() {
            assert!(elf::check(&cubin[..length]).is_err(), "{length} bytes");
        }
    }
    for binary in FAT_BINARIES {
        assert_eq!(fat_binary::check(binary), Ok(()));
        for length in 0..binary.len() {
            assert!(
                fat_binary::check(&binary[..length]).is_err(),
                "{length} bytes"
            );
        }
    }
    assert_eq!(tile_ir::check(TILE_IR), Ok(()));
    for length in 0..TILE_IR.len() {
        assert!(
            tile_ir::check(&TILE_IR[..length]).is_err(),
            "{length} bytes"
        );
    }
}

#[test]
fn cubin_data_objects_are_variables() {
    assert!(elf::variables(CUBINS[0]).eq(["counter", "table", "factor"]));
    let mut names: Vec<&str> = elf::variables(CUBINS[1]).collect();
    names.sort_unstable();
    assert_eq!(names, ["counter", "factor", "table"]);
}

#[test]
fn cubin_in_a_fat_binary_is_checked() {
    let mut damaged = FAT_BINARIES[0].to_vec();
    // The offset of the section headers of the cubin in the first entry.
    damaged[fat_binary::HEADER_SIZE + 64 + 0x28 + 3] = 0xff;
    let error = fat_binary::check(&damaged).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("section headers")));
}

#[test]
fn entry_that_exceeds_its_fat_binary_is_refused() {
    let mut damaged = FAT_BINARIES[0].to_vec();
    damaged[fat_binary::HEADER_SIZE + 8 + 6] = 1;
    assert!(fat_binary::check(&damaged).is_err());
    let mut damaged = FAT_BINARIES[1].to_vec();
    // More compressed bytes than the image has.
    damaged[fat_binary::HEADER_SIZE + 16 + 3] = 1;
    assert!(fat_binary::check(&damaged).is_err());
}

#[test]
fn damaged_binaries_cause_no_panic() {
    for binary in CUBINS.iter().chain(&FAT_BINARIES) {
        let mut damaged = binary.to_vec();
        for position in 0..binary.len() {
            for value in [0, 0x7f, 0xff, !binary[position]] {
                damaged[position] = value;
                read_binary(&damaged);
            }
            damaged[position] = binary[position];
        }
    }
}

#[test]
fn mutated_binaries_cause_no_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..5_000 {
        let binary = FAT_BINARIES[random.usize(..FAT_BINARIES.len())];
        let mut damaged = match random.bool() {
            true => binary.to_vec(),
            false => CUBINS[random.usize(..CUBINS.len())].to_vec(),
        };
        for _ in 0..random.usize(1..8) {
            // Headers have more effect than contents.
            let position = random.usize(..damaged.len()).min(random.usize(..512));
            damaged[position] = random.u8(..);
        }
        if random.bool() {
            damaged.truncate(random.usize(..=damaged.len()));
        }
        read_binary(&damaged);
    }
}

#[test]
fn mutated_texts_cause_no_panic() -> TestResult {
    let mut random = fastrand::Rng::with_seed(2);
    for length in 0..PTX.len() {
        read_text(PTX.get(..length).ok_or("not a character boundary")?);
    }
    for _ in 0..5_000 {
        let mut text = PTX.to_owned();
        for _ in 0..random.usize(1..6) {
            let unit = UNITS[random.usize(..UNITS.len())];
            let mut position = random.usize(..text.len());
            while !text.is_char_boundary(position) {
                position -= 1;
            }
            if random.bool() {
                text.insert_str(position, unit);
            } else {
                text.truncate(position.max(1));
            }
        }
        read_text(&text);
    }
    Ok(())
}

fn duration(operation: impl FnOnce()) -> Duration {
    let start = Instant::now();
    operation();
    start.elapsed()
}

/// Four times the text takes about four times as long, and not sixteen times. A busy machine gets
/// several tries.
#[test]
fn any_text_is_read_in_linear_time() {
    for unit in UNITS {
        let text = unit.repeat(32_768 / unit.len());
        let longer = text.repeat(4);
        let is_linear = (0..8).any(|_| {
            let limit = duration(|| read_text(&text)) * 10 + Duration::from_millis(20);
            duration(|| read_text(&longer)) < limit
        });
        assert!(is_linear, "{unit:?}: four times the text takes too long");
    }
}
