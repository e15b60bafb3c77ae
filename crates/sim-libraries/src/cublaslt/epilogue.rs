//! The operation on a product before it is stored.

use curium_sys::cublas::cublasLtEpilogue_t as Raw;

use super::{Result, UNSUPPORTED};

/// The operation on a product before it is stored, by the bits of its number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Epilogue(u32);

const RELU: u32 = Raw::CUBLASLT_EPILOGUE_RELU.0;
const BIAS: u32 = Raw::CUBLASLT_EPILOGUE_BIAS.0;
const GELU: u32 = Raw::CUBLASLT_EPILOGUE_GELU.0;
const AUXILIARY: u32 = Raw::CUBLASLT_EPILOGUE_RELU_AUX.0 & !RELU;
const RELU_GRADIENT: u32 = Raw::CUBLASLT_EPILOGUE_DRELU.0 & !AUXILIARY;
const GELU_GRADIENT: u32 = Raw::CUBLASLT_EPILOGUE_DGELU.0 & !AUXILIARY;
const BIAS_GRADIENT: u32 = Raw::CUBLASLT_EPILOGUE_DRELU_BGRAD.0 & !Raw::CUBLASLT_EPILOGUE_DRELU.0;

impl Epilogue {
    pub(super) fn from_raw(raw: u32) -> Result<Self> {
        let supported = [
            Raw::CUBLASLT_EPILOGUE_DEFAULT,
            Raw::CUBLASLT_EPILOGUE_RELU,
            Raw::CUBLASLT_EPILOGUE_RELU_AUX,
            Raw::CUBLASLT_EPILOGUE_BIAS,
            Raw::CUBLASLT_EPILOGUE_RELU_BIAS,
            Raw::CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
            Raw::CUBLASLT_EPILOGUE_DRELU,
            Raw::CUBLASLT_EPILOGUE_DRELU_BGRAD,
            Raw::CUBLASLT_EPILOGUE_GELU,
            Raw::CUBLASLT_EPILOGUE_GELU_AUX,
            Raw::CUBLASLT_EPILOGUE_GELU_BIAS,
            Raw::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
            Raw::CUBLASLT_EPILOGUE_DGELU,
            Raw::CUBLASLT_EPILOGUE_DGELU_BGRAD,
            Raw::CUBLASLT_EPILOGUE_BGRADA,
            Raw::CUBLASLT_EPILOGUE_BGRADB,
        ];
        if supported.contains(&Raw(raw)) {
            Ok(Self(raw))
        } else {
            Err(UNSUPPORTED)
        }
    }

    pub(super) fn raw(self) -> u32 {
        self.0
    }

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    pub(super) fn adds_bias(self) -> bool {
        self.has(BIAS)
    }

    pub(super) fn has_auxiliary(self) -> bool {
        self.has(AUXILIARY)
    }

    /// Returns `true` if the auxiliary memory has one bit for each element.
    pub(super) fn uses_mask(self) -> bool {
        self.has_auxiliary() && self.has(RELU | RELU_GRADIENT)
    }

    pub(super) fn reads_auxiliary(self) -> bool {
        self.has(RELU_GRADIENT | GELU_GRADIENT)
    }

    /// Returns `true` if sums of the rows of the result are stored.
    pub(super) fn sums_result(self) -> bool {
        self.has(BIAS_GRADIENT)
    }

    /// Returns `true` if sums of the rows of `a` are stored.
    pub(super) fn sums_a(self) -> bool {
        self.has(Raw::CUBLASLT_EPILOGUE_BGRADA.0)
    }

    /// Returns `true` if sums of the columns of `b` are stored.
    pub(super) fn sums_b(self) -> bool {
        self.has(Raw::CUBLASLT_EPILOGUE_BGRADB.0)
    }

    /// Applies the activation.
    pub(super) fn activate(self, value: f64) -> f64 {
        if self.has(RELU) {
            value.max(0.0)
        } else if self.has(GELU) {
            gelu(value)
        } else {
            value
        }
    }

    /// Applies the derivative of the activation at `input`, which is 1 or 0 from a mask.
    pub(super) fn differentiate(self, value: f64, input: f64) -> f64 {
        if self.has(RELU_GRADIENT) {
            value * input
        } else {
            value * gelu_derivative(input)
        }
    }
}

/// The square root of 2 / π.
const ROOT: f64 = 0.797_884_560_802_865_4;
const CUBIC: f64 = 0.044_715;

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (ROOT * (x + CUBIC * x * x * x)).tanh())
}

fn gelu_derivative(x: f64) -> f64 {
    let tanh = (ROOT * (x + CUBIC * x * x * x)).tanh();
    0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * ROOT * (1.0 + 3.0 * CUBIC * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_derivative_is_the_difference_limit() {
        for x in [-3.0, -1.0, -0.1, 0.0, 0.5, 2.0] {
            let difference = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
            assert!(
                (difference - gelu_derivative(x)).abs() < 1e-8,
                "{x}: {difference}"
            );
        }
    }
}
