//! Uses one device from several threads: handles are shared, each thread has a stream, and no
//! thread has to make a context current.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::thread;

use curium::driver::Result;
use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const THREADS: u32 = 4;
const ELEMENTS: u32 = 1000;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let square =
        Library::from_ptx(context.driver(), KERNELS)?.kernel::<(&mut [f32], u32)>("square")?;
    let sums = thread::scope(|scope| {
        let workers: Vec<_> = (1..=THREADS)
            .map(|number| {
                let context = &context;
                let square = &square;
                scope.spawn(move || sum_of_squares(context, square, number as f32))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no thread panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    let expected: Vec<_> = (1..=THREADS)
        .map(|number| (number * number * ELEMENTS) as f32)
        .collect();
    assert_eq!(sums, expected);
    println!("{THREADS} threads computed {sums:?}");
    Ok(())
}

/// Returns the sum of the squares of ELEMENTS equal numbers.
fn sum_of_squares(
    context: &Context,
    square: &Kernel<(&'static mut [f32], u32)>,
    number: f32,
) -> Result<f32> {
    let stream = context.stream()?;
    let mut numbers = DeviceBuffer::filled(&stream, ELEMENTS as usize, number)?;
    // SAFETY: `square` accesses the first ELEMENTS elements, which exist.
    unsafe {
        square.launch(
            &stream,
            LaunchConfig::for_elements(ELEMENTS as usize),
            (&mut numbers, ELEMENTS),
        )
    }?;
    Ok(numbers.to_vec()?.iter().sum())
}
