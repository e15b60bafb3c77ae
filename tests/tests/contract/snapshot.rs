//! [`Snapshot`]: memory snapshots for PyTorch's memory viewer, checked against the format that the viewer reads.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};

use curium_diagnostics::{AllocationEvent, AllocationLog, AllocationRecorder, EventKind, Snapshot};
use curium_driver::{DevicePointer, Error, Result, Stream};
use curium_memory::{CachingOptions, CachingResource, LeakTracker, Resource};
use curium_tests::{TestDriver, TestResult, driver_test};
use serde_json::{Map, Value};

/// Parses the part of Python's pickle format that the viewer uses.
struct Unpickler<'a> {
    bytes: &'a [u8],
    stack: Vec<Value>,
    marks: Vec<usize>,
}

impl<'a> Unpickler<'a> {
    fn read(bytes: &'a [u8]) -> Value {
        let mut unpickler = Self {
            bytes,
            stack: Vec::new(),
            marks: Vec::new(),
        };
        while !unpickler.step() {}
        assert!(
            unpickler.bytes.is_empty() && unpickler.marks.is_empty(),
            "every byte and mark is consumed"
        );
        assert_eq!(unpickler.stack.len(), 1);
        unpickler.stack.remove(0)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        taken
    }

    fn number(&mut self, count: usize) -> u64 {
        let taken = self.take(count);
        assert!(
            taken.iter().skip(8).all(|byte| *byte == 0),
            "a number of more than 64 bits"
        );
        taken
            .iter()
            .take(8)
            .rev()
            .fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// Executes one instruction, and returns `true` if it was the last.
    fn step(&mut self) -> bool {
        match self.take(1)[0] {
            0x80 => assert_eq!(self.take(1), [2]),
            b'.' => return true,
            b'}' => self.stack.push(Value::Object(Map::new())),
            b']' => self.stack.push(Value::Array(Vec::new())),
            b'(' => self.marks.push(self.stack.len()),
            b'u' => self.set_items(),
            b'e' => self.append(),
            b'X' => {
                let length = self.number(4) as usize;
                let text = std::str::from_utf8(self.take(length)).expect("a text is UTF-8");
                self.stack.push(text.into());
            }
            b'K' => self.push_number(1),
            b'J' => self.push_number(4),
            0x8a => {
                let length = usize::from(self.take(1)[0]);
                assert!(
                    length == 9 || self.bytes[length - 1] < 0x80,
                    "the number is negative"
                );
                self.push_number(length);
            }
            0x86 => {
                let pair = self.stack.split_off(self.stack.len() - 2);
                self.stack.push(Value::Array(pair));
            }
            0x88 => self.stack.push(true.into()),
            0x89 => self.stack.push(false.into()),
            other => panic!("unknown instruction {other:#x}"),
        }
        false
    }

    fn push_number(&mut self, count: usize) {
        let number = self.number(count);
        self.stack.push(number.into());
    }

    fn items(&mut self) -> Vec<Value> {
        let mark = self.marks.pop().expect("no mark");
        self.stack.split_off(mark)
    }

    fn set_items(&mut self) {
        let items = self.items();
        let Some(Value::Object(object)) = self.stack.last_mut() else {
            panic!("the value below the mark is not a dictionary")
        };
        for pair in items.chunks(2) {
            let before = object.insert(
                pair[0].as_str().expect("a key is text").to_owned(),
                pair[1].clone(),
            );
            assert!(before.is_none(), "{} occurs twice", pair[0]);
        }
    }

    fn append(&mut self) {
        let items = self.items();
        let Some(Value::Array(array)) = self.stack.last_mut() else {
            panic!("the value below the mark is not a list")
        };
        array.extend(items);
    }
}

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {value} is not a number"))
}

fn array<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("{key} of {value} is not a list"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {value} is not a string"))
}

/// Checks the fields that the viewer uses, and replays the trace backwards as the viewer does:
/// every block must lie in a segment, and every free must refer to free memory.
fn check(snapshot: &Value, device: usize) -> TestResult {
    let mut segments: BTreeMap<u64, u64> = array(snapshot, "segments")
        .iter()
        .map(|s| (number(s, "address"), number(s, "total_size")))
        .collect();
    let mut live = BTreeMap::new();
    for segment in array(snapshot, "segments") {
        assert_eq!(number(segment, "device"), device as u64);
        assert!(["small", "large"].contains(&text(segment, "segment_type")));
        let mut next = number(segment, "address");
        let mut allocated = 0;
        for block in array(segment, "blocks") {
            assert_eq!(number(block, "address"), next, "blocks are adjacent");
            next += number(block, "size");
            assert!(number(block, "requested_size") <= number(block, "size"));
            match text(block, "state") {
                "active_allocated" => {
                    allocated += number(block, "size");
                    live.insert(number(block, "address"), number(block, "requested_size"));
                }
                "inactive" => {}
                other => panic!("unknown state {other}"),
            }
            frames(block);
        }
        assert_eq!(
            next,
            number(segment, "address") + number(segment, "total_size"),
            "blocks fill the segment"
        );
        assert_eq!(number(segment, "allocated_size"), allocated);
    }
    let traces = array(snapshot, "device_traces");
    assert_eq!(
        traces.len(),
        device + 1,
        "the events are at the index of the device"
    );
    for event in traces[device]
        .as_array()
        .ok_or("the trace is not an array")?
        .iter()
        .rev()
    {
        frames(event);
        number(event, "time_us");
        number(event, "stream");
        let bytes = number(event, "size");
        match text(event, "action") {
            "segment_map" | "segment_alloc" => unmap(&mut segments, number(event, "addr"), bytes)?,
            "segment_unmap" | "segment_free" => {
                assert_eq!(
                    segments.insert(number(event, "addr"), bytes),
                    None,
                    "{event}"
                );
            }
            "snapshot" => assert_eq!(bytes, live.values().sum::<u64>(), "{event}"),
            "alloc" => assert_eq!(live.remove(&number(event, "addr")), Some(bytes), "{event}"),
            "free_completed" => {
                assert_eq!(live.insert(number(event, "addr"), bytes), None, "{event}");
            }
            "free_requested" => assert!(live.contains_key(&number(event, "addr")), "{event}"),
            "oom" => drop(number(event, "device_free")),
            other => panic!("unknown action {other}"),
        }
        for (address, bytes) in &live {
            let mut end = *address;
            while end < address + bytes {
                let (start, size) = segments
                    .range(..=end)
                    .next_back()
                    .ok_or("no segment of the block")?;
                assert!(
                    end < start + size,
                    "{address:#x} is in no segment before {event}"
                );
                end = start + size;
            }
        }
    }
    Ok(())
}

/// Removes a part of a segment, and keeps the parts before and after it.
fn unmap(segments: &mut BTreeMap<u64, u64>, address: u64, bytes: u64) -> TestResult {
    let (start, size) = segments
        .range(..=address)
        .next_back()
        .map(|(start, size)| (*start, *size))
        .ok_or("no segment of the address")?;
    assert!(
        address + bytes <= start + size,
        "the segment contains the removed part"
    );
    segments.remove(&start);
    segments.extend((start < address).then_some((start, address - start)));
    segments.extend(
        (address + bytes < start + size)
            .then_some((address + bytes, start + size - address - bytes)),
    );
    Ok(())
}

fn frames(value: &Value) {
    for frame in array(value, "frames") {
        assert!(!text(frame, "filename").is_empty() && !text(frame, "name").is_empty());
        assert!(number(frame, "line") > 0);
    }
}

/// Loads a snapshot with Python's own reader, which must return the same value.
const SCRIPT: &str = "
import json, pickle, sys
snapshot = pickle.load(sys.stdin.buffer)
assert set(snapshot) >= {'segments', 'device_traces', 'allocator_settings', 'external_annotations'}, snapshot.keys()
for segment in snapshot['segments']:
    assert {'device', 'address', 'total_size', 'allocated_size', 'active_size', 'requested_size', 'stream',
            'segment_type', 'segment_pool_id', 'is_expandable', 'frames', 'blocks'} <= set(segment), segment.keys()
    assert type(segment['segment_pool_id']) is tuple and type(segment['is_expandable']) is bool
    for block in segment['blocks']:
        assert {'address', 'size', 'requested_size', 'state', 'frames'} <= set(block), block.keys()
        assert all(type(block[key]) is int for key in ('address', 'size', 'requested_size')), block
for trace in snapshot['device_traces']:
    for event in trace:
        assert {'action', 'size', 'stream', 'time_us', 'frames'} <= set(event), event.keys()
        assert ('device_free' if event['action'] == 'oom' else 'addr') in event, event
json.dump(snapshot, sys.stdout)
";

/// Renders a snapshot with PyTorch's own code, whose file is the argument. Flame graphs would need
/// another program.
const VIEWER: &str = "
import contextlib, importlib.util, json, pickle, sys
spec = importlib.util.spec_from_file_location('viewer', sys.argv[1])
viewer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer)
data = sys.stdin.buffer.read()
read = lambda: pickle.loads(data)
lines = lambda text: text
summary, trace = viewer.segsum(read()), viewer.trace(read())
assert 'total_allocated' in summary, summary
assert 'entries' in trace, trace
assert viewer.segments(read(), format_flamegraph=lines).count('active_allocated') > 0
assert viewer.memory(read(), format_flamegraph=lines).count('snapshot.rs') > 0
with contextlib.redirect_stdout(sys.stderr):
    viewer.compare(read()['segments'], read()['segments'], format_flamegraph=lines)
for page in (viewer.trace_plot(read()), viewer.trace_plot(read(), plot_segments=True), viewer.trace_plot(read(), filter_freed=True),
             viewer.segment_plot(read())):
    assert 'add_local_files' in page
json.dump({'summary': summary, 'trace': trace}, sys.stdout)
";

/// Loads a pickle with PyTorch's memory viewer; returns `None` if `CURIUM_MEMORY_VIZ` does not name
/// the file `_memory_viz.py`.
#[expect(clippy::print_stderr, reason = "a skipped check is reported")]
fn viewer(pickle: &[u8]) -> TestResult<Option<Value>> {
    let Some(path) = std::env::var_os("CURIUM_MEMORY_VIZ") else {
        eprintln!(
            "skipped: PyTorch's viewer, because CURIUM_MEMORY_VIZ is not the path of its torch/cuda/_memory_viz.py"
        );
        return Ok(None);
    };
    let output = run_python(VIEWER, &[path], pickle)?.ok_or("no Python for the viewer")?;
    Ok(Some(serde_json::from_slice(&output)?))
}

/// Loads a pickle with Python; returns `None` without Python.
fn python(pickle: &[u8]) -> TestResult<Option<Value>> {
    let Some(output) = run_python(SCRIPT, &[], pickle)? else {
        return Ok(None);
    };
    Ok(Some(serde_json::from_slice(&output)?))
}

/// Returns the output of a Python script, or `None` without Python.
fn run_python(script: &str, arguments: &[OsString], input: &[u8]) -> TestResult<Option<Vec<u8>>> {
    let mut command = Command::new("python3");
    command
        .args(["-c", script])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        return Ok(None);
    };
    let mut stdin = child.stdin.take().ok_or("stdin is not piped")?;
    stdin.write_all(input)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    assert!(
        output.status.success(),
        "Python failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Some(output.stdout))
}

fn free(
    resource: &impl Resource,
    stream: &Stream,
    pointer: DevicePointer<u8>,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the tests pass memory of this resource that is not in use.
    unsafe { resource.deallocate(stream, pointer, bytes, 256) }
}

#[driver_test]
fn snapshot_is_readable_by_the_viewer_and_by_python(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = CachingOptions::new().with_cache(true);
    let cache = CachingResource::with_options(&test.context(), &options)?;
    let cache = LeakTracker::new(cache);
    let before = cache.allocate(&stream, 12_345, 256)?;
    let resource = AllocationRecorder::ring(cache, 2000);
    let mut live = Vec::new();
    for round in 0..800_usize {
        let bytes = 1 + (round * 7919) % 300_000;
        live.push((resource.allocate(&stream, bytes, 256)?, bytes));
        if round % 3 != 0 {
            let (pointer, bytes) = live.swap_remove((round * 31) % live.len());
            free(&resource, &stream, pointer, bytes)?;
        }
    }
    let error = resource
        .allocate(&stream, usize::MAX / 4, 256)
        .expect_err("no device has that much memory");
    let Error::OutOfMemory(figures) = &error else {
        panic!("{error}")
    };
    let left = figures.free.ok_or("no free memory reported")?;
    assert!(
        left > 0 && error.to_string().contains(&format!("{left} of ")),
        "{error}"
    );
    let fail = resource
        .events()
        .last()
        .map(|event| (event.kind, event.address));
    assert_eq!(fail, Some((EventKind::Fail, left as u64)));
    let live_blocks = resource.inner().live();
    let snapshot = Snapshot::new(0, resource.events())
        .with_live(&live_blocks)
        .with_segments(resource.inner().inner());
    let pickle = snapshot.to_pickle();
    let read = Unpickler::read(&pickle);
    check(&read, 0)?;
    let blocks = array(&read, "segments")
        .iter()
        .flat_map(|segment| array(segment, "blocks"));
    let in_use = blocks
        .filter(|block| text(block, "state") == "active_allocated")
        .count();
    assert_eq!(in_use, live.len() + 1);
    if let Some(value) = python(&pickle)? {
        assert_eq!(value, read);
    }
    if let Some(rendered) = viewer(&pickle)? {
        assert!(
            text(&rendered, "trace").contains("raise OutOfMemoryError"),
            "{rendered}"
        );
        assert!(
            !text(&rendered, "trace").contains("0.0B free in CUDA"),
            "{rendered}"
        );
    }
    for (pointer, bytes) in live {
        free(&resource, &stream, pointer, bytes)?;
    }
    free(resource.inner(), &stream, before, 12_345)?;
    Ok(())
}

/// Created and released segments are events of the snapshot.
#[driver_test]
fn snapshot_records_segment_events(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mib = 1 << 20;
    let options = CachingOptions::new()
        .with_cache(true)
        .with_segment_bytes(2 * mib);
    let mapped = CachingResource::with_options(&test.context(), &options)?;
    let upstream =
        CachingResource::with_upstream(&test.context(), &options, curium_memory::StreamOrdered)?;
    for cache in [mapped, upstream] {
        let resource = AllocationRecorder::ring(cache, 1000);
        let mut live = Vec::new();
        for count in 1..9 {
            let bytes = count * mib;
            live.push((resource.allocate(&stream, bytes, 256)?, bytes));
        }
        for (pointer, bytes) in live.drain(2..) {
            free(&resource, &stream, pointer, bytes)?;
        }
        stream.synchronize()?;
        resource.trim(&stream, 0)?;
        live.push((resource.allocate(&stream, 5 * mib, 256)?, 5 * mib));
        let events = resource.events();
        let segments: Vec<_> = events
            .iter()
            .filter(|event| event.kind.is_segment_event())
            .collect();
        let (came, went) = segments.iter().partition::<Vec<_>, _>(|event| {
            matches!(
                event.kind,
                EventKind::MapSegment | EventKind::AllocateSegment
            )
        });
        assert!(!came.is_empty() && !went.is_empty(), "{segments:?}");
        let sum = |events: &[&&AllocationEvent]| {
            events.iter().map(|event| event.bytes as u64).sum::<u64>()
        };
        assert_eq!(
            sum(&came) - sum(&went),
            resource.inner().statistics().reserved_bytes
        );
        let text = AllocationLog::new(events.clone()).to_string();
        assert_eq!(text.parse::<AllocationLog>()?.events().len(), events.len());
        for snapshot in [
            Snapshot::new(0, events.clone()),
            Snapshot::new(0, events).with_segments(resource.inner()),
        ] {
            let pickle = snapshot.to_pickle();
            let read = Unpickler::read(&pickle);
            check(&read, 0)?;
            let total: u64 = array(&read, "segments")
                .iter()
                .map(|segment| number(segment, "total_size"))
                .sum();
            assert_eq!(
                total,
                resource.inner().statistics().reserved_bytes,
                "every segment exists"
            );
            viewer(&pickle)?;
        }
        for (pointer, bytes) in live {
            free(&resource, &stream, pointer, bytes)?;
        }
    }
    Ok(())
}

/// A snapshot without segments derives them from the blocks.
#[driver_test]
fn snapshot_derives_segments_from_blocks(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let resource = AllocationRecorder::ring(curium_memory::StreamOrdered, 1000);
    let live = (1..5)
        .map(|index| resource.allocate(&stream, 777 * index, 256))
        .collect::<Result<Vec<_>>>()?;
    free(&resource, &stream, live[1], 1554)?;
    let pickle = Snapshot::new(3, resource.events()).to_pickle();
    check(&Unpickler::read(&pickle), 3)?;
    python(&pickle)?;
    for index in [0, 2, 3] {
        free(&resource, &stream, live[index], 777 * (index + 1))?;
    }
    check(
        &Unpickler::read(&Snapshot::new(0, resource.events()).to_pickle()),
        0,
    )?;
    check(
        &Unpickler::read(&Snapshot::new(0, Vec::new()).to_pickle()),
        0,
    )?;
    Ok(())
}
