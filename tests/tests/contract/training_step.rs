//! A training step: many kernels on shared buffers, launched and replayed.

use curium_driver::{Error, GraphCache, LaunchConfig, Library, SafeKernel, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

/// A linear model with 16 inputs and outputs, and batches of 16.
struct Model {
    matmul: Matmul,
    saxpy: Saxpy,
    inputs: DeviceBuffer<f32>,
    transposed: DeviceBuffer<f32>,
    targets: DeviceBuffer<f32>,
    weights: DeviceBuffer<f32>,
    errors: DeviceBuffer<f32>,
    gradient: DeviceBuffer<f32>,
}

type Matmul = SafeKernel<(
    &'static [f32],
    &'static [f32],
    &'static mut [f32],
    u32,
    u32,
    u32,
)>;
type Saxpy = SafeKernel<(f32, &'static [f32], &'static mut [f32], u32)>;

const SIDE: u32 = 16;
const ELEMENTS: u32 = SIDE * SIDE;

impl Model {
    fn new(test: &TestDriver, stream: &Stream) -> Self {
        let matmul = Library::from_ptx(test.driver(), kernels::MATMUL)
            .and_then(|library| library.kernel("matmul"));
        let saxpy = Library::from_ptx(test.driver(), kernels::SAXPY)
            .and_then(|library| library.kernel("saxpy"));
        let weight = |row: u32, column: u32| ((row * 7 + column * 3) % 11) as f32 / 11.0 - 0.5;
        let elements = |weight: &dyn Fn(u32, u32) -> f32| {
            let values: Vec<_> = (0..ELEMENTS)
                .map(|index| weight(index / SIDE, index % SIDE))
                .collect();
            DeviceBuffer::from_slice(stream, &values).expect("allocation failed")
        };
        Self {
            // SAFETY: the kernel compares its indices with the sizes, which are those of the
            // buffers here.
            matmul: unsafe { matmul.expect("the kernel is there").declare_safe() },
            // SAFETY: the kernel compares its index with the length, which is that of the buffers
            // here.
            saxpy: unsafe { saxpy.expect("the kernel is there").declare_safe() },
            inputs: elements(&weight),
            transposed: elements(&|row, column| weight(column, row)),
            targets: elements(&|row, column| f32::from(row == column)),
            weights: elements(&|_, _| 0.0),
            errors: elements(&|_, _| 0.0),
            gradient: elements(&|_, _| 0.0),
        }
    }

    fn step(&mut self, stream: &Stream, rate: f32) -> Result<(), Error> {
        let tile = LaunchConfig::new(1, (SIDE, SIDE));
        let line = LaunchConfig::for_elements(ELEMENTS as usize);
        let Self {
            matmul,
            saxpy,
            inputs,
            transposed,
            targets,
            weights,
            errors,
            gradient,
        } = self;
        matmul.launch(
            stream,
            tile,
            (&*inputs, &*weights, &mut *errors, SIDE, SIDE, SIDE),
        )?;
        saxpy.launch(stream, line, (-1.0, &*targets, &mut *errors, ELEMENTS))?;
        matmul.launch(
            stream,
            tile,
            (&*transposed, &*errors, &mut *gradient, SIDE, SIDE, SIDE),
        )?;
        saxpy.launch(stream, line, (-rate, &*gradient, &mut *weights, ELEMENTS))
    }
}

/// A training step that is replayed gives the weights of one that is launched.
#[driver_test]
fn replayed_training_step_gives_equal_weights(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let [mut launched, mut replayed] = [(); 2].map(|()| Model::new(test, &stream));
    let mut replays = GraphCache::new();
    for step in 0..12 {
        let rate = if step < 8 { 0.25 } else { 0.125 };
        launched.step(&stream, rate)?;
        replays.run(&stream, "step", rate, |stream| replayed.step(stream, rate))?;
    }
    let weights = [&launched, &replayed].map(|model| model.weights.to_vec().expect("read failed"));
    assert_eq!(weights[0], weights[1]);
    assert!(weights[0].iter().any(|weight| *weight != 0.0));
    let counts = replays.counts();
    assert_eq!(
        (counts.captured, counts.updated, counts.launched),
        (1, 1, 10)
    );
    Ok(())
}
