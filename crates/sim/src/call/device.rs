//! The C functions for devices.

mod feature;
mod link;

use std::ffi::c_char;

use curium_sys::{CUdevice, CUdevice_attribute, CUresult, CUuuid};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::device::pci_bus;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuDeviceGet(&self, device: Pointer<CUdevice>, ordinal: i32) -> Result {
        let output = device.required()?;
        self.devices().device(ordinal)?;
        output.write(ordinal)
    }

    pub(crate) fn cuDeviceGetCount(&self, count: Pointer<i32>) -> Result {
        count.write(self.config().devices.cast_signed())
    }

    pub(crate) fn cuDeviceGetName(
        &self,
        name: Pointer<c_char>,
        length: i32,
        device: CUdevice,
    ) -> Result {
        let name = name.required()?;
        self.devices().device(device)?;
        // As on hardware, a negative length is a large one.
        name.write_text(
            self.config().device_model.name(),
            length.cast_unsigned().min(i32::MAX as u32).cast_signed(),
        )
    }

    pub(crate) fn cuDeviceGetUuid(&self, uuid: Pointer<CUuuid>, device: CUdevice) -> Result {
        self.cuDeviceGetUuid_v2(uuid, device)
    }

    pub(crate) fn cuDeviceGetUuid_v2(&self, uuid: Pointer<CUuuid>, device: CUdevice) -> Result {
        let output = uuid.required()?;
        let index = self.devices().device(device)?;
        let mut bytes = *b"curium simulator";
        // Sixteen and more devices remain distinct.
        bytes[15] = b'0'.wrapping_add(index as u8);
        output.write(CUuuid {
            bytes: bytes.map(|byte| byte as c_char),
        })
    }

    pub(crate) fn cuDeviceGetLuid(
        &self,
        luid: Pointer<c_char>,
        mask: Pointer<u32>,
        device: CUdevice,
    ) -> Result {
        luid.required()?;
        mask.required()?;
        self.devices().device(device)?;
        Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
    }

    pub(crate) fn cuDeviceGetAttribute(
        &self,
        value: Pointer<i32>,
        attribute: CUdevice_attribute,
        device: CUdevice,
    ) -> Result {
        let output = value.required()?;
        let index = self.devices().device(device)?;
        output.write(
            self.devices()
                .attribute(index, attribute)
                .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?,
        )
    }

    pub(crate) fn cuDeviceTotalMem_v2(&self, bytes: Pointer<usize>, device: CUdevice) -> Result {
        let output = bytes.required()?;
        self.devices().device(device)?;
        output.write(self.config().memory_budget as usize)
    }

    pub(crate) fn cuDeviceComputeCapability(
        &self,
        major: Pointer<i32>,
        minor: Pointer<i32>,
        device: CUdevice,
    ) -> Result {
        minor.required()?;
        self.cuDeviceGetAttribute(
            major,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            device,
        )?;
        self.cuDeviceGetAttribute(
            minor,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            device,
        )
    }

    pub(crate) fn cuDeviceGetPCIBusId(
        &self,
        id: Pointer<c_char>,
        length: i32,
        device: CUdevice,
    ) -> Result {
        id.required()?;
        let index = self.devices().device(device)?;
        let text = pci_bus_id(index);
        // As on hardware, the name is never truncated.
        if usize::try_from(length).is_ok_and(|length| length <= text.len()) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        id.write_text(&text, length)
    }

    pub(crate) fn cuDeviceGetByPCIBusId(
        &self,
        device: Pointer<CUdevice>,
        id: ConstPointer<c_char>,
    ) -> Result {
        let output = device.required()?;
        let id = id
            .text()?
            .to_str()
            .ok()
            .and_then(parse_bus_id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let device = (0..self.config().devices)
            .find(|index| id == [0, pci_bus(*index as usize).into(), 0, 0])
            .ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)?;
        output.write(device.cast_signed())
    }
}

fn pci_bus_id(index: usize) -> String {
    format!("0000:{:02X}:00.0", pci_bus(index))
}

/// Returns the domain, bus, device and function of `domain:bus:device.function`, where the domain
/// or the function can be left out.
fn parse_bus_id(id: &str) -> Option<[u32; 4]> {
    let (path, function) = id.split_once('.').unwrap_or((id, "0"));
    let parts: Vec<&str> = path.split(':').collect();
    let (domain, bus, device) = match parts[..] {
        [domain, bus, device] => (domain, bus, device),
        [bus, device] if id.contains('.') => ("0", bus, device),
        _ => return None,
    };
    Some([
        hexadecimal(domain)?,
        hexadecimal(bus)?,
        hexadecimal(device)?,
        hexadecimal(function)?,
    ])
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_id_has_three_forms() {
        assert_eq!(parse_bus_id("0000:0A:1f.1"), Some([0, 10, 31, 1]));
        assert_eq!(parse_bus_id("0001:0a:00"), Some([1, 10, 0, 0]));
        assert_eq!(parse_bus_id("0a:00.0"), Some([0, 10, 0, 0]));
        for wrong in ["", "garbage", "0a:00", "1:2:3:4.5", "0000:0a:00.x"] {
            assert_eq!(parse_bus_id(wrong), None, "{wrong}");
        }
    }
}
