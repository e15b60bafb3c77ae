//! Propagation of undefined bytes through each instruction, for programs that check for
//! uninitialized reads.

use super::function::{Lowerer, Slot};
use crate::exec::check::undefined::{Flow, Propagation, RegisterRow, Source, Value};
use crate::syntax::{
    Base, Callee, Instruction, Keyword, Modifier, Opcode, Operand, Operation, RegisterId,
    ScalarClass, ScalarType, ShuffleMode, Space as State, for_each_opcode,
};

/// The mask of a whole register's bytes.
const WHOLE: u32 = 8;

/// The flow of the first op of an instruction, and that of the op after the search for
/// uninitialized bytes.
struct Flows {
    first: Flow,
    moved: Option<Flow>,
}

impl Flows {
    fn nothing() -> Self {
        nothing().into()
    }
}

impl From<Flow> for Flows {
    fn from(first: Flow) -> Self {
        Self { first, moved: None }
    }
}

macro_rules! define_flows {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident $flow:ident $($requirement:literal)*;)*) => {
        impl Lowerer<'_> {
            /// Returns the flows of an instruction with the method from the table of instructions.
            fn flows(&self, instruction: &Instruction) -> Flows {
                match instruction.opcode {
                    $(Opcode::$variant => self.$flow(instruction),)*
                    Opcode::Defined(_) => self.form_flow(instruction),
                }
            }
        }
    };
}

for_each_opcode!(define_flows);

impl Lowerer<'_> {
    /// Records the propagation of undefined bytes through the ops of an instruction that were
    /// appended last.
    pub(super) fn add_flows(&mut self, instruction: &Instruction) {
        let start = self.starts_at();
        let end = self.out.code.len();
        if start == end {
            return;
        }
        let Flows { first: flow, moved } = self.flows(instruction);
        let meets = matches!(
            flow.propagation,
            Propagation::AllLanes | Propagation::WholeWarp | Propagation::Shuffle(_)
        );
        let index = if meets { end - 1 } else { start };
        if !flow.sinks.is_empty() || flow.propagation != Propagation::Nothing {
            self.out.flows.push((index as u32, flow));
        }
        if let (Some(flow), Some(index)) = (moved, self.moved_at.filter(|index| *index < end)) {
            // The op that finds uninitialized bytes precedes the access, so the two have separate
            // flows.
            self.out.flows.push((index as u32, flow));
        }
    }

    /// Returns the flow of an instruction that has a definition.
    fn form_flow(&self, instruction: &Instruction) -> Flows {
        let operands = &instruction.operands[..];
        let Some(parsed) = instruction.form else {
            return Flows::nothing();
        };
        let form = parsed.form;
        let flow = match operands {
            [result, source] if matches!(form.undefined, Propagation::Bytes { .. }) => {
                self.converted(instruction, result, source)
            }
            [result, a, b] if form.cancels && a == b => self.defined(std::slice::from_ref(result)),
            [result, sources @ ..] if form.undefined == Propagation::All => {
                self.spread(Propagation::All, std::slice::from_ref(result), sources)
            }
            _ => {
                let propagation = match form.undefined {
                    Propagation::Compare(_) => Propagation::Compare(decisive(instruction)),
                    other => other,
                };
                self.chosen(propagation, operands, scalar(instruction))
            }
        };
        flow.into()
    }

    /// A conversion between integers, which keeps or extends the bytes.
    fn converted(&self, instruction: &Instruction, result: &Operand, source: &Operand) -> Flow {
        let from = instruction.types().nth(1).unwrap_or(ScalarType::B64);
        let source = self.value(source).map(|value| Source {
            value,
            bytes: from.bytes().min(scalar(instruction).bytes()) as u32,
        });
        Flow {
            propagation: Propagation::Bytes {
                signed: from.class() == ScalarClass::Signed,
            },
            sources: source.into_iter().collect(),
            destinations: self.parts(result, WHOLE),
            ..nothing()
        }
    }

    /// An instruction whose results depend on all other operands.
    fn result_flow(&self, instruction: &Instruction) -> Flows {
        match &instruction.operands[..] {
            [] => Flows::nothing(),
            [result, sources @ ..] => self
                .spread(Propagation::All, std::slice::from_ref(result), sources)
                .into(),
        }
    }

    /// An instruction without results, whose operands have no effect on others or are checked
    /// elsewhere.
    fn no_flow(&self, _instruction: &Instruction) -> Flows {
        Flows::nothing()
    }

    /// An instruction whose operands must be defined.
    fn required_flow(&self, instruction: &Instruction) -> Flows {
        self.required(&[], &instruction.operands).into()
    }

    /// An instruction that returns its first operand, and whose other operands must be defined.
    fn returned_flow(&self, instruction: &Instruction) -> Flows {
        let (results, sources) = instruction
            .operands
            .split_at(instruction.operands.len().min(1));
        self.required(results, sources).into()
    }

    /// `vote`, `match`, `redux`, `elect`
    fn vote_flow(&self, instruction: &Instruction) -> Flows {
        let [destination, sources @ .., members] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        let flow = self.spread(
            Propagation::AllLanes,
            std::slice::from_ref(destination),
            sources,
        );
        Flow {
            sinks: self.sinks([members]),
            ..flow
        }
        .into()
    }

    /// `mma`, `movmatrix`
    fn warp_flow(&self, instruction: &Instruction) -> Flows {
        let (results, sources) = instruction.operands.split_at(1);
        self.spread(Propagation::WholeWarp, results, sources).into()
    }

    /// `wmma`
    fn tile_flow(&self, instruction: &Instruction) -> Flows {
        if has_any(instruction, &[Keyword::Mma]) {
            self.warp_flow(instruction)
        } else if has_any(instruction, &[Keyword::Load]) {
            self.returned_flow(instruction)
        } else {
            self.required_flow(instruction)
        }
    }

    /// `call`
    fn call_flow(&self, instruction: &Instruction) -> Flows {
        let [Operand::Call(call)] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        let sinks = match call.callee {
            Callee::Indirect(register, _) => self.sinks([&Operand::Register(register)]),
            Callee::Direct(_) => Vec::new(),
        };
        Flow {
            sinks,
            ..self.defined(&call.returns)
        }
        .into()
    }

    /// `multimem`
    fn multicast_flow(&self, instruction: &Instruction) -> Flows {
        if has_any(instruction, &[Keyword::LdReduce]) {
            self.returned_flow(instruction)
        } else {
            self.required_flow(instruction)
        }
    }

    /// `bar`, `barrier`
    fn barrier_flow(&self, instruction: &Instruction) -> Flows {
        if has_any(instruction, &[Keyword::Red]) {
            self.returned_flow(instruction)
        } else {
            self.required_flow(instruction)
        }
    }

    /// `mbarrier`
    fn barrier_object_flow(&self, instruction: &Instruction) -> Flows {
        match instruction.operands.first() {
            Some(Operand::Register(_) | Operand::Sink) => self.returned_flow(instruction),
            _ => self.required_flow(instruction),
        }
    }

    /// `tcgen05`: undefined bytes of loads and stores are those of tensor memory.
    fn tensor_memory_flow(&self, instruction: &Instruction) -> Flows {
        match &instruction.operands[..] {
            [registers @ Operand::Vector(_), address, ..] => self
                .required(
                    std::slice::from_ref(registers),
                    std::slice::from_ref(address),
                )
                .into(),
            [address, .., Operand::Vector(_)] => {
                self.required(&[], std::slice::from_ref(address)).into()
            }
            all => self.required(&[], all).into(),
        }
    }

    /// `ld`, `ldu`
    fn load_flow(&self, instruction: &Instruction) -> Flows {
        let [destination, address, ..] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        let sinks = self.sinks([address]);
        let load = Flow {
            destinations: self.parts(destination, scalar(instruction).bytes() as u32),
            propagation: Propagation::Load,
            ..nothing()
        };
        if self.moved_at.is_none() {
            // Kernel parameters are defined.
            return Flow {
                sinks,
                propagation: Propagation::Defined,
                ..load
            }
            .into();
        }
        Flows {
            first: Flow { sinks, ..nothing() },
            moved: Some(load),
        }
    }

    /// `st`
    fn store_flow(&self, instruction: &Instruction) -> Flows {
        if has_any(instruction, &[Keyword::Async, Keyword::Bulk]) {
            return self.required_flow(instruction);
        }
        let [address, value, ..] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        let sources: Vec<Source> = self
            .parts(value, scalar(instruction).bytes() as u32)
            .into_iter()
            .map(|(row, bytes)| Source {
                value: row.map_or(Value::Immediate(0), Value::Register),
                bytes,
            })
            .collect();
        let mut sinks = self.sinks([address]);
        if instruction.has(Modifier::Space(State::Global)) {
            let stored = sources.iter().filter_map(|source| match source.value {
                Value::Register(row) => Some((row, bits(source.bytes))),
                _ => None,
            });
            sinks.extend(stored);
            return Flow { sinks, ..nothing() }.into();
        }
        Flows {
            first: Flow { sinks, ..nothing() },
            moved: Some(Flow {
                propagation: Propagation::Store,
                sources,
                ..nothing()
            }),
        }
    }

    /// `mov`, which may pack and unpack.
    fn move_flow(&self, instruction: &Instruction) -> Flows {
        let scalar = scalar(instruction);
        let [destination, source] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        if scalar == ScalarType::Pred {
            return self.result_flow(instruction);
        }
        let source_bytes = part_bytes(source, destination, scalar);
        let sources = self.parts(source, source_bytes).into_iter();
        let sources = sources.map(|(row, bytes)| Source {
            value: row.map_or(Value::Immediate(0), Value::Register),
            bytes,
        });
        let destination_bytes = part_bytes(destination, source, scalar);
        let destinations = self.parts(destination, destination_bytes);
        Flow {
            propagation: Propagation::Bytes { signed: false },
            sources: sources.collect(),
            destinations,
            ..nothing()
        }
        .into()
    }

    /// `shfl`
    fn shuffle_flow(&self, instruction: &Instruction) -> Flows {
        let [destination, sources @ .., members] = &instruction.operands[..] else {
            return Flows::nothing();
        };
        let mode = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Shuffle(mode) => Some(*mode),
                _ => None,
            });
        let mode = match mode {
            Some(ShuffleMode::Up) => 0,
            Some(ShuffleMode::Down) => 1,
            Some(ShuffleMode::Butterfly) => 2,
            _ => 3,
        };
        let mut flow = self.spread(
            Propagation::Shuffle(mode),
            std::slice::from_ref(destination),
            sources,
        );
        // The predicate depends on the lane numbers only.
        flow.destinations
            .retain(|(row, _)| !matches!(row, Some(RegisterRow::Predicate(_))));
        Flow {
            sinks: self.sinks([members]),
            ..flow
        }
        .into()
    }

    /// Returns a flow whose sources must be defined, and whose results then are.
    fn required(&self, results: &[Operand], sources: &[Operand]) -> Flow {
        let flow = if results.is_empty() {
            nothing()
        } else {
            self.defined(results)
        };
        Flow {
            sinks: self.sinks(sources),
            ..flow
        }
    }

    /// Returns a flow whose operands are the result and sources of a type, or predicates.
    fn chosen(&self, propagation: Propagation, operands: &[Operand], scalar: ScalarType) -> Flow {
        let mut flow = self.spread(
            propagation,
            operands.get(..1).unwrap_or_default(),
            operands.get(1..).unwrap_or_default(),
        );
        for source in &mut flow.sources {
            source.bytes = source.bytes.min(scalar.bytes().max(1) as u32);
        }
        flow
    }

    fn defined(&self, results: &[Operand]) -> Flow {
        self.spread(Propagation::Defined, results, &[])
    }

    fn spread(&self, propagation: Propagation, results: &[Operand], sources: &[Operand]) -> Flow {
        let values = sources.iter().flat_map(|source| self.values(source));
        let sources = values
            .map(|value| Source {
                value,
                bytes: WHOLE,
            })
            .collect();
        let destinations = results
            .iter()
            .flat_map(|result| self.parts(result, WHOLE))
            .collect();
        Flow {
            propagation,
            sources,
            destinations,
            ..nothing()
        }
    }

    /// Returns all registers that operands read.
    fn sinks<'o>(&self, operands: impl IntoIterator<Item = &'o Operand>) -> Vec<(RegisterRow, u8)> {
        let values = operands
            .into_iter()
            .flat_map(|operand| self.values(operand));
        values
            .filter_map(|value| match value {
                Value::Immediate(_) => None,
                Value::Register(row) | Value::Not(row) => Some((row, u8::MAX)),
            })
            .collect()
    }

    /// Returns the single value of an operand.
    fn value(&self, operand: &Operand) -> Option<Value> {
        self.values(operand).into_iter().next()
    }

    fn base_values(&self, base: Base) -> Vec<Value> {
        match base {
            Base::Register(register) => self.register_values(register),
            _ => Vec::new(),
        }
    }

    /// Returns the registers and immediates that an operand reads.
    fn values(&self, operand: &Operand) -> Vec<Value> {
        match operand {
            Operand::Register(register) | Operand::Select(register, _) => {
                self.register_values(*register)
            }
            Operand::Element(register, index) => register_rows(self.element(*register, *index))
                .map(Value::Register)
                .collect(),
            Operand::Not(register) => register_rows(self.slot(*register))
                .map(Value::Not)
                .collect(),
            Operand::Pair(first, second) => first
                .iter()
                .chain(second)
                .flat_map(|register| self.register_values(*register))
                .collect(),
            Operand::Integer(integer) => vec![Value::Immediate(integer.bits)],
            Operand::Single(bits) => vec![Value::Immediate(u64::from(*bits))],
            Operand::Double(bits) => vec![Value::Immediate(*bits)],
            Operand::Address(address) => self.base_values(address.base),
            Operand::Tensor(tensor) => {
                let coordinates = tensor
                    .coordinates
                    .iter()
                    .flat_map(|operand| self.values(operand));
                self.base_values(tensor.handle.base)
                    .into_iter()
                    .chain(coordinates)
                    .collect()
            }
            Operand::Vector(parts) | Operand::VectorPair(parts, _) => {
                parts.iter().flat_map(|part| self.values(part)).collect()
            }
            Operand::Special(_) | Operand::Symbol(..) | Operand::Sink => vec![Value::Immediate(0)],
            Operand::Label(_) | Operand::BranchTargets(_) | Operand::Call(_) => Vec::new(),
        }
    }

    fn register_values(&self, register: RegisterId) -> Vec<Value> {
        let vector = self.function.registers[register.0 as usize].vector;
        (0..vector.max(1))
            .flat_map(|index| register_rows(self.element(register, index)))
            .map(Value::Register)
            .collect()
    }

    /// Returns the registers of an operand, each with the number of its bytes.
    fn parts(&self, operand: &Operand, bytes: u32) -> Vec<(Option<RegisterRow>, u32)> {
        match operand {
            Operand::Vector(parts) => parts
                .iter()
                .flat_map(|part| self.parts(part, bytes))
                .collect(),
            Operand::VectorPair(parts, predicate) => {
                let parts = parts.iter().flat_map(|part| self.parts(part, bytes));
                parts
                    .chain(self.parts(&Operand::Register(*predicate), 1))
                    .collect()
            }
            Operand::Sink => vec![(None, bytes)],
            operand => {
                let values = self.values(operand).into_iter();
                values
                    .map(|value| match value {
                        Value::Register(row @ RegisterRow::Predicate(_)) => (Some(row), 1),
                        Value::Register(row @ RegisterRow::Word(_)) => (Some(row), bytes.min(4)),
                        Value::Register(row) => (Some(row), bytes.min(8)),
                        _ => (None, bytes.min(8)),
                    })
                    .collect()
            }
        }
    }
}

/// Returns the bytes of a part of a packed or unpacked operand of a move.
fn part_bytes(operand: &Operand, other: &Operand, scalar: ScalarType) -> u32 {
    match (operand, other) {
        (Operand::Vector(parts), single) if !matches!(single, Operand::Vector(_)) => {
            scalar.bytes() as u32 / parts.len().max(1) as u32
        }
        _ => scalar.bytes() as u32,
    }
}

/// Returns the value of the combined predicate that alone determines the result of a comparison, if
/// there is one.
fn decisive(instruction: &Instruction) -> Option<bool> {
    if instruction.has_operation(Operation::And) {
        Some(false)
    } else if instruction.has_operation(Operation::Or) {
        Some(true)
    } else {
        None
    }
}

/// Returns the first type of an instruction.
fn scalar(instruction: &Instruction) -> ScalarType {
    instruction.types().next().unwrap_or(ScalarType::B64)
}

fn nothing() -> Flow {
    Flow {
        sinks: Vec::new(),
        propagation: Propagation::Nothing,
        sources: Vec::new(),
        destinations: Vec::new(),
    }
}

fn has_any(instruction: &Instruction, words: &[Keyword]) -> bool {
    words.iter().any(|word| instruction.has_keyword(*word))
}

fn bits(bytes: u32) -> u8 {
    if bytes >= 8 {
        u8::MAX
    } else {
        (1 << bytes) - 1
    }
}

fn register_rows(slot: Slot) -> impl Iterator<Item = RegisterRow> {
    let (first, second) = match slot {
        Slot::Word(row) => (RegisterRow::Word(row), None),
        Slot::Double(row) => (RegisterRow::Double(row), None),
        Slot::Quad(row) => (RegisterRow::Double(row), Some(RegisterRow::Double(row + 1))),
        Slot::Predicate(number) => (RegisterRow::Predicate(number), None),
    };
    std::iter::once(first).chain(second)
}
