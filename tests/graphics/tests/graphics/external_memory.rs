//! Vulkan memory.

use std::fs::File;

use ash::vk;
use curium_interop::external::{ExternalBuffer, ExternalMemory, ExternalMemoryKind};
use curium_memory::BorrowedBuffer;
use curium_tests::{TestDriver, TestResult};

use crate::on_hardware;
use crate::vulkan::{Exported, Vulkan};

const LEN: usize = 1024;
const BYTES: u64 = 4 * LEN as u64;

/// Returns a view of the first words of Vulkan memory.
fn words(
    test: &TestDriver,
    exported: Exported<vk::Buffer>,
    kind: ExternalMemoryKind,
    is_dedicated: bool,
) -> TestResult<BorrowedBuffer<u32, ExternalBuffer>> {
    let Exported {
        descriptor, bytes, ..
    } = exported;
    let memory = ExternalMemory::import_fd(&test.context(), descriptor, kind, bytes, is_dedicated);
    let buffer = memory.and_then(|memory| memory.map(0, BYTES))?;
    let pointer = buffer.as_pointer().cast();
    // SAFETY: the memory has this many bytes as long as its buffer lives, and the tests synchronize
    // before the other side accesses it.
    Ok(unsafe { BorrowedBuffer::new(&test.stream(), pointer, LEN, buffer) }?)
}

fn copy(vulkan: &Vulkan, source: vk::Buffer, target: vk::Buffer) {
    let done = vulkan.submit(None, None, |device, commands| {
        let region = vk::BufferCopy::default().size(BYTES);
        // SAFETY: both buffers have this many bytes, and live as long as the device.
        unsafe { device.cmd_copy_buffer(commands, source, target, &[region]) };
    });
    vulkan.wait(done);
}

/// Copies numbers to Vulkan memory, changes them with CUDA, and copies them back.
fn share(
    test: &TestDriver,
    vulkan: &Vulkan,
    kind: ExternalMemoryKind,
    is_dedicated: bool,
) -> TestResult {
    let numbers: Vec<u32> = (0..LEN as u32).collect();
    let (host, place) = vulkan.host_buffer(&numbers);
    let exported = vulkan.exported_buffer(BYTES, kind, is_dedicated)?;
    let shared = exported.object;
    copy(vulkan, host, shared);
    let mut words = words(test, exported, kind, is_dedicated)?;
    assert_eq!(words.to_vec()?, numbers, "{kind:?}");
    let reversed: Vec<u32> = numbers.iter().rev().copied().collect();
    words.copy_from_slice(&reversed)?;
    words.stream().synchronize()?;
    copy(vulkan, shared, host);
    // SAFETY: the buffer has this many words, and the writes to it are complete.
    let seen = unsafe { std::slice::from_raw_parts(place.cast_const(), LEN) };
    assert_eq!(seen, reversed, "{kind:?}");
    Ok(())
}

#[test]
fn vulkan_memory_is_shared() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        for is_dedicated in [false, true] {
            share(test, vulkan, ExternalMemoryKind::Opaque, is_dedicated)?;
        }
        Ok(())
    })
}

#[test]
fn vulkan_memory_is_a_dma_buf() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        // Not every Vulkan driver supports this export.
        if vulkan.has_dma_buf {
            share(test, vulkan, ExternalMemoryKind::DmaBuf, false)?;
        }
        Ok(())
    })
}

#[test]
fn memory_outlives_vulkan_buffer() -> TestResult {
    on_hardware(Vulkan::open, |test, _| {
        let other = Vulkan::open(test)?;
        let kind = ExternalMemoryKind::Opaque;
        let mut words = words(
            test,
            other.exported_buffer(BYTES, kind, false)?,
            kind,
            false,
        )?;
        drop(other);
        words.fill(6)?;
        assert_eq!(words.to_vec()?, [6; LEN]);
        Ok(())
    })
}

#[test]
fn descriptor_is_no_memory() -> TestResult {
    on_hardware(Vulkan::open, |test, _| {
        let descriptor = File::open("/dev/null")?.into();
        let kind = ExternalMemoryKind::Opaque;
        let error = ExternalMemory::import_fd(&test.context(), descriptor, kind, BYTES, false)
            .expect_err("no memory");
        assert!(error.to_string().contains("4096 bytes"), "{error}");
        Ok(())
    })
}
