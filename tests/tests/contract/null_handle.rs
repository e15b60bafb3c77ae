//! A function that reports success and creates nothing: the operation fails, and its error names
//! the function.

use std::collections::BTreeSet;

use curium_driver::{Error, ErrorClass, Event, EventFlags, Function};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{TestDriver, TestResult, on_simulator, simulator_test, skip};

use crate::operations::{self, Fixture, Operation};

/// Parts of the names of functions that create something.
const CREATE: &[&str] = &[
    "Create",
    "Alloc",
    "Instantiate",
    "Clone",
    "Load",
    "Import",
    "Open",
    "Retain",
    "Reserve",
    "Connect",
];

/// Functions with such names that return no handle.
const NO_HANDLE: &[&str] = &[
    "cuFuncLoad",
    "cuGraphConditionalHandleCreate",
    "cuGraphKernelNodeSetEnabled",
    "cuGraphRetainUserObject",
    "cuMemGetAllocationGranularity",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuModuleGetLoadingMode",
    "cuFuncIsLoaded",
    "cuUserObjectRetain",
];

/// Functions that add a node or look up code by name, without such a part in their names.
const OTHERS: &[Function] = &[
    Function::cuGraphAddKernelNode_v2,
    Function::cuGraphAddMemcpyNode,
    Function::cuGraphAddMemsetNode,
    Function::cuGraphAddHostNode,
    Function::cuGraphAddEmptyNode,
    Function::cuGraphAddEventRecordNode,
    Function::cuGraphAddEventWaitNode,
    Function::cuGraphAddChildGraphNode,
    Function::cuGraphAddBatchMemOpNode,
    Function::cuGraphAddNode_v2,
    Function::cuKernelGetFunction,
    Function::cuLibraryGetKernel,
    Function::cuLibraryGetModule,
    Function::cuLinkComplete,
    Function::cuModuleGetFunction,
    Function::cuStreamEndCapture,
];

fn creates(function: Function) -> bool {
    let name = function.name();
    let is_query = NO_HANDLE.contains(&name)
        || ["Attribute", "Export", "GetParams"]
            .iter()
            .any(|part| name.contains(part));
    OTHERS.contains(&function) || !is_query && CREATE.iter().any(|part| name.contains(part))
}

/// Returns the creating functions that `operation` calls, and those whose null handle it accepted
/// without an error.
fn unnoticed(
    test: &TestDriver,
    simulator: &Simulator,
    (name, operation): Operation,
) -> (Vec<Function>, Vec<String>) {
    let mut fixture = Fixture::new(test);
    let before: Vec<_> = Function::all()
        .map(|function| simulator.calls(function))
        .collect();
    drop(operation(&mut fixture).unwrap_or_else(|error| panic!("{name}: {error}")));
    let called = Function::all()
        .zip(before)
        .filter(|(function, calls)| simulator.calls(*function) > *calls);
    let created: Vec<_> = called
        .map(|(function, _)| function)
        .filter(|function| creates(*function))
        .collect();
    let mut unnoticed = Vec::new();
    for function in &created {
        let mut fixture = Fixture::new(test);
        simulator.inject(Fault::on(*function).creates_nothing());
        let result = operation(&mut fixture);
        simulator.clear_faults();
        match result {
            Ok(_) => unnoticed.push(format!("{name} works without {function}")),
            Err(error)
                if error.function() == Some(*function)
                    && error.code() == Some(CUresult::CUDA_SUCCESS) => {}
            Err(error) => unnoticed.push(format!("{name} without {function}: {error}")),
        }
    }
    (created, unnoticed)
}

#[test]
fn null_handles_are_errors() {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    let newest = || Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
    let newer = operations::newer()
        .into_iter()
        .map(|operation| (operation, newest()));
    let mut functions = BTreeSet::new();
    let mut unnoticed = Vec::new();
    for (operation, config) in operations::all()
        .into_iter()
        .map(|operation| (operation, Config::new()))
        .chain(newer)
    {
        on_simulator(config, |test, simulator| {
            let (created, mut failed) = self::unnoticed(test, simulator, operation);
            functions.extend(created);
            unnoticed.append(&mut failed);
        });
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(functions.len() > 40, "the sweep called only {functions:?}");
}

#[simulator_test]
fn null_handle_error_states_the_cause(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let context = test.context();
    simulator.inject(Fault::on(Function::cuEventCreate).creates_nothing());
    let error: Error = Event::new(&context, EventFlags::empty()).expect_err("there is no event");
    assert_eq!(error.class(), ErrorClass::System);
    assert!(!error.is_sticky());
    assert_eq!(
        error.to_string(),
        "cuEventCreate: reported success and returned a null handle (CUDA_SUCCESS = 0); the driver library is damaged, a stub, or \
             an incomplete replacement of the driver"
    );
    Event::new(&context, EventFlags::empty())?;
    Ok(())
}
