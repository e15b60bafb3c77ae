//! The operation on a product before it is stored.

use crate::sys::cublasLtEpilogue_t;

/// The operation on a product before it is stored.
///
/// A bias has one element for each column of a result stored by rows, such as the output of a layer whose rows are samples, and one for
/// each row of a result stored by columns. It is added before the activation.
///
/// GELU is the approximation with the hyperbolic tangent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Epilogue {
    /// Nothing.
    #[default]
    None,
    /// Adds the bias.
    Bias,
    /// Replaces negative numbers by 0.
    Relu,
    /// As `Relu`, and stores the mask of positive numbers.
    ReluAuxiliary,
    /// Adds the bias, then as `Relu`.
    ReluBias,
    /// Adds the bias, then as `ReluAuxiliary`.
    ReluAuxiliaryBias,
    /// Applies GELU.
    Gelu,
    /// As `Gelu`, and stores the input of the activation.
    GeluAuxiliary,
    /// Adds the bias, then as `Gelu`.
    GeluBias,
    /// Adds the bias, then as `GeluAuxiliary`.
    GeluAuxiliaryBias,
    /// Multiplies by the derivative of ReLU: keeps the elements in the mask.
    ReluGradient,
    /// As `ReluGradient`, and stores the gradient of the bias.
    ReluBiasGradient,
    /// Multiplies by the derivative of GELU at the stored input of the activation.
    GeluGradient,
    /// As `GeluGradient`, and stores the gradient of the bias.
    GeluBiasGradient,
    /// Stores the sums of the rows of `a`, one for each row of the result.
    BiasGradientA,
    /// Stores the sums of the columns of `b`, one for each column of the result.
    BiasGradientB,
}

/// The use of memory by an epilogue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    Read,
    Write,
}

/// The contents of the auxiliary memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Auxiliary {
    /// One bit for each element.
    Mask,
    /// Elements of the type of the result.
    Input,
}

/// The number of elements of a bias, in terms of the result as cuBLASLt stores it: by columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BiasLength {
    /// One element for each row.
    PerRow,
    /// One element for each column.
    PerColumn,
}

impl Epilogue {
    const ALL: [Self; 16] = [
        Self::None,
        Self::Bias,
        Self::Relu,
        Self::ReluAuxiliary,
        Self::ReluBias,
        Self::ReluAuxiliaryBias,
        Self::Gelu,
        Self::GeluAuxiliary,
        Self::GeluBias,
        Self::GeluAuxiliaryBias,
        Self::ReluGradient,
        Self::ReluBiasGradient,
        Self::GeluGradient,
        Self::GeluBiasGradient,
        Self::BiasGradientA,
        Self::BiasGradientB,
    ];

    /// Converts to the library's type.
    #[must_use]
    pub const fn to_raw(self) -> cublasLtEpilogue_t {
        match self {
            Self::None => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Self::Bias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Self::Relu => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU,
            Self::ReluAuxiliary => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_AUX,
            Self::ReluBias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_BIAS,
            Self::ReluAuxiliaryBias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
            Self::Gelu => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU,
            Self::GeluAuxiliary => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX,
            Self::GeluBias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_BIAS,
            Self::GeluAuxiliaryBias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
            Self::ReluGradient => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DRELU,
            Self::ReluBiasGradient => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DRELU_BGRAD,
            Self::GeluGradient => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DGELU,
            Self::GeluBiasGradient => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DGELU_BGRAD,
            Self::BiasGradientA => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BGRADA,
            Self::BiasGradientB => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BGRADB,
        }
    }

    /// Converts from the library's type; `None` for one that this crate does not use.
    #[must_use]
    pub fn from_raw(raw: cublasLtEpilogue_t) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|epilogue| epilogue.to_raw() == raw)
    }

    /// Returns the epilogue of the transposed product, whose factors are exchanged.
    pub(super) const fn transposed(self) -> Self {
        match self {
            Self::BiasGradientA => Self::BiasGradientB,
            Self::BiasGradientB => Self::BiasGradientA,
            other => other,
        }
    }

    /// Returns the use and the length of the epilogue's bias, for a result stored by columns.
    pub(super) const fn bias(self) -> Option<(Use, BiasLength)> {
        match self {
            Self::Bias
            | Self::ReluBias
            | Self::ReluAuxiliaryBias
            | Self::GeluBias
            | Self::GeluAuxiliaryBias => Some((Use::Read, BiasLength::PerRow)),
            Self::ReluBiasGradient | Self::GeluBiasGradient | Self::BiasGradientA => {
                Some((Use::Write, BiasLength::PerRow))
            }
            Self::BiasGradientB => Some((Use::Write, BiasLength::PerColumn)),
            _ => None,
        }
    }

    /// Returns the auxiliary memory that the epilogue uses.
    pub(super) const fn auxiliary(self) -> Option<(Use, Auxiliary)> {
        match self {
            Self::ReluAuxiliary | Self::ReluAuxiliaryBias => Some((Use::Write, Auxiliary::Mask)),
            Self::GeluAuxiliary | Self::GeluAuxiliaryBias => Some((Use::Write, Auxiliary::Input)),
            Self::ReluGradient | Self::ReluBiasGradient => Some((Use::Read, Auxiliary::Mask)),
            Self::GeluGradient | Self::GeluBiasGradient => Some((Use::Read, Auxiliary::Input)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epilogue_is_found_by_its_number() {
        for epilogue in Epilogue::ALL {
            assert_eq!(Epilogue::from_raw(epilogue.to_raw()), Some(epilogue));
            assert_eq!(epilogue.transposed().transposed(), epilogue);
        }
        assert_eq!(Epilogue::from_raw(cublasLtEpilogue_t(0)), None);
    }
}
