//! Special registers.

/// Defines the registers from rows of the variant, the name, the width in bits, and the
/// requirement, if any.
macro_rules! special_registers {
    ($($variant:ident $text:literal $bits:literal $($requirement:literal)?,)*) => {
        /// A read-only register whose value the hardware provides.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub(crate) enum SpecialRegister {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
            /// `%envreg0` to `%envreg31`
            Environment(u8),
            /// `%pm0` to `%pm7`
            PerformanceCounter(u8),
            /// `%pm0_64` to `%pm7_64`
            PerformanceCounter64(u8),
            /// `%reserved_smem_offset_0`, `%reserved_smem_offset_1`
            ReservedSharedOffset(u8),
        }

        impl SpecialRegister {
            /// The registers with a minimum ISA version or architecture: variant, name,
            /// requirement.
            pub(crate) const REQUIREMENTS: &[(Self, &str, &str)] = &[$($((Self::$variant, $text, $requirement),)?)*];

            /// Returns the width in bits; 1 for a predicate.
            #[must_use]
            pub(crate) const fn bits(self) -> u32 {
                match self {
                    $(Self::$variant => $bits,)*
                    Self::PerformanceCounter64(_) => 64,
                    Self::Environment(_) | Self::PerformanceCounter(_) | Self::ReservedSharedOffset(_) => 32,
                }
            }

            /// Returns the register spelled `text`, with its component if it has one.
            #[must_use]
            pub(crate) fn from_name(text: &str) -> Option<Self> {
                Some(match text {
                    $($text => Self::$variant,)*
                    _ => return Self::from_indexed_name(text),
                })
            }
        }
    };
}

special_registers! {
    TidX "%tid.x" 32, TidY "%tid.y" 32, TidZ "%tid.z" 32, NtidX "%ntid.x" 32, NtidY "%ntid.y" 32,
    NtidZ "%ntid.z" 32, CtaidX "%ctaid.x" 32, CtaidY "%ctaid.y" 32, CtaidZ "%ctaid.z" 32,
    NctaidX "%nctaid.x" 32, NctaidY "%nctaid.y" 32, NctaidZ "%nctaid.z" 32,
    ClusteridX "%clusterid.x" 32 "7.8 sm_90",
    ClusteridY "%clusterid.y" 32 "7.8 sm_90",
    ClusteridZ "%clusterid.z" 32 "7.8 sm_90",
    NclusteridX "%nclusterid.x" 32 "7.8 sm_90",
    NclusteridY "%nclusterid.y" 32 "7.8 sm_90",
    NclusteridZ "%nclusterid.z" 32 "7.8 sm_90",
    ClusterCtaidX "%cluster_ctaid.x" 32 "7.8 sm_90",
    ClusterCtaidY "%cluster_ctaid.y" 32 "7.8 sm_90",
    ClusterCtaidZ "%cluster_ctaid.z" 32 "7.8 sm_90",
    ClusterNctaidX "%cluster_nctaid.x" 32 "7.8 sm_90",
    ClusterNctaidY "%cluster_nctaid.y" 32 "7.8 sm_90",
    ClusterNctaidZ "%cluster_nctaid.z" 32 "7.8 sm_90",
    ClusterCtarank "%cluster_ctarank" 32 "7.8 sm_90",
    ClusterNctarank "%cluster_nctarank" 32 "7.8 sm_90",
    IsExplicitCluster "%is_explicit_cluster" 1 "7.8 sm_90",
    Laneid "%laneid" 32, Warpid "%warpid" 32, Nwarpid "%nwarpid" 32, Smid "%smid" 32, Nsmid "%nsmid" 32,
    Gridid "%gridid" 64, LanemaskEq "%lanemask_eq" 32, LanemaskLe "%lanemask_le" 32,
    LanemaskLt "%lanemask_lt" 32, LanemaskGe "%lanemask_ge" 32, LanemaskGt "%lanemask_gt" 32,
    Clock "%clock" 32,
    ClockHi "%clock_hi" 32 "5.0",
    Clock64 "%clock64" 64, Globaltimer "%globaltimer" 64, GlobaltimerLo "%globaltimer_lo" 32,
    GlobaltimerHi "%globaltimer_hi" 32, TotalSmemSize "%total_smem_size" 32,
    DynamicSmemSize "%dynamic_smem_size" 32,
    AggrSmemSize "%aggr_smem_size" 32 "8.1 sm_90",
    ReservedSmemOffsetBegin "%reserved_smem_offset_begin" 32 "7.6 sm_80",
    ReservedSmemOffsetEnd "%reserved_smem_offset_end" 32 "7.6 sm_80",
    ReservedSmemOffsetCap "%reserved_smem_offset_cap" 32,
    CurrentGraphExec "%current_graph_exec" 64 "8.0 sm_50",
}

impl SpecialRegister {
    fn from_indexed_name(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("%envreg") {
            return parse_index(digits, 32).map(Self::Environment);
        }
        if let Some(digits) = text.strip_prefix("%reserved_smem_offset_") {
            return parse_index(digits, 2).map(Self::ReservedSharedOffset);
        }
        let digits = text.strip_prefix("%pm")?;
        match digits.strip_suffix("_64") {
            Some(digits) => parse_index(digits, 8).map(Self::PerformanceCounter64),
            None => parse_index(digits, 8).map(Self::PerformanceCounter),
        }
    }
}

/// Parses the index of a register: a number below `count` without leading zeros.
fn parse_index(digits: &str, count: u8) -> Option<u8> {
    if digits.len() > 1 && digits.starts_with(['0', '+']) {
        return None;
    }
    digits.parse().ok().filter(|index| *index < count)
}

#[cfg(test)]
mod tests {
    use super::SpecialRegister;

    #[test]
    fn indexed_registers_have_limits() {
        assert_eq!(
            SpecialRegister::from_name("%envreg31"),
            Some(SpecialRegister::Environment(31))
        );
        assert_eq!(SpecialRegister::from_name("%envreg32"), None);
        assert_eq!(SpecialRegister::from_name("%envreg01"), None);
        assert_eq!(
            SpecialRegister::from_name("%pm7_64"),
            Some(SpecialRegister::PerformanceCounter64(7))
        );
        assert_eq!(SpecialRegister::from_name("%pm8"), None);
        assert_eq!(SpecialRegister::from_name("%tid"), None);
    }
}
