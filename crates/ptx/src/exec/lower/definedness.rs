//! Propagation of undefined bytes through each instruction, for programs that check for uninitialized reads.

use super::function::{Lowerer, Slot};
use crate::exec::check::definedness::{Flow, Propagation, RegisterRow, Source, Value};
use crate::syntax::{
    Base, Callee, Instruction, Keyword, Modifier, Opcode, Operand, Operation, RegisterId,
    ScalarClass, ScalarType, ShuffleMode, Space as State,
};

/// The mask of a whole register's bytes.
const WHOLE: u32 = 8;

impl Lowerer<'_> {
    /// Records the propagation of undefined bytes through the ops of an instruction that were appended last.
    pub(super) fn add_flows(&mut self, instruction: &Instruction) {
        let start = self.starts_at();
        let end = self.out.code.len();
        if start == end {
            return;
        }
        let (flow, later) = self.instruction_flows(instruction);
        let meets = matches!(
            flow.propagation,
            Propagation::AllLanes | Propagation::WholeWarp | Propagation::Shuffle(_)
        );
        let index = if meets { end - 1 } else { start };
        if !flow.sinks.is_empty() || flow.propagation != Propagation::Nothing {
            self.out.flows.push((index as u32, flow));
        }
        if let (Some(flow), Some(index)) = (later, self.moved_at.filter(|index| *index < end)) {
            // The op that finds uninitialized bytes precedes the access, so the two have separate flows.
            self.out.flows.push((index as u32, flow));
        }
    }

    /// Returns the flow of the instruction's first op, and that of the op after the search for uninitialized bytes.
    fn instruction_flows(&self, instruction: &Instruction) -> (Flow, Option<Flow>) {
        use Opcode as O;
        let operands = &instruction.operands[..];
        let scalar = instruction.types().next().unwrap_or(ScalarType::B64);
        let is_predicate = scalar == ScalarType::Pred;
        match instruction.opcode {
            O::Ld | O::Ldu => self.load_flows(instruction, scalar),
            O::St if !has_any(instruction, &[Keyword::Async, Keyword::Bulk]) => {
                self.store_flows(instruction, scalar)
            }
            O::Mov if !is_predicate => (self.move_flow(operands, scalar), None),
            O::Selp => (self.chosen(Propagation::Select, operands, scalar), None),
            O::Defined(_) => (self.form_flow(instruction, scalar), None),
            O::Cvt => (self.conversion_flow(instruction, operands), None),
            O::Setp => (self.comparison_flow(instruction, operands, scalar), None),
            O::Shfl => (self.shuffle_flow(instruction, operands), None),
            O::Vote | O::Match | O::Redux | O::Elect => {
                let [destination, sources @ .., members] = operands else {
                    return (nothing(), None);
                };
                let flow = self.spread(
                    Propagation::AllLanes,
                    std::slice::from_ref(destination),
                    sources,
                );
                (
                    Flow {
                        sinks: self.sinks([members]),
                        ..flow
                    },
                    None,
                )
            }
            O::Mma | O::Movmatrix => (
                self.spread(Propagation::WholeWarp, &operands[..1], &operands[1..]),
                None,
            ),
            O::Wmma if has_any(instruction, &[Keyword::Mma]) => (
                self.spread(Propagation::WholeWarp, &operands[..1], &operands[1..]),
                None,
            ),
            _ => (self.other_flow(instruction, operands), None),
        }
    }

    /// Returns the flow of an instruction that has a definition.
    fn form_flow(&self, instruction: &Instruction, scalar: ScalarType) -> Flow {
        let operands = &instruction.operands[..];
        let Some(form) = instruction.form() else {
            return nothing();
        };
        match operands {
            [result, a, b] if form.cancels && a == b => self.defined(std::slice::from_ref(result)),
            [result, sources @ ..] if form.undefined == Propagation::All => {
                self.spread(Propagation::All, std::slice::from_ref(result), sources)
            }
            _ => self.chosen(form.undefined, operands, scalar),
        }
    }

    /// Returns the flow of any other instruction. Memory accesses and control transfers require defined operands; other results depend on
    /// all operands.
    fn other_flow(&self, instruction: &Instruction, operands: &[Operand]) -> Flow {
        use Opcode as O;
        match instruction.opcode {
            O::Bra | O::Ret | O::Exit | O::Trap | O::Brkpt | O::Membar | O::Fence | O::Wgmma => {
                nothing()
            }
            O::Prefetch
            | O::Prefetchu
            | O::Discard
            | O::Applypriority
            | O::Nanosleep
            | O::Pmevent => nothing(),
            O::Setmaxnreg | O::Griddepcontrol => nothing(),
            O::Call => match operands {
                [Operand::Call(call)] => {
                    let sinks = match call.callee {
                        Callee::Indirect(register, _) => self.sinks([&Operand::Register(register)]),
                        Callee::Direct(_) => Vec::new(),
                    };
                    Flow {
                        sinks,
                        ..self.defined(&call.returns)
                    }
                }
                _ => nothing(),
            },
            O::Atom | O::Suld => {
                let flow = self.defined(&operands[..1]);
                Flow {
                    sinks: self.sinks(&operands[1..]),
                    ..flow
                }
            }
            O::Ldmatrix | O::Activemask | O::Alloca | O::Stacksave | O::Clusterlaunchcontrol => {
                let flow = self.defined(operands.get(..1).unwrap_or_default());
                Flow {
                    sinks: self.sinks(operands.get(1..).unwrap_or_default()),
                    ..flow
                }
            }
            O::Multimem => {
                let loads = has_any(instruction, &[Keyword::LdReduce]);
                let (results, sources) = operands.split_at(usize::from(loads));
                Flow {
                    sinks: self.sinks(sources),
                    ..self.defined(results)
                }
            }
            O::Bar | O::Barrier => {
                let is_reduction = has_any(instruction, &[Keyword::Red]);
                let (results, sources) = operands.split_at(usize::from(is_reduction));
                Flow {
                    sinks: self.sinks(sources),
                    ..self.defined(results)
                }
            }
            O::Wmma if has_any(instruction, &[Keyword::Load]) => {
                let flow = self.defined(&operands[..1]);
                Flow {
                    sinks: self.sinks(&operands[1..]),
                    ..flow
                }
            }
            O::Mbarrier => match operands {
                [result @ (Operand::Register(_) | Operand::Sink), rest @ ..] => Flow {
                    sinks: self.sinks(rest),
                    ..self.defined(std::slice::from_ref(result))
                },
                all => Flow {
                    sinks: self.sinks(all),
                    ..nothing()
                },
            },
            O::Red | O::St | O::Cp | O::Brx | O::Sust | O::Sured | O::Stmatrix | O::Wmma => Flow {
                sinks: self.sinks(operands),
                ..nothing()
            },
            O::Tensormap | O::Stackrestore => Flow {
                sinks: self.sinks(operands),
                ..nothing()
            },
            O::Tcgen05 => match operands {
                // Undefined bytes of loads and stores are those of tensor memory.
                [registers @ Operand::Vector(_), address, ..] => Flow {
                    sinks: self.sinks([address]),
                    ..self.defined(std::slice::from_ref(registers))
                },
                [address, .., Operand::Vector(_)] => Flow {
                    sinks: self.sinks([address]),
                    ..nothing()
                },
                all => Flow {
                    sinks: self.sinks(all),
                    ..nothing()
                },
            },
            _ if operands.is_empty() => nothing(),
            _ => self.spread(Propagation::All, &operands[..1], &operands[1..]),
        }
    }

    fn load_flows(&self, instruction: &Instruction, scalar: ScalarType) -> (Flow, Option<Flow>) {
        let [destination, address, ..] = &instruction.operands[..] else {
            return (nothing(), None);
        };
        let sinks = self.sinks([address]);
        let destinations = self.parts(destination, scalar.bytes() as u32);
        let load = Flow {
            destinations,
            ..Flow {
                propagation: Propagation::Load,
                ..nothing()
            }
        };
        if self.moved_at.is_none() {
            // Kernel parameters are defined.
            return (
                Flow {
                    sinks,
                    propagation: Propagation::Defined,
                    ..load
                },
                None,
            );
        }
        (Flow { sinks, ..nothing() }, Some(load))
    }

    fn store_flows(&self, instruction: &Instruction, scalar: ScalarType) -> (Flow, Option<Flow>) {
        let [address, value, ..] = &instruction.operands[..] else {
            return (nothing(), None);
        };
        let bytes = scalar.bytes() as u32;
        let is_global = instruction.has(Modifier::Space(State::Global));
        let sources: Vec<Source> = self
            .parts(value, bytes)
            .into_iter()
            .map(|(row, bytes)| Source {
                value: row.map_or(Value::Immediate(0), Value::Register),
                bytes,
            })
            .collect();
        let mut sinks = self.sinks([address]);
        if is_global {
            let stored = sources.iter().filter_map(|source| match source.value {
                Value::Register(row) => Some((row, bits(source.bytes))),
                _ => None,
            });
            sinks.extend(stored);
            return (Flow { sinks, ..nothing() }, None);
        }
        (
            Flow { sinks, ..nothing() },
            Some(Flow {
                propagation: Propagation::Store,
                sources,
                ..nothing()
            }),
        )
    }

    /// Returns the flow of `mov`, which may pack and unpack.
    fn move_flow(&self, operands: &[Operand], scalar: ScalarType) -> Flow {
        let [destination, source] = operands else {
            return nothing();
        };
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
    }

    fn conversion_flow(&self, instruction: &Instruction, operands: &[Operand]) -> Flow {
        let types: Vec<ScalarType> = instruction.types().collect();
        let ([to, from], [destination, source], 2) =
            (&types[..], operands, instruction.modifiers.len())
        else {
            return self.spread(
                Propagation::All,
                operands.get(..1).unwrap_or_default(),
                operands.get(1..).unwrap_or_default(),
            );
        };
        if types
            .iter()
            .any(|scalar| scalar.class() == ScalarClass::Float)
        {
            return self.spread(
                Propagation::All,
                std::slice::from_ref(destination),
                std::slice::from_ref(source),
            );
        }
        let signed = from.class() == ScalarClass::Signed;
        let value = self.value(source).map(|value| Source {
            value,
            bytes: from.bytes().min(to.bytes()) as u32,
        });
        let destinations = self.parts(destination, WHOLE);
        Flow {
            propagation: Propagation::Bytes { signed },
            sources: value.into_iter().collect(),
            destinations,
            ..nothing()
        }
    }

    fn comparison_flow(
        &self,
        instruction: &Instruction,
        operands: &[Operand],
        scalar: ScalarType,
    ) -> Flow {
        let decides = if instruction.has_operation(Operation::And) {
            Some(false)
        } else if instruction.has_operation(Operation::Or) {
            Some(true)
        } else {
            None
        };
        self.chosen(Propagation::Compare(decides), operands, scalar)
    }

    fn shuffle_flow(&self, instruction: &Instruction, operands: &[Operand]) -> Flow {
        let [destination, sources @ .., members] = operands else {
            return nothing();
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
