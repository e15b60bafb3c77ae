//! The figures of the hardware that simulated devices imitate.

use curium_sys::CUdevice_attribute;

use crate::config::DeviceModel;

/// The attributes of an H100 (80 GB, HBM3, driver 580), from attribute 1 on in the order of their numbers.
#[rustfmt::skip]
const H100: [i32; 147] = [
    1024, 1024, 1024, 64, 2_147_483_647, 65_535, 65_535,
    49_152, 65_536, 32, 2_147_483_647, 65_536, 1_980_000, 512,
    1, 132, 0, 0, 1, 0, 131_072,
    131_072, 65_536, 16_384, 16_384, 16_384, 32_768, 32_768,
    2048, 512, 1, 1, 0, 6, 0,
    2_619_000, 5120, 52_428_800, 2048, 3, 1, 32_768,
    2048, 1, 32_768, 32_768, 8192, 8192, 32_768,
    0, 32, 32_768, 32_768, 2046, 32_768, 131_072,
    65_536, 16_384, 16_384, 16_384, 32_768, 2048, 32_768,
    32_768, 2048, 32_768, 32_768, 2046, 268_435_456, 131_072,
    65_000, 2_097_120, 32_768, 32_768, 9, 0, 32_768,
    1, 1, 1, 233_472, 65_536, 1, 0,
    0, 0, 2, 0, 1, 1, 1,
    0, 0, 0, 1, 1, 232_448, 0,
    1, 0, 0, 1, 1, 0, 0,
    32, 1, 32_768_000, 134_217_728, 1, 1024, 1,
    1, 1, 1, 1, 1, 100, 9,
    1, 1, 1, 1, 1, 1, 4,
    1, 1, 1, 0, -1, 0, 0,
    0, 0, 0, 0, 0, 590_352_606, 381_751_518,
    1, 1, 0, 1, 1, 0, 0,
];

impl DeviceModel {
    /// What the device is called: it says that it is simulated.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::H100 => "Curium Simulator (H100 model)",
        }
    }

    /// The bytes of memory.
    pub(crate) const fn memory(self) -> u64 {
        match self {
            Self::H100 => 85_017_493_504,
        }
    }

    /// An attribute of the hardware, `None` if the model has no such attribute.
    pub(crate) fn attribute(self, attribute: CUdevice_attribute) -> Option<i32> {
        let table = match self {
            Self::H100 => &H100,
        };
        let index = usize::try_from(attribute.0.checked_sub(1)?).ok()?;
        table.get(index).copied()
    }

    /// An attribute that every model has.
    pub(crate) fn figure(self, attribute: CUdevice_attribute) -> u32 {
        self.attribute(attribute).unwrap_or_default().unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_at_the_numbers_of_their_attributes() {
        let figure = |attribute| DeviceModel::H100.figure(attribute);
        assert_eq!(figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
        assert_eq!(figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 132);
        assert_eq!(figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
        assert_eq!(figure(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), 32);
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(0)), None);
        assert_eq!(DeviceModel::H100.attribute(CUdevice_attribute(148)), None);
    }
}
