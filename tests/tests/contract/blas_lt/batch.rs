//! Batches of products.

use curium_blas::MatrixLayout;
use curium_blas::lt::{Epilogue, Matmul, Operands, TypedLayout};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::value::{Random, host_copy};
use super::{execute, lt, plan};

/// A batch computes the product of each pair of matrices.
#[driver_test]
fn batch_multiplies_each_pair(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(61);
    let m = 16;
    let n = 8;
    let k = 40;
    let count = 3;
    for _ in 0..4 {
        let layouts = (
            random.layout(m, k, 4),
            random.layout(k, n, 4),
            random.layout(m, n, 4),
        );
        let span = |layout: MatrixLayout| -> TestResult<_> {
            Ok(layout
                .span()
                .ok_or("the layout is too large")?
                .next_multiple_of(64))
        };
        let strides = (span(layouts.0)?, span(layouts.1)?, span(layouts.2)? + 64);
        let of_a: Vec<f32> = random.numbers(strides.0 * count);
        let of_b: Vec<f32> = random.numbers(strides.1);
        let a = DeviceBuffer::from_slice(&stream, &of_a);
        let b = DeviceBuffer::from_slice(&stream, &of_b);
        let a = a?;
        let b = b?;
        let mut d = DeviceBuffer::filled(&stream, strides.2 * count, 7.0_f32)?;
        let matmul = Matmul::new(
            TypedLayout::new::<f32>(layouts.0).with_stride(strides.0),
            // Each product has the same right factor.
            TypedLayout::new::<f32>(layouts.1),
            TypedLayout::new::<f32>(layouts.2).with_stride(strides.2),
        )
        .with_batches(count)
        .with_epilogue(Epilogue::Relu);
        execute(
            &mut plan(&lt, &matmul),
            &stream,
            Operands::new(&a, &b, &mut d),
        );
        let actual = d.to_vec()?;
        for index in 0..count {
            let left = host_copy(&of_a[index * strides.0..], layouts.0);
            let right = host_copy(&of_b, layouts.1);
            let expected = left.times(&right).map(|_, _, value| value.max(0.0));
            host_copy(&actual[index * strides.2..], layouts.2)
                .assert_is::<f32>(&expected, 1e-4, "a batch");
            let gap = &actual[index * strides.2 + span(layouts.2)?..(index + 1) * strides.2];
            assert!(
                gap.iter().all(|value| *value == 7.0),
                "memory between the results is not written"
            );
        }
    }
    Ok(())
}

/// Results of a batch may be adjacent in the same rows.
#[driver_test]
fn batch_results_may_share_rows(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(62);
    let m = 16;
    let n = 8;
    let k = 24;
    let count = 3;
    // Each row has 8 unused elements after those of each product.
    let stride = n + 8;
    let leading = 3 * (n + 8);
    let of_a: Vec<f32> = random.numbers(m * k * count);
    let of_b: Vec<f32> = random.numbers(k * n * count);
    let a = DeviceBuffer::from_slice(&stream, &of_a)?;
    let b = DeviceBuffer::from_slice(&stream, &of_b)?;
    let mut d = DeviceBuffer::filled(&stream, m * leading, 7.0_f32)?;
    let factor_a = MatrixLayout::row_major(m, k);
    let factor_b = MatrixLayout::row_major(k, n);
    let result = MatrixLayout::row_major(m, n).with_leading_dimension(leading);
    let matmul = Matmul::new(
        TypedLayout::new::<f32>(factor_a).with_stride(m * k),
        TypedLayout::new::<f32>(factor_b).with_stride(k * n),
        TypedLayout::new::<f32>(result).with_stride(stride),
    );
    execute(
        &mut plan(&lt, &matmul.with_batches(count)),
        &stream,
        Operands::new(&a, &b, &mut d),
    );
    let actual = d.to_vec()?;
    for index in 0..count {
        let left = host_copy(&of_a[index * m * k..], factor_a);
        let expected = left.times(&host_copy(&of_b[index * k * n..], factor_b));
        host_copy(&actual[index * stride..], result).assert_is::<f32>(&expected, 1e-4, "a batch");
    }
    let is_between = |(at, _): &(usize, &f32)| at % stride >= n;
    assert!(
        actual
            .iter()
            .enumerate()
            .filter(is_between)
            .all(|(_, value)| *value == 7.0),
        "gaps are not written"
    );
    Ok(())
}
