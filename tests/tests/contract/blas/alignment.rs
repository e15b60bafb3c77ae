//! Complex numbers in memory that has the alignment of Rust's type and not that of C's are refused before the library is called.

use curium_blas::{
    Banded, Blas, Complex32, Complex64, DeviceScalar, Diagonal, Matrix, MatrixMut, Packed,
    PackedMut, Triangle, Vector, VectorMut,
};
use curium_memory::DeviceBuffer;
use curium_tests::on_driver;

use super::blas_on;
use super::hostile::assert_refused;

const ONE: Complex64 = Complex64::new(1.0, 0.0);

#[test]
fn misaligned_operands_of_each_kind_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas: Blas = blas_on(&stream);
        let bytes = DeviceBuffer::<u8>::zeroed(&stream, 9 * 16).expect("memory suffices");
        let odd = bytes
            .slice(8..)
            .expect("it is within")
            .cast::<f64>()
            .expect("it is aligned to 8 bytes");
        let odd = odd
            .slice(..16)
            .expect("it is within")
            .cast::<Complex64>()
            .expect("Rust's type is aligned");
        let mut other = DeviceBuffer::<u8>::zeroed(&stream, 9 * 16).expect("memory suffices");
        let mut odd_mut = other
            .slice_mut(8..8 + 128)
            .expect("it is within")
            .cast::<Complex64>()
            .expect("it is aligned");
        let even = DeviceBuffer::<Complex64>::zeroed(&stream, 8).expect("memory suffices");
        let mut result = DeviceBuffer::<Complex64>::zeroed(&stream, 4).expect("memory suffices");
        let parts = ["misaligned operand", "not a multiple of 16"];

        let (x, two) = (
            Vector::strided(&odd, 2, 1).expect("it fits"),
            Vector::strided(&even, 2, 1).expect("it fits"),
        );
        assert_refused(blas.nrm2(x), &parts);
        let y = &mut VectorMut::strided(&mut result, 2, 1).expect("it fits");
        assert_refused(blas.axpy(ONE, x, y), &["Blas::axpy", parts[0], parts[1]]);
        assert_refused(
            blas.axpy(DeviceScalar::new(&odd).expect("there is one"), two, y),
            &parts,
        );
        let a = Matrix::column_major(&odd, 2, 2).expect("it fits");
        assert_refused(blas.gemv(ONE, a, two, ONE, y), &parts);
        let band = Banded::column_major(&odd, 2, 2, 0, 1).expect("it fits");
        assert_refused(blas.gbmv(ONE, band, two, ONE, y), &parts);
        let packed = Packed::column_major(&odd, 2, Triangle::Upper).expect("it fits");
        assert_refused(blas.tpmv(Diagonal::Unit, packed, y), &parts);
        assert_refused(blas.scal(ONE, &mut VectorMut::new(&mut odd_mut)), &parts);
        let to = &mut PackedMut::column_major(&mut odd_mut, 2, Triangle::Upper).expect("it fits");
        assert_refused(blas.hpr(1.0, two, to), &parts);
        let c = &mut MatrixMut::column_major(&mut result, 2, 2).expect("it fits");
        assert_refused(
            blas.gemm_batched(ONE, &[a], &[a], ONE, std::slice::from_mut(c)),
            &parts,
        );
        let c = &mut MatrixMut::column_major(&mut odd_mut, 2, 2).expect("it fits");
        assert_refused(blas.ger(ONE, two, two, c), &parts);
    });
}

#[test]
fn alignment_is_that_of_the_element() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let memory =
            DeviceBuffer::from_slice(&stream, &[0.0_f32, 3.0, 4.0, 0.0]).expect("memory suffices");
        let pairs = memory.slice(1..3).expect("it is within");
        assert_eq!(
            blas.nrm2(Vector::new(&pairs))
                .expect("it is aligned for `f32`"),
            5.0
        );
        let complex = pairs.cast::<Complex32>().expect("Rust's type is aligned");
        assert_refused(
            blas.nrm2(Vector::new(&complex)),
            &["misaligned operand", "not a multiple of 8"],
        );
        let complex = memory
            .slice(2..4)
            .expect("it is within")
            .cast::<Complex32>()
            .expect("Rust's type is aligned");
        assert_eq!(
            blas.nrm2(Vector::new(&complex)).expect("it is aligned"),
            4.0
        );
    });
}
