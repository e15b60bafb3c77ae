//! Vulkan semaphores, in streams and in graphs.

use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ash::vk;
use curium_driver::{Graph, Stream};
use curium_interop::external::{
    ExternalMemory, ExternalMemoryKind, ExternalSemaphore, ExternalSemaphoreKind,
};
use curium_memory::{BorrowedBuffer, DeviceBuffer};
use curium_tests::{Gate, TestDriver, TestResult};

use crate::on_hardware;
use crate::vulkan::{At, Vulkan};

const LEN: usize = 1024;
const BYTES: u64 = 4 * LEN as u64;

/// Words in shared memory of both interfaces.
struct Shared {
    words: BorrowedBuffer<u32, curium_interop::external::ExternalBuffer>,
    of_vulkan: vk::Buffer,
}

fn shared(stream: &Stream, vulkan: &Vulkan) -> TestResult<Shared> {
    let kind = ExternalMemoryKind::Opaque;
    let exported = vulkan.exported_buffer(BYTES, kind, false)?;
    let of_vulkan = exported.object;
    let memory = ExternalMemory::import_fd(
        stream.context(),
        exported.descriptor,
        kind,
        exported.bytes,
        false,
    );
    let buffer = memory.and_then(|memory| memory.map(0, BYTES))?;
    let pointer = buffer.as_pointer().cast();
    // SAFETY: the memory has this many bytes as long as its buffer lives, and semaphores order the
    // accesses of both sides.
    let words = unsafe { BorrowedBuffer::new(stream, pointer, LEN, buffer) };
    Ok(Shared {
        words: words?,
        of_vulkan,
    })
}

fn semaphore(
    test: &TestDriver,
    vulkan: &Vulkan,
    kind: ExternalSemaphoreKind,
) -> TestResult<(vk::Semaphore, Arc<ExternalSemaphore>)> {
    let (semaphore, descriptor) =
        vulkan.exported_semaphore(kind == ExternalSemaphoreKind::Timeline)?;
    let imported = ExternalSemaphore::import_fd(&test.context(), descriptor, kind);
    Ok((semaphore, Arc::new(imported?)))
}

/// Makes Vulkan copy the shared words to `host`, and then fill them with `value`.
fn copy_and_fill(
    vulkan: &Vulkan,
    wait: At,
    signal: At,
    shared: &Shared,
    host: vk::Buffer,
    value: u32,
) -> vk::Fence {
    vulkan.submit(Some(wait), Some(signal), |device, commands| {
        let region = vk::BufferCopy::default().size(BYTES);
        // SAFETY: both buffers have this many bytes, and live as long as the device.
        unsafe { device.cmd_copy_buffer(commands, shared.of_vulkan, host, &[region]) };
        let all = vk::PipelineStageFlags::ALL_COMMANDS;
        let none = vk::DependencyFlags::empty();
        let barrier = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_READ)
            .dst_access_mask(vk::AccessFlags::MEMORY_WRITE);
        // SAFETY: the commands are being recorded.
        unsafe { device.cmd_pipeline_barrier(commands, all, all, none, &[barrier], &[], &[]) };
        // SAFETY: the buffer has this many bytes.
        unsafe { device.cmd_fill_buffer(commands, shared.of_vulkan, 0, BYTES, value) };
    })
}

/// Returns the words at a host address.
fn read_words(pointer: *mut u32) -> Vec<u32> {
    // SAFETY: the buffer has this many words, and the writes to it are complete.
    unsafe { std::slice::from_raw_parts(pointer.cast_const(), LEN) }.to_vec()
}

#[test]
fn timeline_semaphore_orders() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        let stream = test.stream();
        let mut shared = shared(&stream, vulkan)?;
        let (of_vulkan, semaphore) = semaphore(test, vulkan, ExternalSemaphoreKind::Timeline)?;
        let (host, pointer) = vulkan.host_buffer(&[0; LEN]);
        for round in 0..5 {
            let written = round * 10 + 1;
            let answered = round * 10 + 2;
            let gate = Gate::on(&stream);
            shared.words.on_mut(&stream).fill(round as u32)?;
            semaphore.signal(&stream, written)?;
            let points = ((of_vulkan, written), (of_vulkan, answered));
            let done = copy_and_fill(
                vulkan,
                points.0,
                points.1,
                &shared,
                host,
                100 + round as u32,
            );
            semaphore.wait(&stream, answered)?;
            let mut copied = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
            copied.on_mut(&stream).copy_from_device(&shared.words)?;
            thread::sleep(Duration::from_millis(5));
            assert!(!vulkan.is_done(done), "the queue waits for the stream");
            assert!(vulkan.value(of_vulkan) < written);
            gate.open();
            vulkan.wait(done);
            assert_eq!(read_words(pointer), [round as u32; LEN]);
            assert_eq!(copied.to_vec()?, [100 + round as u32; LEN]);
            assert_eq!(vulkan.value(of_vulkan), answered);
        }
        Ok(())
    })
}

#[test]
fn opaque_semaphores_order() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        let stream = test.stream();
        let mut shared = shared(&stream, vulkan)?;
        let (first, written) = semaphore(test, vulkan, ExternalSemaphoreKind::Opaque)?;
        let (second, answered) = semaphore(test, vulkan, ExternalSemaphoreKind::Opaque)?;
        let (host, pointer) = vulkan.host_buffer(&[0; LEN]);
        for round in 0..3 {
            shared.words.on_mut(&stream).fill(round)?;
            written.signal(&stream, 0)?;
            let done = copy_and_fill(vulkan, (first, 0), (second, 0), &shared, host, 100 + round);
            answered.wait(&stream, 0)?;
            assert_eq!(shared.words.to_vec()?, [100 + round; LEN]);
            vulkan.wait(done);
            assert_eq!(read_words(pointer), [round; LEN]);
        }
        Ok(())
    })
}

#[test]
fn graph_uses_semaphores() -> TestResult {
    on_hardware(Vulkan::open, |test, vulkan| {
        let stream = test.stream();
        let shared = shared(&stream, vulkan)?;
        let (of_vulkan, semaphore) = semaphore(test, vulkan, ExternalSemaphoreKind::Timeline)?;
        let (host, _) = vulkan.host_buffer(&[0; LEN]);
        let mut graph = Graph::new(&test.context())?;
        let signal = graph.add_semaphore_signal(&[], &[semaphore.for_graph(1)])?;
        let wait = graph.add_semaphore_wait(&[*signal], &[semaphore.for_graph(2)])?;
        let mut executable = graph.instantiate()?;
        for round in 0..3 {
            let points = [round * 10 + 1, round * 10 + 2];
            if round > 0 {
                executable.set_semaphore_signal(signal, &[semaphore.for_graph(points[0])])?;
                executable.set_semaphore_wait(wait, &[semaphore.for_graph(points[1])])?;
            }
            let order = ((of_vulkan, points[0]), (of_vulkan, points[1]));
            let done = copy_and_fill(vulkan, order.0, order.1, &shared, host, 100 + round as u32);
            thread::sleep(Duration::from_millis(2));
            assert!(!vulkan.is_done(done), "the queue waits for the graph");
            executable.launch(&stream)?;
            stream.synchronize()?;
            assert_eq!(vulkan.value(of_vulkan), points[1]);
            vulkan.wait(done);
            assert_eq!(shared.words.to_vec()?, [100 + round as u32; LEN]);
        }
        Ok(())
    })
}

#[test]
fn descriptor_is_no_semaphore() -> TestResult {
    on_hardware(Vulkan::open, |test, _| {
        for kind in [
            ExternalSemaphoreKind::Opaque,
            ExternalSemaphoreKind::Timeline,
        ] {
            let descriptor = File::open("/dev/null")?.into();
            let error = ExternalSemaphore::import_fd(&test.context(), descriptor, kind)
                .expect_err("no semaphore");
            assert!(
                error.to_string().contains("cuImportExternalSemaphore"),
                "{error}"
            );
        }
        Ok(())
    })
}
