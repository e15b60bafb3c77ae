//! Facts that explain the error of a report: each is a line of its long form.

use std::fmt;

use super::name::demangled;
use super::source::CodeLocation;

/// A fact that explains an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// The operands of a failed check of bounds in a kernel in Rust. The first line of the report
    /// has them.
    Index {
        /// The index.
        index: u64,
        /// The length that it exceeds.
        length: u64,
    },
    /// The unwritten bytes around those of an uninitialized read.
    Unwritten(UnwrittenBytes),
    /// The bytes of an uninitialized read were written after the load.
    WrittenLater,
    /// A store that first wrote bytes of the shared variable of an uninitialized read.
    FirstStore(FirstStore),
    /// Threads of the block that have ended: those that wrote no byte of the shared variable first,
    /// those for which others wait, or the one from which a value was shuffled.
    EndedThreads(Vec<ThreadRange>),
    /// A lane of the warp without a thread.
    NoThread {
        /// The lane.
        lane: u32,
        /// The number of threads of the block.
        threads: u32,
    },
    /// The accesses of all lanes of the warp.
    Lanes(LaneAccesses),
    /// A condition that ends a loop which exceeds the budget of the launch.
    Condition(LoopCondition),
    /// No instruction leaves the loop.
    LoopWithoutEnd,
}

/// Consecutive threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadRange {
    /// The index of the first thread in the block.
    pub first: [u32; 3],
    /// The index of the last thread.
    pub last: [u32; 3],
}

/// Consecutive unwritten bytes of a variable or an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnwrittenBytes {
    /// The name of the variable; empty for an allocation.
    pub variable: Box<str>,
    /// The size of the variable or the allocation.
    pub size: u64,
    /// The first unwritten byte.
    pub first: u64,
    /// The last unwritten byte.
    pub last: u64,
    /// The elements of these bytes, such as `tile[40]`, if the type of the elements is known.
    pub elements: Option<[Box<str>; 2]>,
}

/// A store that wrote bytes which no earlier store had written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstStore {
    /// The threads.
    pub threads: Vec<ThreadRange>,
    /// The instruction.
    pub location: CodeLocation,
}

/// The accesses of a warp's lanes with one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneAccesses {
    /// The lanes whose accesses fail in the same way.
    pub failed: LaneGroup,
    /// The other lanes that execute the instruction.
    pub others: Option<LaneGroup>,
}

/// The addresses of some lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneGroup {
    /// The lanes, a bit for each.
    pub lanes: u32,
    /// The address of the lowest lane.
    pub first: u64,
    /// The address of the highest lane.
    pub last: u64,
    /// The distance in bytes between the addresses of each lane and the next one of the group, if
    /// it is the same for all.
    pub stride: Option<i64>,
}

/// A condition that ends a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopCondition {
    /// The instruction that computes the condition.
    pub location: CodeLocation,
    /// `true` if that instruction is outside the loop, so that the condition cannot change.
    pub is_invariant: bool,
    /// The registers that the instruction reads, in the reported thread.
    pub registers: Vec<RegisterValue>,
}

/// A value of a register in a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisterValue {
    /// The name of the register.
    pub name: Box<str>,
    /// The value when the instruction was executed last.
    pub value: Box<str>,
    /// The value one iteration before.
    pub previous: Box<str>,
}

impl LaneAccesses {
    /// Describes the accesses of active lanes to `size` bytes each, some of which fail. Returns
    /// `None` if that explains nothing: if all lanes fail, at consecutive addresses.
    pub(crate) fn new(addresses: &[u64; 32], size: u32, active: u32, failed: u32) -> Option<Self> {
        let accesses = Self {
            failed: LaneGroup::new(addresses, failed)?,
            others: LaneGroup::new(addresses, active & !failed),
        };
        let is_row = accesses.failed.stride == Some(size.into());
        let is_single = active.is_power_of_two();
        let explains = accesses.others.is_some() || !is_row && !is_single;
        explains.then_some(accesses)
    }
}

impl LaneGroup {
    /// Describes the addresses of some lanes, if there are any.
    fn new(addresses: &[u64; 32], lanes: u32) -> Option<Self> {
        let values: Vec<u64> = (0..32)
            .filter(|lane| lanes >> lane & 1 == 1)
            .map(|lane| addresses[lane])
            .collect();
        let mut distances = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        let distance = distances.next();
        let is_uniform = distances.all(|other| Some(other) == distance);
        Some(Self {
            lanes,
            first: *values.first()?,
            last: *values.last()?,
            stride: distance.filter(|_| is_uniform).map(u64::cast_signed),
        })
    }

    fn is_single(&self) -> bool {
        self.lanes.is_power_of_two()
    }

    fn write_addresses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            last,
            stride,
            ..
        } = *self;
        if self.is_single() || stride == Some(0) {
            return write!(f, "{first:#x}");
        }
        write!(f, "{first:#x} to {last:#x}")?;
        match stride {
            Some(stride) => write!(f, " (stride {stride})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { index, length } => write!(f, "index {index}, length {length}"),
            Self::Unwritten(bytes) => write!(f, "{bytes}"),
            Self::WrittenLater => f.write_str("the bytes were written after the load"),
            Self::FirstStore(store) => {
                f.write_str("other bytes of it were written by ")?;
                write_threads(f, &store.threads)?;
                f.write_str(" at ")?;
                store.location.write_position(f)?;
                store.location.write_text(f)
            }
            Self::EndedThreads(threads) => {
                write_threads(f, threads)?;
                f.write_str(match threads[..] {
                    [range] if range.first == range.last => " has ended",
                    _ => " have ended",
                })
            }
            Self::NoThread { lane, threads } => {
                write!(f, "lane {lane} has no thread: the block has {threads}")
            }
            Self::Lanes(accesses) => write!(f, "{accesses}"),
            Self::Condition(condition) => write!(f, "{condition}"),
            Self::LoopWithoutEnd => f.write_str("no instruction leaves the loop"),
        }
    }
}

impl fmt::Display for UnwrittenBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            variable,
            size,
            first,
            last,
            elements,
        } = self;
        let owner = if variable.is_empty() {
            "the allocation".to_owned()
        } else {
            format!("`{}`", demangled(variable))
        };
        if *first == 0 && last + 1 == *size {
            return write!(f, "no byte of {owner} is written");
        }
        match elements {
            Some([first, last]) if first == last => write!(f, "only `{first}` is not written"),
            Some([first, last]) => write!(f, "`{first}` to `{last}` are not written"),
            None => write!(
                f,
                "bytes {first} to {last} of the {size} of {owner} are not written"
            ),
        }
    }
}

impl fmt::Display for LaneAccesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failed, others } = self;
        write_lanes(f, failed.lanes)?;
        f.write_str(match failed.is_single() {
            true => " of the warp fails at ",
            false => " of the warp fail at ",
        })?;
        let Some(others) = others else {
            return match failed.stride {
                Some(0) => f.write_str("the same address"),
                _ => failed.write_addresses(f),
            };
        };
        failed.write_addresses(f)?;
        f.write_str("; ")?;
        write_lanes(f, others.lanes)?;
        f.write_str(match others.is_single() {
            true => " succeeds at ",
            false => " succeed at ",
        })?;
        others.write_addresses(f)
    }
}

impl fmt::Display for LoopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the loop ends by the condition at ")?;
        self.location.write_position(f)?;
        let instruction = self.location.instruction.trim_end_matches(';');
        write!(f, ": `{instruction}`")?;
        if self.is_invariant {
            return f.write_str(", which is computed before the loop");
        }
        for (index, register) in self.registers.iter().enumerate() {
            let RegisterValue {
                name,
                value,
                previous,
            } = register;
            let separator = if index == 0 { " with" } else { "," };
            write!(f, "{separator} {name} = {value}, ")?;
            if value == previous {
                f.write_str("as one iteration before")?;
            } else {
                write!(f, "{previous} one iteration before")?;
            }
        }
        Ok(())
    }
}

/// Writes the lanes of a mask as ranges.
pub(crate) fn write_lanes(f: &mut fmt::Formatter<'_>, mask: u32) -> fmt::Result {
    let noun = if mask.is_power_of_two() {
        "lane"
    } else {
        "lanes"
    };
    let mut separator = ' ';
    f.write_str(noun)?;
    let mut remaining = u64::from(mask);
    while remaining != 0 {
        let first = remaining.trailing_zeros();
        let count = (remaining >> first).trailing_ones();
        write!(f, "{separator}{first}")?;
        if count > 1 {
            write!(f, "-{}", first + count - 1)?;
        }
        remaining &= !(((1 << count) - 1) << first);
        separator = ',';
    }
    Ok(())
}

/// Writes ranges of threads.
fn write_threads(f: &mut fmt::Formatter<'_>, threads: &[ThreadRange]) -> fmt::Result {
    f.write_str(match threads {
        [range] if range.first == range.last => "thread",
        _ => "threads",
    })?;
    for (index, ThreadRange { first, last }) in threads.iter().enumerate() {
        let [x, y, z] = first;
        let separator = if index == 0 { "" } else { "," };
        write!(f, "{separator} ({x}, {y}, {z})")?;
        if first != last {
            let [x, y, z] = last;
            write!(f, " to ({x}, {y}, {z})")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the description of accesses of 4 bytes.
    fn described(stride: u64, active: u32, failed: u32) -> Option<String> {
        let addresses = std::array::from_fn(|lane| 0x1000 + lane as u64 * stride);
        let accesses = LaneAccesses::new(&addresses, 4, active, failed);
        accesses.map(|accesses| accesses.to_string())
    }

    #[test]
    fn lanes_are_described_by_ends_and_stride() {
        for (stride, active, failed, expected) in [
            (
                4,
                u32::MAX,
                1 << 31,
                "lane 31 of the warp fails at 0x107c; lanes 0-30 succeed at 0x1000 to 0x1078 (stride 4)",
            ),
            (
                8,
                u32::MAX,
                u32::MAX,
                "lanes 0-31 of the warp fail at 0x1000 to 0x10f8 (stride 8)",
            ),
            (
                4,
                0b11,
                0b10,
                "lane 1 of the warp fails at 0x1004; lane 0 succeeds at 0x1000",
            ),
            (
                4,
                0b1011,
                0b1011,
                "lanes 0-1,3 of the warp fail at 0x1000 to 0x100c",
            ),
            (
                0,
                0b11,
                0b11,
                "lanes 0-1 of the warp fail at the same address",
            ),
        ] {
            assert_eq!(described(stride, active, failed).as_deref(), Some(expected));
        }
        assert_eq!(described(4, u32::MAX, u32::MAX), None);
        assert_eq!(described(4, 0b10, 0b10), None);
    }

    #[test]
    fn unwritten_bytes_are_described_by_elements_or_offsets() {
        let all = UnwrittenBytes {
            variable: "tile".into(),
            size: 256,
            first: 0,
            last: 255,
            elements: None,
        };
        assert_eq!(all.to_string(), "no byte of `tile` is written");
        let tail = UnwrittenBytes { first: 160, ..all };
        assert_eq!(
            tail.to_string(),
            "bytes 160 to 255 of the 256 of `tile` are not written"
        );
        let element = |index| format!("tile[{index}]").into();
        let elements = UnwrittenBytes {
            elements: Some([element(40), element(63)]),
            ..tail.clone()
        };
        assert_eq!(
            elements.to_string(),
            "`tile[40]` to `tile[63]` are not written"
        );
        let one = UnwrittenBytes {
            elements: Some([element(40), element(40)]),
            ..tail.clone()
        };
        assert_eq!(one.to_string(), "only `tile[40]` is not written");
        let allocation = UnwrittenBytes {
            variable: Box::default(),
            ..tail
        };
        assert_eq!(
            allocation.to_string(),
            "bytes 160 to 255 of the 256 of the allocation are not written"
        );
    }
}
