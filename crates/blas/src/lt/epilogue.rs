//! The operation on a product before it is stored.

use crate::sys::cublasLtEpilogue_t;

/// Declares the epilogues with their numbers in the library.
macro_rules! epilogues {
    (
        $(#[$enum_attribute:meta])*
        pub enum Epilogue {
            $($(#[$attribute:meta])* $variant:ident = $raw:ident,)*
        }
    ) => {
        $(#[$enum_attribute])*
        pub enum Epilogue {
            $($(#[$attribute])* $variant,)*
        }

        impl Epilogue {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),*];

            /// Converts to the library's type.
            #[must_use]
            pub const fn to_raw(self) -> cublasLtEpilogue_t {
                match self {
                    $(Self::$variant => cublasLtEpilogue_t::$raw,)*
                }
            }

            /// Converts from the library's type; `None` for one that this crate does not use.
            #[must_use]
            pub const fn from_raw(raw: cublasLtEpilogue_t) -> Option<Self> {
                match raw {
                    $(cublasLtEpilogue_t::$raw => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

epilogues! {
    /// The operation on a product before it is stored.
    ///
    /// A bias has one element for each column of a result stored by rows, such as the output of a
    /// layer whose rows are samples, and one for each row of a result stored by columns. It is
    /// added before the activation.
    ///
    /// GELU is the approximation with the hyperbolic tangent.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    #[non_exhaustive]
    pub enum Epilogue {
        /// Nothing.
        #[default]
        None = CUBLASLT_EPILOGUE_DEFAULT,
        /// Adds the bias.
        Bias = CUBLASLT_EPILOGUE_BIAS,
        /// Applies ReLU: replaces negative numbers by 0.
        Relu = CUBLASLT_EPILOGUE_RELU,
        /// Applies ReLU and stores the mask of positive numbers.
        ReluAuxiliary = CUBLASLT_EPILOGUE_RELU_AUX,
        /// Adds the bias and applies ReLU.
        ReluBias = CUBLASLT_EPILOGUE_RELU_BIAS,
        /// Adds the bias, applies ReLU and stores the mask of positive numbers.
        ReluAuxiliaryBias = CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
        /// Applies GELU.
        Gelu = CUBLASLT_EPILOGUE_GELU,
        /// Applies GELU and stores its input.
        GeluAuxiliary = CUBLASLT_EPILOGUE_GELU_AUX,
        /// Adds the bias and applies GELU.
        GeluBias = CUBLASLT_EPILOGUE_GELU_BIAS,
        /// Adds the bias, applies GELU and stores its input.
        GeluAuxiliaryBias = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        /// Multiplies by the derivative of ReLU: keeps the elements in the mask.
        ReluGradient = CUBLASLT_EPILOGUE_DRELU,
        /// Multiplies by the derivative of ReLU and stores the gradient of the bias.
        ReluBiasGradient = CUBLASLT_EPILOGUE_DRELU_BGRAD,
        /// Multiplies by the derivative of GELU at the stored input of the activation.
        GeluGradient = CUBLASLT_EPILOGUE_DGELU,
        /// Multiplies by the derivative of GELU and stores the gradient of the bias.
        GeluBiasGradient = CUBLASLT_EPILOGUE_DGELU_BGRAD,
        /// Stores the sums of the rows of `a`, one for each row of the result.
        BiasGradientA = CUBLASLT_EPILOGUE_BGRADA,
        /// Stores the sums of the columns of `b`, one for each column of the result.
        BiasGradientB = CUBLASLT_EPILOGUE_BGRADB,
    }
}

/// The access to memory by an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The contents of the auxiliary memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AuxiliaryContent {
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
    /// Returns the epilogue of the transposed product, whose factors are exchanged.
    pub(super) const fn transposed(self) -> Self {
        match self {
            Self::BiasGradientA => Self::BiasGradientB,
            Self::BiasGradientB => Self::BiasGradientA,
            other => other,
        }
    }

    /// Returns the access and the length of the epilogue's bias, for a result stored by columns.
    pub(super) const fn bias(self) -> Option<(Access, BiasLength)> {
        match self {
            Self::Bias
            | Self::ReluBias
            | Self::ReluAuxiliaryBias
            | Self::GeluBias
            | Self::GeluAuxiliaryBias => Some((Access::Read, BiasLength::PerRow)),
            Self::ReluBiasGradient | Self::GeluBiasGradient | Self::BiasGradientA => {
                Some((Access::Write, BiasLength::PerRow))
            }
            Self::BiasGradientB => Some((Access::Write, BiasLength::PerColumn)),
            _ => None,
        }
    }

    /// Returns the auxiliary memory that the epilogue uses.
    pub(super) const fn auxiliary(self) -> Option<(Access, AuxiliaryContent)> {
        match self {
            Self::ReluAuxiliary | Self::ReluAuxiliaryBias => {
                Some((Access::Write, AuxiliaryContent::Mask))
            }
            Self::GeluAuxiliary | Self::GeluAuxiliaryBias => {
                Some((Access::Write, AuxiliaryContent::Input))
            }
            Self::ReluGradient | Self::ReluBiasGradient => {
                Some((Access::Read, AuxiliaryContent::Mask))
            }
            Self::GeluGradient | Self::GeluBiasGradient => {
                Some((Access::Read, AuxiliaryContent::Input))
            }
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
            assert_eq!(Epilogue::from_raw(epilogue.to_raw()), Some(*epilogue));
        }
        assert_eq!(Epilogue::from_raw(cublasLtEpilogue_t(0)), None);
    }

    /// The factors of a transposed product change places.
    #[test]
    fn transposition_exchanges_bias_gradients() {
        assert_eq!(
            Epilogue::BiasGradientA.transposed(),
            Epilogue::BiasGradientB
        );
        assert_eq!(
            Epilogue::BiasGradientB.transposed(),
            Epilogue::BiasGradientA
        );
        assert_eq!(Epilogue::ReluBias.transposed(), Epilogue::ReluBias);
    }
}
