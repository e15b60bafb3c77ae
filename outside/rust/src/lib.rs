//! The input of all programs: small integers, so that every result is exact in any order.

/// Elements of the vectors.
pub const COUNT: usize = 10_000;
/// Rows and columns of the matrices.
pub const SIZE: usize = 64;

/// Whole numbers below `modulus`, again and again.
pub fn numbers(count: usize, modulus: usize) -> Vec<f32> {
    (0..count).map(|index| (index % modulus) as f32).collect()
}

/// The PTX of the kernels: the file that the first argument names.
pub fn ptx() -> String {
    let path = std::env::args()
        .nth(1)
        .expect("the first argument is the path of the PTX");
    std::fs::read_to_string(path).expect("failed to read the PTX")
}

/// Panics unless the three results are right.
pub fn check(added: &[f32], total: f32, product: &[f32]) {
    let x = numbers(COUNT, 17);
    let y = numbers(COUNT, 5);
    assert!(
        added
            .iter()
            .zip(&x)
            .zip(&y)
            .all(|((sum, x), y)| *sum == x + y)
            && added.len() == COUNT,
        "{added:?}"
    );
    assert_eq!(total, x.iter().sum::<f32>());
    let a = numbers(SIZE * SIZE, 7);
    let b = numbers(SIZE * SIZE, 3);
    for (index, element) in product.iter().enumerate() {
        let row = index / SIZE;
        let column = index % SIZE;
        let expected: f32 = (0..SIZE)
            .map(|k| a[row * SIZE + k] * b[k * SIZE + column])
            .sum();
        assert_eq!(*element, expected, "row {row}, column {column}");
    }
    println!("add, sum, multiply: right");
}
