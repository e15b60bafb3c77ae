//! Awaits device work in an async program without blocking a thread of the executor or one per
//! task.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const ELEMENTS: u32 = 1024;

type Step = Kernel<(&'static mut [u32], u32, u32)>;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let step: Step = Library::from_ptx(context.driver(), KERNELS)?.kernel("step")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|seed| tokio::spawn(state(context.clone(), step.clone(), seed)))
            .collect();
        for (seed, task) in (0..8).zip(tasks) {
            assert_eq!(
                task.await??,
                vec![(0..10).fold(seed, |value, _| next(value)); ELEMENTS as usize]
            );
        }
        println!("8 tasks awaited their kernels on 2 threads");
        Ok(())
    })
}

/// Runs ten steps of ELEMENTS generators with the same seed.
async fn state(context: Context, step: Step, seed: u32) -> curium::driver::Result<Vec<u32>> {
    let stream = context.stream()?;
    let mut data = DeviceBuffer::filled(&stream, ELEMENTS as usize, seed)?;
    // SAFETY: `step` writes the first ELEMENTS elements, which `data` has.
    unsafe {
        step.launch(
            &stream,
            LaunchConfig::for_elements(ELEMENTS as usize),
            (&mut data, ELEMENTS, 10),
        )
    }?;
    stream.completion().await?;
    data.to_vec()
}

fn next(value: u32) -> u32 {
    value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
