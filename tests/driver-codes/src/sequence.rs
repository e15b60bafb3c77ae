//! Makes the calls of one sequence, and writes a line for each.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::slice;

use anyhow::{Context as _, Result};
use curium_sim::{Config, Simulator};
use curium_sys::{Api, CUresult};

use crate::bindings::Signature;
use crate::call::call;
use crate::plan::{self, Call, CreatedObject};
use crate::value::{self, Memory, Value};

/// Makes the calls of a sequence, and ends the process. A line begins before its call and is
/// completed after it, so a crash names its call.
pub(crate) fn run(seed: u64, number: u64, length: usize) -> Result<()> {
    let driver = Driver::open()?;
    let mut memory = Memory::new();
    let mut output = io::stdout().lock();
    for (index, call) in plan::sequence(seed, number, length).iter().enumerate() {
        write!(
            output,
            "{index}\t{}\t{}\t",
            text(call),
            call.notes.join("; ")
        )?;
        output.flush()?;
        let outcome = make(&driver.api, call, &mut memory);
        writeln!(output, "{outcome}")?;
        output.flush()?;
    }
    drop(output);
    end_process()
}

/// Returns the text of a call.
pub(crate) fn text(call: &Call) -> String {
    let Signature {
        function,
        parameters,
    } = call.signature;
    let mut text = format!("{function}(");
    for (index, (parameter, argument)) in parameters.iter().zip(&call.arguments).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        write!(text, "{comma}{}={argument}", parameter.name).unwrap_or_default();
    }
    text + ")"
}

/// The driver, which lives as long as its functions are called.
struct Driver {
    api: Api,
    _simulator: Option<Simulator>,
}

impl Driver {
    fn open() -> Result<Self> {
        if std::env::var("CURIUM_TEST_DRIVER").is_ok_and(|driver| driver == "cuda") {
            let api = Api::load().context("loading the driver")?;
            return Ok(Self {
                api,
                _simulator: None,
            });
        }
        let simulator = Simulator::new(Config::from_environment()?)?;
        Ok(Self {
            api: simulator.api(),
            _simulator: Some(simulator),
        })
    }
}

/// Makes a call. Returns its code, or the reason why it was not made.
fn make(api: &Api, call: &Call, memory: &mut Memory) -> String {
    let parameters = call.signature.parameters;
    let mut arguments = Vec::with_capacity(parameters.len());
    for (parameter, argument) in parameters.iter().zip(&call.arguments) {
        match memory.encode(argument, parameter.ty.size()) {
            Some(bytes) => arguments.push(bytes),
            None => return "skipped".to_owned(),
        }
    }
    // SAFETY: each argument has the size of its parameter. The process ends after the sequence, and
    // only reports codes.
    let code = unsafe { self::call(api, call.signature.function, &arguments) };
    let Some(code) = code else {
        return "absent".to_owned();
    };
    if code == CUresult::CUDA_SUCCESS
        && let Some(created) = &call.created
    {
        record(created, &call.arguments, &arguments, memory);
    }
    let name = format!("{code:?}");
    name.trim_start_matches("CUDA_")
        .trim_start_matches("ERROR_")
        .to_owned()
}

/// Records the object that a call created.
fn record(created: &CreatedObject, values: &[Value], arguments: &[Vec<u8>], memory: &mut Memory) {
    let argument = &arguments[created.parameter];
    let Some(size) = created.size else {
        memory.insert(created.index, argument.clone());
        return;
    };
    if !matches!(values[created.parameter], Value::Created { .. }) {
        return;
    }
    let address = usize::try_from(value::number(argument)).unwrap_or_default();
    let pointer = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the argument points to a block of this process that is never freed, and is longer
    // than any object.
    let bytes = unsafe { slice::from_raw_parts(pointer, size) };
    memory.insert(created.index, bytes.to_vec());
}

/// Ends the process without the driver's own end, which waits for enqueued work.
fn end_process() -> ! {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn _exit(status: i32) -> !;
        }
        // SAFETY: the function has no precondition, and everything has been written.
        unsafe { _exit(0) }
    }
    #[cfg(not(unix))]
    std::process::exit(0)
}
