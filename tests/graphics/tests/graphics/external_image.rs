//! Vulkan images.

use ash::vk;
use curium_interop::external::{ExternalMemory, ExternalMemoryKind};
use curium_memory::{ArrayFlags, ArrayShape, MipmappedArray};
use curium_tests::{TestDriver, TestResult};

use crate::on_hardware;
use crate::vulkan::{Exported, Vulkan};

const WIDTH: u32 = 64;
const HEIGHT: u32 = 32;
const LEVELS: u32 = 3;

fn texels(level: u32, seed: u32) -> Vec<u32> {
    (0..(WIDTH >> level) * (HEIGHT >> level))
        .map(|index| index | level << 16 | seed << 24)
        .collect()
}

/// Imports a Vulkan image as a CUDA array.
fn array(test: &TestDriver, exported: Exported<vk::Image>) -> MipmappedArray<u32> {
    let Exported {
        descriptor, bytes, ..
    } = exported;
    let memory = ExternalMemory::import_fd(
        &test.context(),
        descriptor,
        ExternalMemoryKind::Opaque,
        bytes,
        true,
    );
    let memory = memory.expect("import failed");
    let shape = ArrayShape::new_2d(WIDTH as usize, HEIGHT as usize);
    // SAFETY: the image has this shape, and the test synchronizes before the other side accesses
    // it.
    unsafe { memory.map_image(&test.stream(), 0, shape, LEVELS, ArrayFlags::empty()) }
        .expect("the image is there")
}

fn region(level: u32) -> vk::BufferImageCopy {
    let part = vk::ImageSubresourceLayers::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .mip_level(level)
        .layer_count(1);
    let extent = vk::Extent3D {
        width: WIDTH >> level,
        height: HEIGHT >> level,
        depth: 1,
    };
    vk::BufferImageCopy::default()
        .image_subresource(part)
        .image_extent(extent)
}

/// Transitions all levels to the general layout.
fn lay_out(device: &ash::Device, commands: vk::CommandBuffer, image: vk::Image) {
    let parts = vk::ImageSubresourceRange::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .level_count(LEVELS)
        .layer_count(1);
    let barrier = vk::ImageMemoryBarrier::default()
        .new_layout(vk::ImageLayout::GENERAL)
        .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
        .image(image)
        .subresource_range(parts);
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    let none = vk::DependencyFlags::empty();
    // SAFETY: the commands are being recorded, and the image lives as long as the device.
    unsafe { device.cmd_pipeline_barrier(commands, all, all, none, &[], &[], &[barrier]) };
}

#[test]
fn vulkan_image_is_an_array() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        let exported = vulkan.exported_image((WIDTH, HEIGHT), LEVELS)?;
        let image = exported.object;
        let buffers: Vec<_> = (0..LEVELS)
            .map(|level| vulkan.host_buffer(&texels(level, 5)))
            .collect();
        let written = vulkan.submit(None, None, |device, commands| {
            lay_out(device, commands, image);
            for (level, (buffer, _)) in (0..).zip(&buffers) {
                let layout = vk::ImageLayout::GENERAL;
                let region = region(level);
                // SAFETY: the buffer has the number of texels of the level.
                unsafe {
                    device.cmd_copy_buffer_to_image(commands, *buffer, image, layout, &[region]);
                };
            }
        });
        vulkan.wait(written);

        let array = array(test, exported);
        assert_eq!(array.levels(), LEVELS);
        for level in 0..LEVELS {
            let part = array.level(level)?;
            assert_eq!(part.to_vec()?, texels(level, 5), "level {level}");
            part.copy_from_slice(&texels(level, 99))?;
        }
        array.stream().synchronize()?;

        let read = vulkan.submit(None, None, |device, commands| {
            for (level, (buffer, _)) in (0..).zip(&buffers) {
                let layout = vk::ImageLayout::GENERAL;
                let region = region(level);
                // SAFETY: the buffer has the number of texels of the level.
                unsafe {
                    device.cmd_copy_image_to_buffer(commands, image, layout, *buffer, &[region]);
                };
            }
        });
        vulkan.wait(read);
        for (level, (_, place)) in (0..).zip(&buffers) {
            let expected = texels(level, 99);
            // SAFETY: the buffer has this many texels, and the writes to it are complete.
            let seen = unsafe { std::slice::from_raw_parts(place.cast_const(), expected.len()) };
            assert_eq!(seen, expected, "level {level}");
        }
        Ok(())
    })
}
