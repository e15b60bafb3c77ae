//! The product.

use std::ffi::c_void;
use std::ops::Range;

use curium_blas::sys::lt::Api;
use curium_blas::sys::{
    cublasComputeType_t as Compute, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatrixLayout_t, cublasStatus_t, cudaStream_t,
};
use curium_sim::{LibraryOperation, Operand};
use half::{bf16, f16};
use matrixmultiply::dgemm;

use super::algorithm::{self, Algorithm};
use super::element::Element;
use super::handle::expect_live;
use super::problem::{Matrix, Problem};
use super::{INVALID, Result, UNSUPPORTED, code};

/// The addresses of the matrices.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

/// A factor: a number of the host, or the operand with this index.
#[derive(Clone, Copy, Debug)]
enum Factor {
    Host(f64),
    Device(usize),
}

/// The operands of the operation, by their indices.
#[derive(Clone, Debug, Default)]
struct Operands {
    all: Vec<Operand>,
}

/// The indices of the operands that a product uses.
#[derive(Clone, Copy, Debug)]
struct Places {
    a: usize,
    b: usize,
    c: Option<usize>,
    d: usize,
    alpha: Factor,
    beta: Factor,
    bias: Option<usize>,
    auxiliary: Option<usize>,
    scales: [Option<usize>; 4],
    amax: Option<usize>,
}

impl Operands {
    fn add(&mut self, operand: Operand) -> usize {
        self.all.push(operand);
        self.all.len() - 1
    }

    fn add_matrix(
        &mut self,
        operand: Operand,
        matrix: &Matrix,
        address: u64,
        count: usize,
    ) -> Result<usize> {
        if address == 0 {
            return Err(INVALID);
        }
        let element = matrix.element.bytes();
        let operand = (0..count).fold(operand, |operand, number| {
            let start = address.wrapping_add_signed(number as i64 * matrix.stride * element as i64);
            let column = |column: usize| start + (column * matrix.leading * element) as u64;
            (0..matrix.columns).fold(operand, |operand, index| {
                operand.with_run(column(index), matrix.rows * element)
            })
        });
        Ok(self.add(operand))
    }

    fn add_number(&mut self, operand: Operand, address: u64, bytes: usize) -> usize {
        self.add(operand.with_run(address, bytes))
    }
}

unsafe extern "C" fn matmul(
    handle: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    alpha: *const c_void,
    a: *const c_void,
    layout_a: cublasLtMatrixLayout_t,
    b: *const c_void,
    layout_b: cublasLtMatrixLayout_t,
    beta: *const c_void,
    c: *const c_void,
    layout_c: cublasLtMatrixLayout_t,
    d: *mut c_void,
    layout_d: cublasLtMatrixLayout_t,
    algorithm: *const cublasLtMatmulAlgo_t,
    workspace: *mut c_void,
    workspace_bytes: usize,
    stream: cudaStream_t,
) -> cublasStatus_t {
    let enqueue = || -> Result {
        expect_live(handle)?;
        let problem = Problem::new(operation, [layout_a, layout_b, layout_c, layout_d])?;
        let algorithm = match algorithm.is_null() {
            true => Algorithm::Blocked,
            // SAFETY: the caller passes an algorithm.
            false => Algorithm::of(unsafe { algorithm::read(algorithm) }?)?,
        };
        if algorithm.workspace(&problem) > workspace_bytes {
            return Err(INVALID);
        }
        let addresses = Addresses {
            a: a.addr() as u64,
            b: b.addr() as u64,
            c: c.addr() as u64,
            d: d.addr() as u64,
        };
        let mut operands = Operands::default();
        // As on hardware, work that uses one workspace on two streams races.
        operands
            .add(Operand::write().with_run(workspace.addr() as u64, algorithm.workspace(&problem)));
        // SAFETY: the caller passes a factor of the type of the operation, on the host or on the device.
        let alpha = unsafe { factor(&problem, &mut operands, alpha) }?;
        // SAFETY: as above.
        let beta = unsafe { factor(&problem, &mut operands, beta) }?;
        let places = operands.add_all(&problem, addresses, (alpha, beta))?;
        let compute = move |memory: &mut [Vec<u8>]| run(&problem, algorithm, &places, memory);
        let operation = LibraryOperation::new("cublasLtMatmul", operands.all, compute);
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue(stream.cast()) }
            .map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)
    };
    code(enqueue())
}

/// Adds the function.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtMatmul = Some(matmul);
}

/// Reads a factor of the host, or adds one in device memory.
///
/// # Safety
///
/// In the pointer mode of the host, `place` is null or valid for reads of the type.
unsafe fn factor(
    problem: &Problem,
    operands: &mut Operands,
    place: *const c_void,
) -> Result<Factor> {
    let bytes = problem.scale.bytes();
    if place.is_null() {
        return Err(INVALID);
    }
    if problem.factors_are_on_device {
        return Ok(Factor::Device(operands.add_number(
            Operand::read(),
            place.addr() as u64,
            bytes,
        )));
    }
    // SAFETY: the caller guarantees the place.
    let bytes = unsafe { std::slice::from_raw_parts(place.cast::<u8>(), bytes) };
    Ok(Factor::Host(problem.scale.read(bytes)[0]))
}

impl Operands {
    fn add_all(
        &mut self,
        problem: &Problem,
        at: Addresses,
        (alpha, beta): (Factor, Factor),
    ) -> Result<Places> {
        let count = problem.count;
        let a = self.add_matrix(Operand::read(), &problem.a, at.a, count)?;
        let b = self.add_matrix(Operand::read(), &problem.b, at.b, count)?;
        let reads_c = !matches!(beta, Factor::Host(beta) if beta == 0.0);
        // In place, the result is the addend.
        let is_in_place = at.c == at.d && problem.c == problem.d;
        if reads_c && at.c == at.d && !is_in_place {
            return Err(UNSUPPORTED);
        }
        let c = match reads_c && !is_in_place {
            true => Some(self.add_matrix(Operand::read(), &problem.c, at.c, count)?),
            false => None,
        };
        let access = if reads_c && is_in_place {
            Operand::read_write()
        } else {
            Operand::write()
        };
        let d = self.add_matrix(access, &problem.d, at.d, count)?;
        let scale = |operands: &mut Self, address: u64| {
            (address != 0).then(|| operands.add_number(Operand::read(), address, 4))
        };
        Ok(Places {
            a,
            b,
            c: c.or((reads_c && is_in_place).then_some(d)),
            d,
            alpha,
            beta,
            bias: self.add_bias(problem)?,
            auxiliary: self.add_auxiliary(problem)?,
            scales: problem.scales.map(|address| scale(self, address)),
            amax: (problem.amax != 0).then(|| self.add_number(Operand::write(), problem.amax, 4)),
        })
    }

    fn add_bias(&mut self, problem: &Problem) -> Result<Option<usize>> {
        let (epilogue, (m, n, _), bias) = (problem.epilogue, problem.sizes, problem.bias);
        let (operand, len) = match epilogue {
            _ if epilogue.adds_bias() => (Operand::read(), m),
            _ if epilogue.sums_result() || epilogue.sums_a() => (Operand::write(), m),
            _ if epilogue.sums_b() => (Operand::write(), n),
            _ => return Ok(None),
        };
        if bias.address == 0 {
            return Err(INVALID);
        }
        let bytes = bias.element.bytes();
        let operand = (0..problem.count).fold(operand, |operand, number| {
            let start = bias
                .address
                .wrapping_add_signed(number as i64 * bias.stride * bytes as i64);
            operand.with_run(start, len * bytes)
        });
        Ok(Some(self.add(operand)))
    }

    fn add_auxiliary(&mut self, problem: &Problem) -> Result<Option<usize>> {
        let (epilogue, (m, n, _), auxiliary) = (problem.epilogue, problem.sizes, problem.auxiliary);
        if !epilogue.has_auxiliary() {
            return Ok(None);
        }
        if auxiliary.address == 0 {
            return Err(INVALID);
        }
        let operand = if epilogue.reads_auxiliary() {
            Operand::read()
        } else {
            Operand::write()
        };
        let bits = if epilogue.uses_mask() {
            1
        } else {
            8 * auxiliary.element.bytes()
        };
        let operand = (0..problem.count * n).fold(operand, |operand, index| {
            let (number, column) = ((index / n) as i64, (index % n) as i64);
            let elements = number * auxiliary.stride + column * auxiliary.leading as i64;
            let start = auxiliary
                .address
                .wrapping_add_signed(elements * bits as i64 / 8);
            operand.with_run(start, (m * bits).div_ceil(8))
        });
        Ok(Some(self.add(operand)))
    }
}

/// Computes all products.
fn run(problem: &Problem, algorithm: Algorithm, places: &Places, memory: &mut [Vec<u8>]) {
    let (m, n, k) = problem.sizes;
    let number = |factor: Factor| match factor {
        Factor::Host(value) => value,
        Factor::Device(index) => problem.scale.read(&memory[index])[0],
    };
    let scale = |index: usize| {
        places.scales[index].map_or(1.0, |place| Element::F32.read(&memory[place])[0])
    };
    let (alpha, beta) = (
        number(places.alpha) * scale(0) * scale(1),
        number(places.beta) * scale(2),
    );
    let (of_d, mut amax) = (scale(3), 0.0_f64);
    for index in 0..problem.count {
        let part = |place: usize, len: usize, element: Element| {
            let bytes = len * element.bytes();
            element.read(&memory[place][index * bytes..(index + 1) * bytes])
        };
        let a = rounded(problem, part(places.a, m * k, problem.a.element));
        let b = rounded(problem, part(places.b, k * n, problem.b.element));
        let mut result = product(problem, algorithm, &a, &b);
        result.iter_mut().for_each(|value| *value *= alpha);
        if let Some(c) = places.c.filter(|_| beta != 0.0) {
            let c = part(c, m * n, problem.c.element);
            result
                .iter_mut()
                .zip(c)
                .for_each(|(value, c)| *value += beta * c);
        }
        finish(problem, places, memory, index, (&a, &b), &mut result);
        amax = result
            .iter()
            .fold(amax, |amax, value| amax.max(value.abs()));
        result.iter_mut().for_each(|value| *value *= of_d);
        let bytes = m * n * problem.d.element.bytes();
        memory[places.d][index * bytes..(index + 1) * bytes]
            .copy_from_slice(&problem.d.element.write(&result));
    }
    if let Some(place) = places.amax {
        memory[place] = Element::F32.write(&[amax]);
    }
}

/// Applies the epilogue to one product.
fn finish(
    problem: &Problem,
    places: &Places,
    memory: &mut [Vec<u8>],
    index: usize,
    (a, b): (&[f64], &[f64]),
    result: &mut [f64],
) {
    let (epilogue, (m, n, k)) = (problem.epilogue, problem.sizes);
    if let (true, Some(place)) = (epilogue.adds_bias(), places.bias) {
        let bytes = m * problem.bias.element.bytes();
        let bias = problem
            .bias
            .element
            .read(&memory[place][index * bytes..(index + 1) * bytes]);
        result
            .iter_mut()
            .enumerate()
            .for_each(|(at, value)| *value += bias[at % m]);
    }
    if let Some(place) = places.auxiliary {
        let len = memory[place].len() / problem.count;
        let bytes = &mut memory[place][index * len..(index + 1) * len];
        if epilogue.reads_auxiliary() {
            let inputs = inputs(problem, bytes);
            result
                .iter_mut()
                .zip(inputs)
                .for_each(|(value, input)| *value = epilogue.differentiate(*value, input));
        } else {
            bytes.copy_from_slice(&auxiliary(problem, result));
        }
    }
    result
        .iter_mut()
        .for_each(|value| *value = epilogue.activate(*value));
    let at_a = |row: usize, inner: usize| {
        if problem.is_a_transposed {
            a[row * k + inner]
        } else {
            a[inner * m + row]
        }
    };
    let at_b = |inner: usize, column: usize| {
        if problem.is_b_transposed {
            b[inner * n + column]
        } else {
            b[column * k + inner]
        }
    };
    let sums: Vec<f64> = if epilogue.sums_result() {
        (0..m)
            .map(|row| (0..n).map(|column| result[column * m + row]).sum())
            .collect()
    } else if epilogue.sums_a() {
        (0..m)
            .map(|row| (0..k).map(|inner| at_a(row, inner)).sum())
            .collect()
    } else if epilogue.sums_b() {
        (0..n)
            .map(|column| (0..k).map(|inner| at_b(inner, column)).sum())
            .collect()
    } else {
        return;
    };
    if let Some(place) = places.bias {
        let bytes = problem.bias.element.write(&sums);
        memory[place][index * bytes.len()..(index + 1) * bytes.len()].copy_from_slice(&bytes);
    }
}

/// Returns the stored inputs of the activation, or the ones and zeros of the mask.
fn inputs(problem: &Problem, bytes: &[u8]) -> Vec<f64> {
    if !problem.epilogue.uses_mask() {
        return problem.auxiliary.element.read(bytes);
    }
    let (m, n, _) = problem.sizes;
    let column = m.div_ceil(8);
    let bit = |at: usize| bytes[at / m * column + at % m / 8] >> (at % m % 8) & 1;
    (0..m * n).map(|at| f64::from(bit(at))).collect()
}

/// Returns the inputs of the activation, or the mask of those that are positive.
fn auxiliary(problem: &Problem, result: &[f64]) -> Vec<u8> {
    if !problem.epilogue.uses_mask() {
        return problem.auxiliary.element.write(result);
    }
    let (m, n, _) = problem.sizes;
    let column = m.div_ceil(8);
    let mut bytes = vec![0; column * n];
    for (at, _) in result.iter().enumerate().filter(|(_, value)| **value > 0.0) {
        bytes[at / m * column + at % m / 8] |= 1 << (at % m % 8);
    }
    bytes
}

/// Rounds factors as the arithmetic does.
fn rounded(problem: &Problem, mut values: Vec<f64>) -> Vec<f64> {
    let round: fn(f64) -> f64 = match problem.compute {
        Compute::CUBLAS_COMPUTE_32F_FAST_TF32 => tf32,
        Compute::CUBLAS_COMPUTE_32F_FAST_16F => |value| f16::from_f64(value).to_f64(),
        Compute::CUBLAS_COMPUTE_32F_FAST_16BF => |value| bf16::from_f64(value).to_f64(),
        _ => return values,
    };
    values.iter_mut().for_each(|value| *value = round(*value));
    values
}

/// Rounds a number to the 10 bits of fraction of TF32.
fn tf32(value: f64) -> f64 {
    let bits = (value as f32).to_bits();
    let half = 0x0fff + (bits >> 13 & 1);
    if value.is_finite() {
        f64::from(f32::from_bits(bits.wrapping_add(half) & !0x1fff))
    } else {
        value
    }
}

/// Returns the product of the factors.
fn product(problem: &Problem, algorithm: Algorithm, a: &[f64], b: &[f64]) -> Vec<f64> {
    let (m, n, k) = problem.sizes;
    let mut result = vec![0.0; m * n];
    match algorithm {
        Algorithm::Blocked => add_product(problem, a, b, 0..k, &mut result),
        Algorithm::SplitInner => {
            add_product(problem, a, b, 0..k / 2, &mut result);
            add_product(problem, a, b, k / 2..k, &mut result);
        }
        Algorithm::Elementwise => {
            let steps = strides(problem);
            for (at, value) in result.iter_mut().enumerate() {
                let (row, column) = (at % m, at / m);
                let term = |inner: usize| {
                    a[row * steps.0.0 + inner * steps.0.1]
                        * b[inner * steps.1.0 + column * steps.1.1]
                };
                *value = (0..k).map(term).sum();
            }
        }
    }
    result
}

/// Adds the product of a range of the inner dimension.
fn add_product(problem: &Problem, a: &[f64], b: &[f64], range: Range<usize>, result: &mut [f64]) {
    let (m, n, k) = problem.sizes;
    assert!(
        a.len() == m * k && b.len() == k * n && result.len() == m * n && range.end <= k,
        "the sizes agree"
    );
    let (of_a, of_b) = strides(problem);
    if range.is_empty() {
        return;
    }
    let (a, b) = (
        a[range.start * of_a.1..].as_ptr(),
        b[range.start * of_b.0..].as_ptr(),
    );
    let [row_a, column_a, row_b, column_b, m_step] =
        [of_a.0, of_a.1, of_b.0, of_b.1, m].map(|step| step as isize);
    // SAFETY: the matrices have these sizes and distances, and the result is apart from them.
    unsafe {
        dgemm(
            m,
            range.len(),
            n,
            1.0,
            a,
            row_a,
            column_a,
            b,
            row_b,
            column_b,
            1.0,
            result.as_mut_ptr(),
            1,
            m_step,
        );
    }
}

/// Returns the distances of rows and of columns of both factors.
fn strides(problem: &Problem) -> ((usize, usize), (usize, usize)) {
    let (m, n, k) = problem.sizes;
    let a = if problem.is_a_transposed {
        (k, 1)
    } else {
        (1, m)
    };
    let b = if problem.is_b_transposed {
        (n, 1)
    } else {
        (1, k)
    };
    (a, b)
}
