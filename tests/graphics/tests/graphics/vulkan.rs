//! Vulkan support for the tests: exportable memory, images and semaphores, and work on one queue.

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{FromRawFd as _, OwnedFd};

use ash::{ext, khr, vk};
use curium_interop::external::ExternalMemoryKind;
use curium_tests::{TestDriver, TestResult};

/// Vulkan on the CUDA device. Every object lives as long as this value.
pub(crate) struct Vulkan {
    device: ash::Device,
    memory_fd: khr::external_memory_fd::Device,
    semaphore_fd: khr::external_semaphore_fd::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    memory_types: vk::PhysicalDeviceMemoryProperties,
    /// `true` if memory can be exported as a DMA buffer.
    pub(crate) has_dma_buf: bool,
    owned: RefCell<Vec<Owned>>,
    instance: ash::Instance,
    /// Loads the functions; dropped after every object that uses them.
    _entry: ash::Entry,
}

/// A buffer or an image in memory of its own that another interface can import.
pub(crate) struct Exported<T> {
    pub(crate) object: T,
    pub(crate) descriptor: OwnedFd,
    /// The size of the memory.
    pub(crate) bytes: u64,
}

/// A semaphore, and the value to wait for or signal if it is a timeline semaphore.
pub(crate) type At = (vk::Semaphore, u64);

enum Owned {
    Buffer(vk::Buffer),
    Fence(vk::Fence),
    Image(vk::Image),
    Memory(vk::DeviceMemory),
    Semaphore(vk::Semaphore),
}

/// The time limit of work in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

impl Vulkan {
    /// Opens the device with the UUID of CUDA's first device.
    pub(crate) fn open(test: &TestDriver) -> Result<Self, String> {
        let uuid = test.device().uuid().expect("a device has one");
        // SAFETY: the library is Vulkan.
        let entry = unsafe { ash::Entry::load() }
            .map_err(|error| format!("Vulkan cannot be loaded: {error}"))?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the create info is valid.
        let instance = unsafe { entry.create_instance(&info, None) }
            .map_err(|error| format!("no instance: {error}"))?;
        let physical = physical_device(&instance, uuid)?;
        let has_dma_buf = has_extension(&instance, physical, ext::external_memory_dma_buf::NAME);
        let device = logical_device(&instance, physical, has_dma_buf)?;
        // SAFETY: the device was created with a queue of family 0.
        let queue = unsafe { device.get_device_queue(0, 0) };
        // SAFETY: family 0 belongs to the device.
        let pool =
            unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) };
        let pool = pool.map_err(|error| format!("no pool: {error}"))?;
        // SAFETY: the device belongs to this instance.
        let memory_types = unsafe { instance.get_physical_device_memory_properties(physical) };
        let memory_fd = khr::external_memory_fd::Device::new(&instance, &device);
        let semaphore_fd = khr::external_semaphore_fd::Device::new(&instance, &device);
        let owned = RefCell::default();
        Ok(Self {
            device,
            memory_fd,
            semaphore_fd,
            queue,
            pool,
            memory_types,
            has_dma_buf,
            owned,
            instance,
            _entry: entry,
        })
    }

    /// Returns a buffer for copies in device memory that can be imported; `is_dedicated` if it has
    /// a dedicated allocation.
    pub(crate) fn exported_buffer(
        &self,
        bytes: u64,
        kind: ExternalMemoryKind,
        is_dedicated: bool,
    ) -> TestResult<Exported<vk::Buffer>> {
        let kind = handle_type(kind);
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
        let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(usage)
            .push_next(&mut external);
        // SAFETY: the create info is valid.
        let buffer = unsafe { self.device.create_buffer(&info, None) }?;
        self.own(Owned::Buffer(buffer));
        // SAFETY: the buffer belongs to this device.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer) };
        let dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let (memory, descriptor) =
            self.exported_memory(needs, kind, is_dedicated.then_some(dedicated))?;
        // SAFETY: the memory satisfies the requirements of the buffer, and neither is bound.
        unsafe { self.device.bind_buffer_memory(buffer, memory, 0) }?;
        Ok(Exported {
            object: buffer,
            descriptor,
            bytes: needs.size,
        })
    }

    /// Returns a 2D image of 32-bit words with this many levels, in memory of its own, that can be
    /// imported.
    pub(crate) fn exported_image(
        &self,
        size: (u32, u32),
        levels: u32,
    ) -> TestResult<Exported<vk::Image>> {
        let (width, height) = size;
        let kind = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
        let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(kind);
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R32_UINT)
            .extent(vk::Extent3D {
                width,
                height,
                depth: 1,
            })
            .mip_levels(levels)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST)
            .push_next(&mut external);
        // SAFETY: the create info is valid.
        let image = unsafe { self.device.create_image(&info, None) }?;
        self.own(Owned::Image(image));
        // SAFETY: the image belongs to this device.
        let needs = unsafe { self.device.get_image_memory_requirements(image) };
        let dedicated = vk::MemoryDedicatedAllocateInfo::default().image(image);
        let (memory, descriptor) = self.exported_memory(needs, kind, Some(dedicated))?;
        // SAFETY: the memory satisfies the requirements of the image, and neither is bound.
        unsafe { self.device.bind_image_memory(image, memory, 0) }?;
        Ok(Exported {
            object: image,
            descriptor,
            bytes: needs.size,
        })
    }

    /// Returns a host-visible buffer, and the address of its words.
    pub(crate) fn host_buffer(&self, words: &[u32]) -> (vk::Buffer, *mut u32) {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default()
            .size(size_of_val(words) as u64)
            .usage(usage);
        // SAFETY: the create info is valid.
        let buffer =
            unsafe { self.device.create_buffer(&info, None) }.expect("vkCreateBuffer failed");
        self.own(Owned::Buffer(buffer));
        // SAFETY: the buffer belongs to this device.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer) };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let info = info.memory_type_index(self.memory_type(needs, wanted));
        // SAFETY: the create info is valid.
        let memory =
            unsafe { self.device.allocate_memory(&info, None) }.expect("vkAllocateMemory failed");
        self.own(Owned::Memory(memory));
        // SAFETY: the memory satisfies the requirements of the buffer, and neither is bound.
        unsafe { self.device.bind_buffer_memory(buffer, memory, 0) }
            .expect("the memory is for the buffer");
        // SAFETY: the memory is host-visible and is mapped once.
        let mapped = unsafe {
            self.device
                .map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
        };
        let words_pointer = mapped.expect("vkMapMemory failed").cast::<u32>();
        // SAFETY: the memory has the size of the words.
        unsafe { words_pointer.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        (buffer, words_pointer)
    }

    /// Returns a semaphore that can be imported: a timeline semaphore that starts at 0, or a binary
    /// one.
    pub(crate) fn exported_semaphore(
        &self,
        is_timeline: bool,
    ) -> TestResult<(vk::Semaphore, OwnedFd)> {
        let kind = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(kind);
        let mut timeline =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let mut info = vk::SemaphoreCreateInfo::default().push_next(&mut export);
        if is_timeline {
            info = info.push_next(&mut timeline);
        }
        // SAFETY: the create info is valid.
        let semaphore = unsafe { self.device.create_semaphore(&info, None) }?;
        self.own(Owned::Semaphore(semaphore));
        let info = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(semaphore)
            .handle_type(kind);
        // SAFETY: the semaphore belongs to this device, and was created for export.
        let raw = unsafe { self.semaphore_fd.get_semaphore_fd(&info) }?;
        // SAFETY: Vulkan transferred ownership of the file descriptor.
        Ok((semaphore, unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Returns the value of a timeline semaphore.
    pub(crate) fn value(&self, semaphore: vk::Semaphore) -> u64 {
        // SAFETY: the semaphore belongs to this device, and is a timeline semaphore.
        unsafe { self.device.get_semaphore_counter_value(semaphore) }.expect("the device works")
    }

    /// Submits the commands of `record` to the queue, after one semaphore and before another; the
    /// fence is signaled when they are complete.
    pub(crate) fn submit(
        &self,
        wait: Option<At>,
        signal: Option<At>,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> vk::Fence {
        let commands = self.commands(record);
        let wait = wait.as_slice();
        let signal = signal.as_slice();
        let (waits, wait_values): (Vec<_>, Vec<_>) = wait.iter().copied().unzip();
        let (signals, signal_values): (Vec<_>, Vec<_>) = signal.iter().copied().unzip();
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
        let submission = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages[..waits.len()])
            .signal_semaphores(&signals)
            .command_buffers(std::slice::from_ref(&commands))
            .push_next(&mut values);
        // SAFETY: the create info is valid.
        let fence = unsafe {
            self.device
                .create_fence(&vk::FenceCreateInfo::default(), None)
        };
        let fence = fence.expect("vkCreateFence failed");
        self.own(Owned::Fence(fence));
        // SAFETY: all objects belong to this device, and live until the work is complete.
        unsafe { self.device.queue_submit(self.queue, &[submission], fence) }
            .expect("the queue accepts it");
        fence
    }

    /// Returns `true` if the work of a fence is complete.
    pub(crate) fn is_done(&self, fence: vk::Fence) -> bool {
        // SAFETY: the fence belongs to this device.
        unsafe { self.device.get_fence_status(fence) }.expect("the device works")
    }

    /// Waits for the work of a fence.
    pub(crate) fn wait(&self, fence: vk::Fence) {
        // SAFETY: the fence belongs to this device.
        unsafe { self.device.wait_for_fences(&[fence], true, PATIENCE) }.expect("the work ends");
    }

    fn commands(&self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: the pool belongs to this device.
        let commands = unsafe { self.device.allocate_command_buffers(&info) }
            .expect("vkAllocateCommandBuffers failed")[0];
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: nothing was recorded yet.
        unsafe { self.device.begin_command_buffer(commands, &begin) }
            .expect("vkBeginCommandBuffer failed");
        record(&self.device, commands);
        // SAFETY: the recording has begun.
        unsafe { self.device.end_command_buffer(commands) }.expect("the record is correct");
        commands
    }

    fn exported_memory(
        &self,
        needs: vk::MemoryRequirements,
        kind: vk::ExternalMemoryHandleTypeFlags,
        mut dedicated: Option<vk::MemoryDedicatedAllocateInfo<'_>>,
    ) -> TestResult<(vk::DeviceMemory, OwnedFd)> {
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(self.memory_type(needs, vk::MemoryPropertyFlags::DEVICE_LOCAL))
            .push_next(&mut export);
        if let Some(dedicated) = &mut dedicated {
            info = info.push_next(dedicated);
        }
        // SAFETY: the create info is valid.
        let memory = unsafe { self.device.allocate_memory(&info, None) }?;
        self.own(Owned::Memory(memory));
        let info = vk::MemoryGetFdInfoKHR::default()
            .memory(memory)
            .handle_type(kind);
        // SAFETY: the memory belongs to this device, and was created for export.
        let raw = unsafe { self.memory_fd.get_memory_fd(&info) }?;
        // SAFETY: Vulkan transferred ownership of the file descriptor.
        Ok((memory, unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    fn memory_type(&self, needs: vk::MemoryRequirements, wanted: vk::MemoryPropertyFlags) -> u32 {
        (0..self.memory_types.memory_type_count)
            .find(|index| {
                let kind = self.memory_types.memory_types[*index as usize];
                needs.memory_type_bits >> index & 1 == 1 && kind.property_flags.contains(wanted)
            })
            .expect("no such memory type")
    }

    fn own(&self, object: Owned) {
        self.owned.borrow_mut().push(object);
    }
}

impl Owned {
    /// # Safety
    ///
    /// No work uses the object.
    unsafe fn destroy(self, device: &ash::Device) {
        match self {
            // SAFETY: guaranteed by the caller.
            Self::Buffer(buffer) => unsafe { device.destroy_buffer(buffer, None) },
            // SAFETY: guaranteed by the caller.
            Self::Fence(fence) => unsafe { device.destroy_fence(fence, None) },
            // SAFETY: guaranteed by the caller.
            Self::Image(image) => unsafe { device.destroy_image(image, None) },
            // SAFETY: guaranteed by the caller.
            Self::Memory(memory) => unsafe { device.free_memory(memory, None) },
            // SAFETY: guaranteed by the caller.
            Self::Semaphore(semaphore) => unsafe { device.destroy_semaphore(semaphore, None) },
        }
    }
}

impl Drop for Vulkan {
    fn drop(&mut self) {
        // SAFETY: the device has no other user.
        unsafe { self.device.device_wait_idle() }.expect("the device works");
        for object in self.owned.take().into_iter().rev() {
            // SAFETY: the device is idle, and objects are destroyed before those they depend on.
            unsafe { object.destroy(&self.device) };
        }
        // SAFETY: the device is idle.
        unsafe { self.device.destroy_command_pool(self.pool, None) };
        // SAFETY: no object of the device is left.
        unsafe { self.device.destroy_device(None) };
        // SAFETY: no object of the instance is left.
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// Returns the device with this UUID.
fn physical_device(instance: &ash::Instance, uuid: [u8; 16]) -> Result<vk::PhysicalDevice, String> {
    // SAFETY: the instance is live.
    let devices = unsafe { instance.enumerate_physical_devices() }
        .map_err(|error| format!("no devices: {error}"))?;
    let count = devices.len();
    let device = devices.into_iter().find(|device| {
        let mut identifiers = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut identifiers);
        // SAFETY: the device belongs to this instance.
        unsafe { instance.get_physical_device_properties2(*device, &mut properties) };
        identifiers.device_uuid == uuid
    });
    device.ok_or_else(|| format!("none of {count} devices of Vulkan is the first of CUDA"))
}

fn has_extension(instance: &ash::Instance, physical: vk::PhysicalDevice, name: &CStr) -> bool {
    // SAFETY: the device belongs to this instance.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical) };
    extensions.is_ok_and(|extensions| {
        extensions
            .iter()
            .any(|extension| extension.extension_name_as_c_str() == Ok(name))
    })
}

fn handle_type(kind: ExternalMemoryKind) -> vk::ExternalMemoryHandleTypeFlags {
    match kind {
        ExternalMemoryKind::Opaque => vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD,
        ExternalMemoryKind::DmaBuf => vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT,
        other => panic!("unexpected: {other:?}"),
    }
}

fn logical_device(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    has_dma_buf: bool,
) -> Result<ash::Device, String> {
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(0)
        .queue_priorities(&[1.0])];
    let mut extensions = vec![
        khr::external_memory_fd::NAME.as_ptr(),
        khr::external_semaphore_fd::NAME.as_ptr(),
    ];
    extensions.extend(has_dma_buf.then_some(ext::external_memory_dma_buf::NAME.as_ptr()));
    let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .push_next(&mut features);
    // SAFETY: the physical device belongs to this instance, and the create info is valid.
    let device = unsafe { instance.create_device(physical, &info, None) };
    device.map_err(|error| format!("no device with external memory and semaphores: {error}"))
}
