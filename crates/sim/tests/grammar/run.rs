//! Runs of accepted forms: each ends, with or without a fault.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use curium_driver::{Driver, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel, Simulator};

use crate::{Form, line, module};

/// The time after which a form is considered not to end.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a form with one block of two warps. Returns the error if it cannot be loaded or launched,
/// or does not end.
pub(super) fn problem(form: &Form, target: &str, version: &str) -> Option<String> {
    let text = module(&[form], target, version);
    let model = model(target);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(run(&text, model)));
    let outcome = receiver
        .recv_timeout(LIMIT)
        .unwrap_or_else(|error| Err(format!("does not end: {error}")));
    outcome
        .err()
        .map(|error| format!("for {target}: {}\n    {error}\n", line(form)))
}

fn model(target: &str) -> DeviceModel {
    if target.starts_with("sm_10") {
        DeviceModel::B200
    } else {
        DeviceModel::H100
    }
}

fn run(text: &str, model: DeviceModel) -> Result<(), String> {
    let simulator = Simulator::new(Config::new().with_device_model(model))
        .map_err(|error| error.to_string())?;
    let (stream, memory) = launched(&simulator, text).map_err(|error| error.to_string())?;
    let ended = stream.synchronize();
    drop(memory);
    // A sticky error is a fault of the form.
    ended.or_else(|error| {
        if error.is_sticky() {
            Ok(())
        } else {
            Err(error.to_string())
        }
    })
}

fn launched(
    simulator: &Simulator,
    text: &str,
) -> curium_driver::Result<(Stream, DeviceBuffer<u64>)> {
    let device = simulator.driver::<Driver>()?.device(0)?;
    let stream = device.primary_context()?.stream()?;
    let kernel: Kernel<(&mut [u64],)> = Library::from_ptx(&device, text)?.kernel("main")?;
    let mut memory = DeviceBuffer::zeroed(&stream, 1 << 12)?;
    // SAFETY: the simulator checks every access.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 64), (&mut memory,)) }?;
    Ok((stream, memory))
}
