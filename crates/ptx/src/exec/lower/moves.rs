//! `mov`: registers, immediates, addresses, special registers, and vectors packed and unpacked.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::op::{Handler, NO_REGISTER};
use crate::exec::ops::handler::moves::{
    copy, copy_handler, pack_four_bytes, pack_halves, pack_two_bytes, pack_words, unpack,
    words_differ,
};
use crate::exec::ops::moves::{REGISTERS, run_predicate_copy, run_special, run_wide_special};
use crate::syntax::{Instruction, Operand, ScalarType, SpecialRegister};

impl Lowerer<'_> {
    /// `mov`.
    pub(super) fn mov(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        match (destination, source) {
            _ if scalar == ScalarType::Pred => {
                let Operand::Register(register) = destination else {
                    return Err(Refusal::form(instruction));
                };
                let d = self.predicate_register(*register)?;
                if let Operand::Special(special) = source {
                    let value = self.special(*special);
                    return self.move_predicate(d, value);
                }
                let (a, negate) = self.predicate_source(source)?;
                self.emit(run_predicate_copy, d, [a, 0, 0]).e = negate;
                Ok(())
            }
            _ if scalar == ScalarType::B128 => self.move_quad(destination, source),
            (Operand::Vector(parts), Operand::Vector(sources)) if parts.len() == sources.len() => {
                // Copies come first, because a destination may be another's source.
                let copy = copy_handler(scalar.bits() == 64);
                let mut rows = Vec::new();
                for source in sources {
                    let from = self.source(source, scalar)?;
                    let row = self.new_slot(scalar);
                    let (Slot::Word(row) | Slot::Double(row)) = row else {
                        return Err(Refusal::form(instruction));
                    };
                    self.emit(copy, row, [from, 0, 0]);
                    rows.push(row);
                }
                for (part, row) in parts.iter().zip(rows) {
                    let d = self.destination(part, scalar)?;
                    self.emit(copy, d, [row, 0, 0]);
                }
                Ok(())
            }
            (Operand::Vector(parts), _) => self.unpack(instruction, parts, source, scalar),
            (_, Operand::Vector(parts)) => self.pack(instruction, destination, parts, scalar),
            _ => self.move_scalar(destination, source, scalar),
        }
    }

    /// Appends a move of a row to a predicate, which is true if the row is not zero.
    pub(super) fn move_predicate(&mut self, d: u32, slot: Slot) -> Lowered {
        let a = self.source_slot(slot, false)?;
        let zero = self.word(0);
        self.emit(words_differ(), d, [a, zero, 0]).e = NO_REGISTER;
        Ok(())
    }

    fn move_scalar(
        &mut self,
        destination: &Operand,
        source: &Operand,
        scalar: ScalarType,
    ) -> Lowered {
        let a = self.source(source, scalar)?;
        let d = self.destination(destination, scalar)?;
        self.emit(copy_handler(scalar.bits() == 64), d, [a, 0, 0]);
        Ok(())
    }

    /// Moves 128 bits between registers of this width and pairs of 64 bits.
    fn move_quad(&mut self, destination: &Operand, source: &Operand) -> Lowered {
        let from = self.quad(source)?;
        // A copy comes first, because a destination may be a source.
        let copies = [self.new_double(), self.new_double()];
        for (copied, row) in copies.into_iter().zip(from) {
            self.emit(copy::<u64>(), copied, [row, 0, 0]);
        }
        let to = match destination {
            Operand::Vector(parts) if parts.len() == 2 => [
                self.destination(&parts[0], ScalarType::B64)?,
                self.destination(&parts[1], ScalarType::B64)?,
            ],
            other => self.quad(other)?,
        };
        for (d, row) in to.into_iter().zip(copies) {
            self.emit(copy::<u64>(), d, [row, 0, 0]);
        }
        Ok(())
    }

    /// Packs a register from its parts, the lowest first.
    fn pack(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        parts: &[Operand],
        scalar: ScalarType,
    ) -> Lowered {
        let d = self.destination(destination, scalar)?;
        let mut rows = Vec::new();
        let part_type = part_type(instruction, scalar, parts.len())?;
        for part in parts {
            rows.push(match part {
                // The bits of a sink are undefined.
                Operand::Sink => self.word(0),
                Operand::Double(_) if part_type.bits() == 32 => {
                    self.source(part, ScalarType::F32)?
                }
                _ => self.source(part, part_type)?,
            });
        }
        if self.join(scalar.bits(), d, &rows) {
            Ok(())
        } else {
            Err(Refusal::form(instruction))
        }
    }

    /// Joins the parts of a register of `bits` bits, the lowest first. Returns `false` if no
    /// instruction has these parts.
    pub(super) fn join(&mut self, bits: u32, d: u32, rows: &[u32]) -> bool {
        match (bits, rows) {
            (64, &[low, high]) => {
                self.emit(pack_words(), d, [low, high, 0]);
            }
            (32, &[low, high]) => {
                self.emit(pack_halves(), d, [low, high, 0]);
            }
            (64, &[a, b, c, e]) => {
                let low = self.new_word();
                let high = self.new_word();
                self.emit(pack_halves(), low, [a, b, 0]);
                self.emit(pack_halves(), high, [c, e, 0]);
                self.emit(pack_words(), d, [low, high, 0]);
            }
            (16, &[low, high]) => {
                self.emit(pack_two_bytes(), d, [low, high, 0]);
            }
            (32, &[a, b, c, e]) => {
                self.emit(pack_four_bytes(), d, [a, b, c]).e = e;
            }
            _ => return false,
        }
        true
    }

    /// Unpacks the parts of a register, the lowest first.
    fn unpack(
        &mut self,
        instruction: &Instruction,
        parts: &[Operand],
        source: &Operand,
        scalar: ScalarType,
    ) -> Lowered {
        // A copy comes first, because a part may be the source register.
        let from = self.source(source, scalar)?;
        let bits = scalar.bits() / parts.len() as u32;
        let part_type = part_type(instruction, scalar, parts.len())?;
        let wide = scalar.bits() == 64;
        let a = if wide {
            self.new_double()
        } else {
            self.new_word()
        };
        self.emit(copy_handler(wide), a, [from, 0, 0]);
        for (index, part) in parts.iter().enumerate() {
            if *part == Operand::Sink {
                continue;
            }
            let shift = self.word(bits * index as u32);
            let d = self.destination(part, part_type)?;
            let run = unpack(wide, bits).ok_or_else(|| Refusal::form(instruction))?;
            self.emit(run, d, [a, shift, 0]);
        }
        Ok(())
    }

    /// Returns a slot with the current value of a special register.
    pub(super) fn special(&mut self, register: SpecialRegister) -> Slot {
        let narrow = register.bits() <= 32;
        let run: Handler = if narrow {
            run_special
        } else {
            run_wide_special
        };
        let d = if narrow {
            self.new_word()
        } else {
            self.new_double()
        };
        self.emit(run, d, [0; 3]).imm = encode(register);
        if narrow {
            Slot::Word(d)
        } else {
            Slot::Double(d)
        }
    }
}

fn part_type(instruction: &Instruction, scalar: ScalarType, parts: usize) -> Lowered<ScalarType> {
    match scalar.bits() / parts as u32 {
        8 => Ok(ScalarType::B8),
        16 => Ok(ScalarType::B16),
        32 => Ok(ScalarType::B32),
        _ => Err(Refusal::form(instruction)),
    }
}

/// Returns the index of a special register in `REGISTERS`. Registers that read zero share one
/// index.
fn encode(register: SpecialRegister) -> u64 {
    let position = REGISTERS.iter().position(|&other| other == register);
    position.unwrap_or(REGISTERS.len() - 1) as u64
}
