//! Runs compiled programs on the simulator, and compares the results.
#![allow(
    unsafe_code,
    reason = "programs have no typed launchers; the simulator checks their accesses"
)]

use curium_driver::{ArgumentList, Device, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Simulator};

use crate::interpret::{Argument, Input, Undefined};
use crate::program::{MemoryKind, Param, Program};
use crate::value::{Type, Value};

/// The limit of dynamic shared memory, which no program needs.
const MAX_DYNAMIC_SHARED: u32 = 32 << 10;

/// The result of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Same,
    /// The interpreter finds no defined result.
    Undefined(&'static str),
    /// The simulator reports an error.
    Report(String),
    /// A launch or a copy fails without a report.
    Failure(String),
    /// The first difference.
    Difference(String),
}

impl Outcome {
    /// Returns `true` if both are the same kind of outcome.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A simulated device with loaded programs. It is replaced after an error, which a context does not
/// survive.
pub(crate) struct Machine<'a> {
    ptx: &'a str,
    seed: u64,
    loaded: Option<Loaded>,
}

struct Loaded {
    simulator: Simulator,
    device: Device,
    stream: Stream,
    library: Library,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(ptx: &'a str, seed: u64) -> Self {
        Self {
            ptx,
            seed,
            loaded: None,
        }
    }

    /// Runs the kernel `name`.
    pub(crate) fn run(&mut self, program: &Program, name: &str, input: &Input) -> Outcome {
        let expected = match crate::interpret::run(program, input) {
            Ok(expected) => expected,
            Err(Undefined(reason)) => return Outcome::Undefined(reason),
        };
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => match Loaded::new(self.ptx, self.seed) {
                Ok(loaded) => loaded,
                Err(error) => return Outcome::Failure(format!("{error:#}")),
            },
        };
        let actual = loaded.launch(program, name, input);
        let reports = loaded.simulator.reports();
        if let Some(report) = reports.first() {
            return Outcome::Report(report.to_string());
        }
        let actual = match actual {
            Ok(actual) => actual,
            Err(error) => return Outcome::Failure(format!("{error:#}")),
        };
        self.loaded = Some(loaded);
        match difference(&expected, &actual) {
            Some(difference) => Outcome::Difference(difference),
            None => Outcome::Same,
        }
    }
}

impl Loaded {
    fn new(ptx: &str, seed: u64) -> anyhow::Result<Self> {
        let config = Config::new()
            .with_seed(seed)
            .with_race_checks(true)
            .with_uninitialized_checks(true)
            .with_checks(Checks::Quiet);
        let simulator = Simulator::new(config)?;
        let device: Device = simulator.driver()?;
        let library = Library::from_ptx(&device, ptx)?;
        let stream = device.primary_context()?.stream()?;
        Ok(Self {
            simulator,
            device,
            stream,
            library,
        })
    }

    /// Launches a kernel, and returns the buffers afterwards.
    fn launch(
        &self,
        program: &Program,
        name: &str,
        input: &Input,
    ) -> curium_driver::Result<Vec<Vec<Value>>> {
        let kernel = self.library.untyped_kernel(name)?;
        let mut buffers = Vec::new();
        for argument in &input.arguments {
            let mut bytes = to_bytes(argument.elements());
            // An empty buffer has an address too.
            if bytes.is_empty() {
                bytes.extend([0; 8]);
            }
            buffers.push(DeviceBuffer::from_slice(&self.stream, &bytes)?);
        }
        let [x, y, z] = program.block.unwrap_or([256, 1, 1]);
        let mut config =
            LaunchConfig::new((input.grid[0], input.grid[1], input.grid[2]), (x, y, z));
        let mut list = ArgumentList::new();
        for ((param, argument), buffer) in program
            .params
            .iter()
            .zip(&input.arguments)
            .zip(&mut buffers)
        {
            list = match argument {
                Argument::Value(Value::U32(value)) => list.value(*value),
                Argument::Value(Value::I32(value)) => list.value(*value),
                Argument::Value(Value::U64(value)) => list.value(*value),
                Argument::Value(Value::I64(value)) => list.value(*value),
                Argument::Value(Value::F32(value)) => list.value(*value),
                Argument::Value(Value::F64(value)) => list.value(*value),
                Argument::Value(Value::Bool(_)) => panic!("a condition is no parameter"),
                Argument::Buffer(elements) => list.write(buffer).value(elements.len() as u64),
                Argument::Matrix { rows, columns, .. } => {
                    list.write(buffer).value(*rows).value(*columns)
                }
                Argument::Dynamic(len) => {
                    if let Param::Memory(memory) = param
                        && matches!(program.memories[*memory].kind, MemoryKind::Dynamic)
                    {
                        let size = program.memories[*memory].ty.size();
                        config.shared_bytes = (len * size) as u32;
                    }
                    list
                }
                Argument::None => list,
            };
        }
        if config.shared_bytes > 0 {
            // The simulator counts the static shared memory of all kernels of a module.
            kernel.set_max_dynamic_shared_bytes(&self.device, MAX_DYNAMIC_SHARED)?;
        }
        // SAFETY: the arguments are those of the kernel, and the simulator checks each access.
        unsafe { kernel.launch(&self.stream, config, list) }?;
        self.stream.synchronize()?;
        let mut values = Vec::new();
        for (argument, buffer) in input.arguments.iter().zip(&buffers) {
            let elements = argument.elements();
            let ty = elements.first().map_or(Type::U32, |value| value.ty());
            let bytes = buffer.to_vec()?;
            let chunks = bytes.chunks_exact(ty.size()).take(elements.len());
            values.push(
                chunks
                    .map(|chunk| {
                        let mut bits = [0; 8];
                        bits[..chunk.len()].copy_from_slice(chunk);
                        Value::from_bits(ty, u64::from_le_bytes(bits))
                    })
                    .collect(),
            );
        }
        Ok(values)
    }
}

fn to_bytes(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(&value.bits().to_le_bytes()[..value.ty().size()]);
    }
    bytes
}

/// Describes the first difference. All NaNs are equal.
fn difference(expected: &[Argument], actual: &[Vec<Value>]) -> Option<String> {
    for (param, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        for (index, (expected, actual)) in expected.elements().iter().zip(actual).enumerate() {
            if expected.digest() != actual.digest() {
                return Some(format!(
                    "element {index} of parameter {param} is {actual:?}, and the interpreter computes {expected:?}"
                ));
            }
        }
    }
    None
}
