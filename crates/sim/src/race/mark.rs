//! Marks: the last accesses to a few bytes of memory.

use std::collections::HashMap;

use curium_ptx::exec::AccessKind;

/// The number of an accessor: a launch, a copy or a fill. 0 is none.
pub(crate) type Party = u32;

/// The absence of a party.
pub(crate) const NOBODY: Party = 0;

/// The greatest number of a party, or of a set of readers.
pub(super) const MAX_PARTIES: u32 = (1 << 27) - 1;

/// The mask of all bytes of a word.
pub(super) const WHOLE: u8 = 0xf;

/// The last writer of a word and its readers since, in 64 bits that are updated atomically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Mark(u64);

/// One half of a mark: a number, a flag, and the mask of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) number: u32,
    /// For a writer, `true` if the write was atomic; for a reader, `true` if the number is that of
    /// a set.
    pub(super) flag: bool,
    pub(super) bytes: u8,
}

/// The current access to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) party: Party,
    pub(super) how: AccessKind,
    pub(super) bytes: u8,
}

/// An access that a step races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RacingAccess {
    pub(super) party: Party,
    pub(super) wrote: bool,
}

/// Sets of unordered parties that read the same bytes.
#[derive(Debug, Default)]
pub(super) struct Readers {
    sets: Vec<Box<[Party]>>,
    numbers: HashMap<Box<[Party]>, u32>,
}

impl Mark {
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the mark after a write of all bytes.
    pub(super) fn written_by(party: Party) -> Self {
        Self::new(
            Half {
                number: party,
                flag: false,
                bytes: WHOLE,
            },
            Half::default(),
        )
    }

    fn new(writer: Half, reader: Half) -> Self {
        Self(writer.to_bits() | reader.to_bits() << 32)
    }

    pub(super) fn writer(self) -> Half {
        Half::from_bits(self.0)
    }

    pub(super) fn reader(self) -> Half {
        Half::from_bits(self.0 >> 32)
    }

    /// Returns the mark after a step, and the access that the step races with: a party that
    /// accessed the same bytes, is not ordered before the step, and wrote them, or read bytes that
    /// the step writes.
    pub(super) fn after(
        self,
        step: Step,
        readers: &mut Readers,
        comes_before: impl Fn(Party) -> bool,
    ) -> (Self, Option<RacingAccess>) {
        let writer = self.writer();
        let reader = self.reader();
        let are_atomics = writer.flag && step.how == AccessKind::Atomic;
        let is_written = writer.bytes & step.bytes != 0 && !are_atomics;
        let mut racing = (is_written && !comes_before(writer.number)).then_some(RacingAccess {
            party: writer.number,
            wrote: true,
        });
        if step.how != AccessKind::Read && reader.bytes & step.bytes != 0 {
            let unordered = readers
                .parties(reader)
                .iter()
                .copied()
                .find(|party| !comes_before(*party));
            racing = racing.or(unordered.map(|party| RacingAccess {
                party,
                wrote: false,
            }));
        }
        let mark = match step.how {
            AccessKind::Read => self.after_read(step, readers, comes_before),
            AccessKind::Write | AccessKind::Atomic => self.after_write(step),
        };
        (mark, racing)
    }

    /// Returns the mark after a read.
    fn after_read(
        self,
        step: Step,
        readers: &mut Readers,
        comes_before: impl Fn(Party) -> bool,
    ) -> Self {
        let writer = self.writer();
        let reader = self.reader();
        if writer.number == step.party && !writer.flag && writer.bytes & step.bytes == step.bytes {
            return self;
        }
        let single = Half {
            number: step.party,
            flag: false,
            bytes: step.bytes,
        };
        let new = match reader {
            Half { bytes: 0, .. } => single,
            Half {
                number,
                flag: false,
                bytes,
            } if number == step.party => Half {
                bytes: bytes | step.bytes,
                ..reader
            },
            // Readers of other bytes are discarded, because a mark has one set of bytes for all
            // readers.
            Half { bytes, .. } if bytes != step.bytes => single,
            _ => Half {
                bytes: step.bytes,
                ..readers.with(reader, step.party, comes_before)
            },
        };
        Self::new(writer, new)
    }

    /// Returns the mark after a write. The writer is ordered after all previous accesses to the
    /// bytes, or races with them.
    fn after_write(self, step: Step) -> Self {
        let writer = self.writer();
        let reader = self.reader();
        let is_atomic = step.how == AccessKind::Atomic;
        let is_same_party = writer.number == step.party;
        let new = if is_same_party
            && is_atomic
            && !writer.flag
            && writer.bytes & step.bytes == step.bytes
        {
            writer
        } else if is_same_party && writer.flag == is_atomic {
            Half {
                bytes: writer.bytes | step.bytes,
                ..writer
            }
        } else {
            Half {
                number: step.party,
                flag: is_atomic,
                bytes: step.bytes,
            }
        };
        let is_covered = reader.bytes & !step.bytes == 0;
        Self::new(new, if is_covered { Half::default() } else { reader })
    }
}

impl Half {
    fn from_bits(bits: u64) -> Self {
        Self {
            number: bits as u32 >> 5,
            flag: bits >> 4 & 1 == 1,
            bytes: bits as u8 & WHOLE,
        }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.number) << 5 | u64::from(self.flag) << 4 | u64::from(self.bytes)
    }
}

impl Readers {
    /// Returns the parties of a reader.
    fn parties(&self, reader: Half) -> Vec<Party> {
        if reader.flag {
            return self
                .sets
                .get(reader.number as usize)
                .map_or_else(Vec::new, |set| set.to_vec());
        }
        vec![reader.number]
    }

    /// Returns the reader for `party` and the parties of a reader that are not ordered before it.
    fn with(&mut self, reader: Half, party: Party, comes_before: impl Fn(Party) -> bool) -> Half {
        let mut all = self.parties(reader);
        all.retain(|other| *other != party && !comes_before(*other));
        all.push(party);
        all.sort_unstable();
        if all.len() == 1 || self.sets.len() == MAX_PARTIES as usize {
            return Half {
                number: party,
                ..Half::default()
            };
        }
        let all = all.into_boxed_slice();
        let number = *self.numbers.entry(all).or_insert_with_key(|all| {
            self.sets.push(all.clone());
            self.sets.len() as u32 - 1
        });
        Half {
            number,
            flag: true,
            bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parties that consecutive steps of unordered parties race with.
    fn racing_parties(steps: &[(Party, AccessKind, u8)]) -> Vec<Option<Party>> {
        let mut mark = Mark::default();
        let mut readers = Readers::default();
        let mut racing_parties = Vec::new();
        for &(party, how, bytes) in steps {
            let step = Step { party, how, bytes };
            let (next, racing) = mark.after(step, &mut readers, |other| other == party);
            mark = next;
            racing_parties.push(racing.map(|racing| racing.party));
        }
        racing_parties
    }

    #[test]
    fn accesses_race_if_one_writes_the_same_bytes() {
        use AccessKind::{Atomic, Read, Write};
        for (first, second, races) in [
            (Read, Read, false),
            (Read, Write, true),
            (Write, Read, true),
            (Write, Write, true),
            (Atomic, Atomic, false),
            (Atomic, Read, true),
            (Atomic, Write, true),
            (Read, Atomic, true),
            (Write, Atomic, true),
        ] {
            let expected = [None, races.then_some(1)];
            assert_eq!(
                racing_parties(&[(1, first, WHOLE), (2, second, WHOLE)]),
                expected,
                "{first:?} {second:?}"
            );
            assert_eq!(
                racing_parties(&[(1, first, 0b0011), (2, second, 0b1100)]),
                [None; 2],
                "other bytes"
            );
            assert_eq!(
                racing_parties(&[(1, first, 0b0110), (2, second, 0b1100)]),
                expected,
                "one byte of both"
            );
        }
    }

    #[test]
    fn every_reader_races_with_a_writer() {
        use AccessKind::{Read, Write};
        let mut mark = Mark::default();
        let mut readers = Readers::default();
        for party in 1..=3 {
            let step = Step {
                party,
                how: Read,
                bytes: WHOLE,
            };
            (mark, _) = mark.after(step, &mut readers, |_| false);
        }
        for ordered in [[1, 2], [2, 3], [1, 3]] {
            let step = Step {
                party: 4,
                how: Write,
                bytes: WHOLE,
            };
            let (_, racing) = mark.after(step, &mut readers, |party| ordered.contains(&party));
            assert_eq!(
                racing,
                Some(RacingAccess {
                    party: 6 - ordered[0] - ordered[1],
                    wrote: false
                })
            );
        }
        let step = Step {
            party: 4,
            how: Write,
            bytes: WHOLE,
        };
        assert_eq!(
            mark.after(step, &mut readers, |_| true),
            (Mark::written_by(4), None)
        );
    }

    fn read(party: Party) -> Step {
        Step {
            party,
            how: AccessKind::Read,
            bytes: WHOLE,
        }
    }

    #[test]
    fn reader_ordered_before_another_is_discarded() {
        let mut readers = Readers::default();
        let (mark, _) = Mark::written_by(1).after(read(2), &mut readers, |party| party == 1);
        let (mark, racing) = mark.after(read(3), &mut readers, |party| party < 3);
        assert_eq!(
            (mark.reader().number, mark.reader().flag, racing),
            (3, false, None)
        );
        let (mark, _) = mark.after(read(4), &mut readers, |party| party == 1);
        assert!(mark.reader().flag && readers.parties(mark.reader()) == [3, 4]);
    }

    #[test]
    fn atomic_after_write_by_same_party_stays_a_write() {
        use AccessKind::{Atomic, Write};
        assert_eq!(
            racing_parties(&[(1, Write, WHOLE), (1, Atomic, WHOLE), (2, Atomic, WHOLE)]),
            [None, None, Some(1)]
        );
        assert_eq!(
            racing_parties(&[(1, Atomic, WHOLE), (1, Write, WHOLE), (2, Atomic, WHOLE)]),
            [None, None, Some(1)]
        );
    }
}
