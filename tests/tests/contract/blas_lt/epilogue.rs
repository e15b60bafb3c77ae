//! Epilogues and their gradients agree with a reference.

use curium_blas::lt::{Epilogue, Matmul, MatmulPlan, Operands, PlanOptions};
use curium_blas::{Error, Order};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, uses_cuda};
use half::{bf16, f16};

use super::value::{Device, Host, Random, Value, vector};
use super::{execute, lt, plan};

/// The sizes of the products.
const SIZES: (usize, usize, usize) = (48, 32, 64);

/// The factors of a product, whose result has no content yet.
struct Factors<T> {
    a: Device<T>,
    b: Device<T>,
    d: Device<T>,
}

impl<T: Value> Factors<T> {
    fn new(random: &mut Random, stream: &Stream) -> Self {
        let (m, n, k) = SIZES;
        let layouts = (
            random.layout(m, k, 8),
            random.layout(k, n, 8),
            random.layout(m, n, 8),
        );
        Self {
            a: Device::random(random, stream, layouts.0),
            b: Device::random(random, stream, layouts.1),
            d: Device::random(random, stream, layouts.2),
        }
    }

    fn matmul(&self, epilogue: Epilogue) -> Matmul {
        Matmul::new(self.a.typed(), self.b.typed(), self.d.typed()).with_epilogue(epilogue)
    }

    /// Returns the place in a bias of an element of the result.
    fn bias_index(&self, row: usize, column: usize) -> usize {
        if self.d.typed().layout().order() == Order::RowMajor {
            column
        } else {
            row
        }
    }

    /// Returns the sums of an operand of the shape of the result over all elements with one element
    /// of the bias.
    fn sums(&self, of: &Host) -> Vec<f64> {
        let (m, n, _) = SIZES;
        let mut sums = vec![0.0; if self.bias_index(0, 1) == 1 { n } else { m }];
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            sums[self.bias_index(row, column)] += of.at(row, column);
        }
        sums
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
}

/// Returns the derivative of GELU as the limit of a difference.
fn gelu_slope(x: f64) -> f64 {
    (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5
}

/// The error of sums of f32, and of the library's approximations of the hyperbolic tangent.
const BOUND: f64 = 4e-3;

#[track_caller]
fn assert_close<T: Value>(found: &[f64], expected: &[f64], bound: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, wanted) in found.iter().zip(expected) {
        assert!(
            (found - wanted).abs() <= bound + T::EPSILON * wanted.abs(),
            "{what}: {found} instead of {wanted}"
        );
    }
}

/// Returns the elements in device memory, which has at least one.
fn uploaded<T: Value>(stream: &Stream, elements: &[T]) -> DeviceBuffer<T> {
    let elements = if elements.is_empty() {
        &[T::narrow(0.0)]
    } else {
        elements
    };
    DeviceBuffer::from_slice(stream, elements).expect("allocation failed")
}

/// Checks a forward epilogue, with its auxiliary output, and returns that memory.
fn forward<T: Value>(epilogue: Epilogue, activate: impl Fn(f64) -> f64, has_bias: bool) {
    on_driver(|test| {
        let lt = lt(test);
        let stream = test.stream();
        let mut random = Random::new(21);
        for _ in 0..6 {
            let mut factors = Factors::<T>::new(&mut random, &stream);
            let matmul = factors.matmul(epilogue);
            let bias: Vec<T> = random.numbers(matmul.bias_len());
            let buffer = uploaded(&stream, &bias);
            let mut plan = plan(&lt, &matmul);
            let expected = factors.a.host.times(&factors.b.host);
            let expected = expected.map(|row, column, value| {
                let index = factors.bias_index(row, column);
                activate(value + if has_bias { bias[index].wide() } else { 0.0 })
            });
            let operands =
                Operands::new(&factors.a.buffer, &factors.b.buffer, &mut factors.d.buffer);
            let operands = if has_bias {
                operands.with_bias(&buffer)
            } else {
                operands
            };
            execute(&mut plan, &stream, operands);
            factors
                .d
                .now()
                .assert_is::<T>(&expected, BOUND, &matmul.to_string());
        }
    });
}

#[test]
fn biases_and_activations_agree_with_the_reference() {
    let relu = |x: f64| x.max(0.0);
    forward::<f32>(Epilogue::Bias, |x| x, true);
    forward::<f32>(Epilogue::Relu, relu, false);
    forward::<bf16>(Epilogue::ReluBias, relu, true);
    forward::<f16>(Epilogue::Gelu, gelu, false);
    forward::<bf16>(Epilogue::GeluBias, gelu, true);
}

/// Computes an activation with its auxiliary output, and then a gradient through it.
fn there_and_back<T: Value>(
    (forward, backward): (Epilogue, Epilogue),
    (activate, slope): (impl Fn(f64) -> f64, impl Fn(f64) -> f64),
    has_mask: bool,
) {
    on_driver(|test| {
        let lt = lt(test);
        let stream = test.stream();
        let mut random = Random::new(33);
        for _ in 0..4 {
            let mut first = Factors::<T>::new(&mut random, &stream);
            let matmul = first.matmul(forward);
            let bias: Vec<T> = random.numbers(matmul.bias_len());
            let bias_buffer = uploaded(&stream, &bias);
            let mut mask = DeviceBuffer::<u8>::zeroed(&stream, matmul.auxiliary_len())
                .expect("allocation failed");
            let mut input = DeviceBuffer::<T>::zeroed(&stream, matmul.auxiliary_len())
                .expect("allocation failed");
            let reference = first.a.host.times(&first.b.host).map(|row, column, value| {
                value
                    + if bias.is_empty() {
                        0.0
                    } else {
                        bias[first.bias_index(row, column)].wide()
                    }
            });
            let operands = Operands::new(&first.a.buffer, &first.b.buffer, &mut first.d.buffer);
            let operands = if bias.is_empty() {
                operands
            } else {
                operands.with_bias(&bias_buffer)
            };
            let operands = if has_mask {
                operands.with_auxiliary_output(&mut mask)
            } else {
                operands.with_auxiliary_output(&mut input)
            };
            execute(&mut plan(&lt, &matmul), &stream, operands);
            let activated = reference.map(|_, _, value| activate(value));
            first
                .d
                .now()
                .assert_is::<T>(&activated, BOUND, &matmul.to_string());

            // The gradient has the layout of the result.
            let mut second = Factors::<T>::new(&mut random, &stream);
            second.d = Device::random(&mut random, &stream, first.d.typed().layout());
            let matmul = second.matmul(backward);
            let mut sums = DeviceBuffer::<T>::zeroed(&stream, matmul.bias_len().max(1))
                .expect("allocation failed");
            let has_sums = matmul.bias_len() > 0;
            let product = second.a.host.times(&second.b.host);
            let operands = Operands::new(&second.a.buffer, &second.b.buffer, &mut second.d.buffer);
            let operands = if has_mask {
                operands.with_auxiliary(&mask)
            } else {
                operands.with_auxiliary(&input)
            };
            let operands = if has_sums {
                operands.with_bias_gradient(&mut sums)
            } else {
                operands
            };
            execute(&mut plan(&lt, &matmul), &stream, operands);
            // An input near a kink is rounded to either side.
            let expected =
                product.map(|row, column, value| value * slope(reference.at(row, column)));
            let bound = BOUND + 64.0 * T::EPSILON;
            second
                .d
                .now()
                .assert_is::<T>(&expected, bound, &matmul.to_string());
            if has_sums {
                assert_close::<T>(
                    &vector(&sums),
                    &second.sums(&expected),
                    8.0 * bound,
                    &matmul.to_string(),
                );
            }
        }
    });
}

/// A gradient of ReLU uses the mask of the forward product.
#[test]
fn relu_gradient_uses_the_forward_mask() {
    let functions = (|x: f64| x.max(0.0), |x: f64| f64::from(u8::from(x > 0.0)));
    there_and_back::<bf16>(
        (Epilogue::ReluAuxiliaryBias, Epilogue::ReluBiasGradient),
        functions,
        true,
    );
    there_and_back::<f16>(
        (Epilogue::ReluAuxiliary, Epilogue::ReluGradient),
        functions,
        true,
    );
}

/// A gradient of GELU uses the input of the forward product.
#[test]
fn gelu_gradient_uses_the_forward_input() {
    let functions = (gelu, gelu_slope);
    there_and_back::<bf16>(
        (Epilogue::GeluAuxiliaryBias, Epilogue::GeluBiasGradient),
        functions,
        false,
    );
    there_and_back::<f16>(
        (Epilogue::GeluAuxiliary, Epilogue::GeluGradient),
        functions,
        false,
    );
}

#[driver_test]
fn bias_gradients_are_factor_sums(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(41);
    let (m, n, k) = SIZES;
    let mut planned = 0;
    for _ in 0..12 {
        let mut factors = Factors::<bf16>::new(&mut random, &stream);
        let a = factors.a.host.clone();
        let b = factors.b.host.clone();
        let of_a: Vec<f64> = (0..m)
            .map(|row| (0..k).map(|inner| a.at(row, inner)).sum())
            .collect();
        let of_b: Vec<f64> = (0..n)
            .map(|column| (0..k).map(|inner| b.at(inner, column)).sum())
            .collect();
        for (epilogue, expected) in [
            (Epilogue::BiasGradientA, of_a),
            (Epilogue::BiasGradientB, of_b),
        ] {
            let matmul = factors.matmul(epilogue);
            assert_eq!(matmul.bias_len(), expected.len());
            let mut sums = DeviceBuffer::<bf16>::zeroed(&stream, matmul.bias_len())?;
            let mut plan = match MatmulPlan::new(&lt, &matmul, PlanOptions::default()) {
                // NVIDIA's library has these sums for some orders of the factors.
                Err(Error::Plan(_)) if uses_cuda() => continue,
                other => other.unwrap_or_else(|error| panic!("{error}")),
            };
            planned += 1;
            let operands =
                Operands::new(&factors.a.buffer, &factors.b.buffer, &mut factors.d.buffer);
            execute(&mut plan, &stream, operands.with_bias_gradient(&mut sums));
            factors
                .d
                .now()
                .assert_is::<bf16>(&a.times(&b), BOUND, &matmul.to_string());
            assert_close::<bf16>(&vector(&sums), &expected, BOUND, &matmul.to_string());
        }
    }
    assert!(planned > 0, "some orders have these sums");
    Ok(())
}
