//! Products of matrices as plans, with cuBLASLt.
//!
//! A [`Matmul`] describes a product: types, layouts, arithmetic, and an [`Epilogue`] such as a bias
//! with an activation. A [`MatmulPlan`] is a product with an algorithm of the library, which is
//! selected once. [`Tuner`] measures the algorithms and stores the fastest.
//!
//! Supported combinations of the types of `a` and `b`, of `d`, and the arithmetic:
//!
//! | `a` and `b` | `d` | [`Compute`] |
//! |---|---|---|
//! | `f64` | `f64` | `F64` |
//! | `f32` | `f32` | `F32`, `F32Pedantic`, `Tf32`, `F32FromBf16`, `F32FromF16` |
//! | `bf16` | `bf16`, `f32` | `F32`, `F32Pedantic` |
//! | `f16` | `f16`, `f32` | `F32`, `F32Pedantic` |
//! | `e4m3` and `e4m3` | `e4m3`, `bf16`, `f16`, `f32` | `F32` |
//! | `e4m3` and `e5m2`, or the other way round | `e4m3`, `e5m2`, `bf16`, `f16`, `f32` | `F32` |
//! | `i8` | `i32`, `i8` | `I32` |
//!
//! Products of 8-bit types have further requirements. The inner dimension, the number of
//! consecutive elements of the result, and leading dimensions are multiples of 16 (of 4 for `i8`).
//! `a` is stored by rows and `b` by columns, so that the elements that are multiplied with each
//! other are consecutive. Data center GPUs of compute capability 10 accept other orders of 8-bit
//! floats. 8-bit floats require compute capability 8.9.

mod algorithm;
mod compute;
mod descriptor;
mod element;
mod epilogue;
mod handle;
mod matmul;
mod operands;
mod plan;
mod role;
mod tuner;
mod typed_layout;

pub use curium_sys::cublas::lt::CuBlasLt;

pub use self::algorithm::Algorithm;
pub use self::compute::Compute;
pub use self::element::{ElementType, MatmulElement};
pub use self::epilogue::Epilogue;
pub use self::handle::BlasLt;
pub use self::matmul::{Matmul, Scales};
pub use self::operands::Operands;
pub use self::plan::{MatmulPlan, PlanOptions};
pub use self::tuner::{Measurement, TunedPlan, Tuner};
pub use self::typed_layout::TypedLayout;
