//! The product.

use std::ffi::c_void;
use std::ops::Range;

use curium_sim::{LibraryOperation, Operand};
use curium_sys::cublas::lt::Api;
use curium_sys::cublas::{
    cublasComputeType_t as Compute, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatrixLayout_t, cublasStatus_t, cudaStream_t,
};
use half::{bf16, f16};
use matrixmultiply::dgemm;

use super::algorithm::{self, Algorithm};
use super::element::Element;
use super::handle::check_live;
use super::problem::{Matrix, Problem};
use super::{INVALID, Result, UNSUPPORTED, entry};

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
struct OperandIndices {
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
        let mut operand = operand;
        for number in 0..count {
            let start = address.wrapping_add_signed(number as i64 * matrix.stride * element as i64);
            for column in 0..matrix.columns {
                let offset = (column * matrix.leading * element) as u64;
                operand = operand.with_run(start + offset, matrix.rows * element);
            }
        }
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
    entry(|| {
        check_live(handle)?;
        let problem = Problem::new(operation, [layout_a, layout_b, layout_c, layout_d])?;
        let algorithm = match algorithm.is_null() {
            true => Algorithm::Blocked,
            // SAFETY: by the contract of the C function, `algorithm` is valid for reads.
            false => Algorithm::from_raw(unsafe { algorithm::read(algorithm) }?)?,
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
        // SAFETY: by the contract of the C function, the factor has the type of the operation, in
        // the memory that its pointer mode selects.
        let alpha = unsafe { factor(&problem, &mut operands, alpha) }?;
        // SAFETY: by the contract of the C function, the factor has the type of the operation, in
        // the memory that its pointer mode selects.
        let beta = unsafe { factor(&problem, &mut operands, beta) }?;
        let indices = operands.add_all(&problem, addresses, alpha, beta)?;
        let operation = LibraryOperation::new("cublasLtMatmul", operands.all, move |memory| {
            run(&problem, algorithm, &indices, memory);
        });
        // SAFETY: the caller of the library guarantees the operands, as those of a kernel.
        unsafe { operation.enqueue(stream.cast()) }
            .map_err(|_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED)
    })
}

/// Adds the function.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtMatmul = Some(matmul);
}

/// Reads a factor of the host, or adds one in device memory.
///
/// # Safety
///
/// In the pointer mode of the host, `pointer` is null or valid for reads of the type.
unsafe fn factor(
    problem: &Problem,
    operands: &mut Operands,
    pointer: *const c_void,
) -> Result<Factor> {
    let bytes = problem.scale.bytes();
    if pointer.is_null() {
        return Err(INVALID);
    }
    if problem.factors_are_on_device {
        return Ok(Factor::Device(operands.add_number(
            Operand::read(),
            pointer.addr() as u64,
            bytes,
        )));
    }
    // SAFETY: the caller guarantees the pointer.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), bytes) };
    Ok(Factor::Host(problem.scale.read(bytes)[0]))
}

impl Operands {
    fn add_all(
        &mut self,
        problem: &Problem,
        addresses: Addresses,
        alpha: Factor,
        beta: Factor,
    ) -> Result<OperandIndices> {
        let count = problem.count;
        let a = self.add_matrix(Operand::read(), &problem.a, addresses.a, count)?;
        let b = self.add_matrix(Operand::read(), &problem.b, addresses.b, count)?;
        let reads_c = !matches!(beta, Factor::Host(beta) if beta == 0.0);
        // In place, the result is the addend.
        let is_in_place = addresses.c == addresses.d && problem.c == problem.d;
        if reads_c && addresses.c == addresses.d && !is_in_place {
            return Err(UNSUPPORTED);
        }
        let c = match reads_c && !is_in_place {
            true => Some(self.add_matrix(Operand::read(), &problem.c, addresses.c, count)?),
            false => None,
        };
        let access = if reads_c && is_in_place {
            Operand::read_write()
        } else {
            Operand::write()
        };
        let d = self.add_matrix(access, &problem.d, addresses.d, count)?;
        Ok(OperandIndices {
            a,
            b,
            c: c.or((reads_c && is_in_place).then_some(d)),
            d,
            alpha,
            beta,
            bias: self.add_bias(problem)?,
            auxiliary: self.add_auxiliary(problem)?,
            scales: problem.scales.map(|address| {
                (address != 0).then(|| self.add_number(Operand::read(), address, 4))
            }),
            amax: (problem.amax != 0).then(|| self.add_number(Operand::write(), problem.amax, 4)),
        })
    }

    fn add_bias(&mut self, problem: &Problem) -> Result<Option<usize>> {
        let epilogue = problem.epilogue;
        let (m, n, _) = problem.sizes;
        let bias = problem.bias;
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
        let epilogue = problem.epilogue;
        let (m, n, _) = problem.sizes;
        let auxiliary = problem.auxiliary;
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
            let number = (index / n) as i64;
            let column = (index % n) as i64;
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
fn run(problem: &Problem, algorithm: Algorithm, indices: &OperandIndices, memory: &mut [Vec<u8>]) {
    let (m, n, k) = problem.sizes;
    let [scale_a, scale_b, scale_c, scale_d] = indices
        .scales
        .map(|scale| scale.map_or(1.0, |index| Element::F32.read(&memory[index])[0]));
    let alpha = indices.alpha.value(problem, memory) * scale_a * scale_b;
    let beta = indices.beta.value(problem, memory) * scale_c;
    let mut amax = 0.0_f64;
    for index in 0..problem.count {
        let a = matrix(&memory[indices.a], index, m * k, problem.a.element);
        let b = matrix(&memory[indices.b], index, k * n, problem.b.element);
        let a = rounded(problem, a);
        let b = rounded(problem, b);
        let mut result = product(problem, algorithm, &a, &b);
        for value in &mut result {
            *value *= alpha;
        }
        if let Some(c) = indices.c.filter(|_| beta != 0.0) {
            let c = matrix(&memory[c], index, m * n, problem.c.element);
            for (value, c) in result.iter_mut().zip(c) {
                *value += beta * c;
            }
        }
        finish(problem, indices, memory, index, &a, &b, &mut result);
        for value in &mut result {
            amax = amax.max(value.abs());
            *value *= scale_d;
        }
        let bytes = m * n * problem.d.element.bytes();
        memory[indices.d][index * bytes..(index + 1) * bytes]
            .copy_from_slice(&problem.d.element.write(&result));
    }
    if let Some(index) = indices.amax {
        memory[index] = Element::F32.write(&[amax]);
    }
}

impl Factor {
    fn value(self, problem: &Problem, memory: &[Vec<u8>]) -> f64 {
        match self {
            Self::Host(value) => value,
            Self::Device(index) => problem.scale.read(&memory[index])[0],
        }
    }
}

/// Returns one of the matrices of an operand, each of `len` elements.
fn matrix(bytes: &[u8], index: usize, len: usize, element: Element) -> Vec<f64> {
    let size = len * element.bytes();
    element.read(&bytes[index * size..(index + 1) * size])
}

/// Applies the epilogue to one product.
fn finish(
    problem: &Problem,
    indices: &OperandIndices,
    memory: &mut [Vec<u8>],
    index: usize,
    a: &[f64],
    b: &[f64],
    result: &mut [f64],
) {
    let epilogue = problem.epilogue;
    let (m, n, k) = problem.sizes;
    if epilogue.adds_bias()
        && let Some(bias) = indices.bias
    {
        let bias = matrix(&memory[bias], index, m, problem.bias.element);
        for column in result.chunks_mut(m) {
            for (value, bias) in column.iter_mut().zip(&bias) {
                *value += bias;
            }
        }
    }
    if let Some(operand) = indices.auxiliary {
        let len = memory[operand].len() / problem.count;
        let bytes = &mut memory[operand][index * len..(index + 1) * len];
        if epilogue.reads_auxiliary() {
            for (value, input) in result.iter_mut().zip(inputs(problem, bytes)) {
                *value = epilogue.differentiate(*value, input);
            }
        } else {
            bytes.copy_from_slice(&auxiliary(problem, result));
        }
    }
    for value in &mut *result {
        *value = epilogue.activate(*value);
    }
    let (strides_a, strides_b) = strides(problem);
    let sums: Vec<f64> = if epilogue.sums_result() {
        (0..m)
            .map(|row| (0..n).map(|column| result[column * m + row]).sum())
            .collect()
    } else if epilogue.sums_a() {
        (0..m)
            .map(|row| (0..k).map(|inner| a[strides_a.offset(row, inner)]).sum())
            .collect()
    } else if epilogue.sums_b() {
        (0..n)
            .map(|column| (0..k).map(|inner| b[strides_b.offset(inner, column)]).sum())
            .collect()
    } else {
        return;
    };
    if let Some(operand) = indices.bias {
        let bytes = problem.bias.element.write(&sums);
        memory[operand][index * bytes.len()..(index + 1) * bytes.len()].copy_from_slice(&bytes);
    }
}

/// Returns the stored inputs of the activation, or the ones and zeros of the mask.
fn inputs(problem: &Problem, bytes: &[u8]) -> Vec<f64> {
    if !problem.epilogue.uses_mask() {
        return problem.auxiliary.element.read(bytes);
    }
    let (m, n, _) = problem.sizes;
    let column = m.div_ceil(8);
    (0..m * n)
        .map(|index| {
            let row = index % m;
            f64::from(bytes[index / m * column + row / 8] >> (row % 8) & 1)
        })
        .collect()
}

/// Returns the inputs of the activation, or the mask of those that are positive.
fn auxiliary(problem: &Problem, result: &[f64]) -> Vec<u8> {
    if !problem.epilogue.uses_mask() {
        return problem.auxiliary.element.write(result);
    }
    let (m, n, _) = problem.sizes;
    let column = m.div_ceil(8);
    let mut bytes = vec![0; column * n];
    for (index, value) in result.iter().enumerate() {
        let row = index % m;
        if *value > 0.0 {
            bytes[index / m * column + row / 8] |= 1 << (row % 8);
        }
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
    for value in &mut values {
        *value = round(*value);
    }
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
            let (strides_a, strides_b) = strides(problem);
            for (index, value) in result.iter_mut().enumerate() {
                let row = index % m;
                let column = index / m;
                *value = (0..k)
                    .map(|inner| {
                        a[strides_a.offset(row, inner)] * b[strides_b.offset(inner, column)]
                    })
                    .sum();
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
    if range.is_empty() {
        return;
    }
    let (strides_a, strides_b) = strides(problem);
    let a = &a[strides_a.offset(0, range.start)..];
    let b = &b[strides_b.offset(range.start, 0)..];
    // SAFETY: the matrices have these sizes and strides, and the result does not overlap them.
    unsafe {
        dgemm(
            m,
            range.len(),
            n,
            1.0,
            a.as_ptr(),
            strides_a.row as isize,
            strides_a.column as isize,
            b.as_ptr(),
            strides_b.row as isize,
            strides_b.column as isize,
            1.0,
            result.as_mut_ptr(),
            1,
            m as isize,
        );
    }
}

/// The distances of rows and of columns of a factor in elements.
#[derive(Clone, Copy, Debug)]
struct Strides {
    row: usize,
    column: usize,
}

impl Strides {
    fn offset(self, row: usize, column: usize) -> usize {
        row * self.row + column * self.column
    }
}

/// Returns the strides of both factors.
fn strides(problem: &Problem) -> (Strides, Strides) {
    let (m, n, k) = problem.sizes;
    let a = if problem.is_a_transposed {
        Strides { row: k, column: 1 }
    } else {
        Strides { row: 1, column: m }
    };
    let b = if problem.is_b_transposed {
        Strides { row: n, column: 1 }
    } else {
        Strides { row: 1, column: k }
    };
    (a, b)
}
