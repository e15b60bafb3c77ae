//! Times a kernel and a copy with events, which are recorded in stream order.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const ELEMENTS: u32 = 1 << 16;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let step = Module::from_ptx(&context, KERNELS)?.kernel::<(&mut [u32], u32, u32)>("step")?;
    let mut data = DeviceBuffer::zeroed(&stream, ELEMENTS as usize)?;
    let begin = Event::new(&context, EventFlags::empty())?;
    let computed = Event::new(&context, EventFlags::empty())?;
    let copied = Event::new(&context, EventFlags::empty())?;

    begin.record(&stream)?;
    // SAFETY: `step` writes the first ELEMENTS elements, which `data` has.
    unsafe {
        step.launch(
            &stream,
            LaunchConfig::for_elements(ELEMENTS as usize),
            (&mut data, ELEMENTS, 100),
        )
    }?;
    computed.record(&stream)?;
    let result = data.to_vec()?;
    copied.record(&stream)?;
    copied.synchronize()?;

    let kernel = computed.elapsed_since(&begin)?;
    let copy = copied.elapsed_since(&computed)?;
    println!(
        "the kernel took {kernel:.1?}, the copy of {} bytes {copy:.1?}",
        size_of_val(&result[..])
    );
    Ok(())
}
