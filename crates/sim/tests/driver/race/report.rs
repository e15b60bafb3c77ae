//! Reports of races, and their consequences.

use curium_sim::{Checks, Config};
use curium_sys::CUresult;

use super::{BYTES, NON_BLOCKING, Program};
use crate::support::{Fixture, cu, get, handle, ok};

#[test]
fn report_names_both_accesses() {
    let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
    let api = &program.fixture.api;
    let numbers: [u64; 2] = program
        .streams
        .map(|stream| get!(api, cuStreamGetId(stream, _)));
    ok!(
        api,
        cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[0])
    );
    // The host's queries determine the order of the two.
    while cu!(api, cuStreamQuery(program.streams[0])) == CUresult::CUDA_ERROR_NOT_READY {}
    program.write(1);
    assert_eq!(program.end(), [], "the query orders the host");
    program.write(0);
    let gate = program.fixture.block(program.streams[1]);
    ok!(
        api,
        cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[1])
    );
    ok!(api, cuStreamSynchronize(program.streams[0]));
    gate.open();
    assert_eq!(
        program.end(),
        [],
        "the host function is ordered after the query"
    );
    let event = handle!(api, cuEventCreate(_, 0));
    ok!(api, cuEventRecord(event, program.streams[1]));
    ok!(api, cuStreamWaitEvent(program.streams[0], event, 0));
    ok!(
        api,
        cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[1])
    );
    program.write(0);
    let fault = program.end().remove(0);
    let text = fault.to_string();
    let (memory, [first, second]) = (program.memory, numbers);
    let expected = if fault.kernel.is_empty() {
        format!(
            "fill in stream {second}: race with kernel `put` in stream {first}, which wrote there and is not ordered before it: \
             4-byte write at {:#x}, 64 bytes into a {BYTES}-byte allocation at {memory:#x}",
            memory + 64
        )
    } else {
        format!(
            "kernel `put` in stream {first}: race with fill in stream {second}, which wrote there and is not ordered before it: \
             4-byte write at {:#x}, 64 bytes into a {BYTES}-byte allocation at {memory:#x}, block (0, 0, 0), thread (16, 0, 0), \
             PTX line 11",
            memory + 64
        )
    };
    assert_eq!(text, expected);
}

#[test]
fn default_ignores_races() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(BYTES);
    for stream in [fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING)] {
        ok!(fixture.api, cuMemsetD8Async(memory, 0, BYTES, stream));
    }
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.simulator.reports(), []);
}

#[test]
fn race_report_continues() {
    let config = Config::new()
        .with_checks(Checks::Report)
        .with_race_checks(true);
    let fixture = Fixture::with(config);
    let memory = fixture.alloc(BYTES);
    for stream in [fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING)] {
        ok!(fixture.api, cuMemsetD8Async(memory, 7, BYTES, stream));
    }
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.download(memory, BYTES), vec![7; BYTES]);
    assert_eq!(fixture.simulator.reports().len(), 1);
}
