//! Modules of many forms, and the results of their kernels.

use curium_driver::{Device, Error, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::TestResult;

use crate::form::{Form, Operand};
use crate::operands::{COUNT, operands};

/// The number of kernels in a module.
const PER_MODULE: usize = 100;
/// The number of operand words of a thread.
const SOURCES: usize = 4;

/// Returns a module with a kernel `f0`, `f1` … for each form.
pub(crate) fn module(forms: &[&Form]) -> String {
    let architecture = forms
        .iter()
        .map(|form| form.architecture)
        .max()
        .unwrap_or_default();
    let kernels: String = forms
        .iter()
        .enumerate()
        .map(|(index, form)| kernel(index, form))
        .collect();
    format!(".version 8.8\n.target sm_{architecture}\n.address_size 64\n{kernels}")
}

/// Returns the register name for an operand: `%ra` has 32 bits, `%ha` 16 and `%la` 64.
fn register(operand: Operand, letter: char) -> String {
    let class = match operand.register() {
        16 => 'h',
        32 => 'r',
        _ => 'l',
    };
    format!("%{class}{letter}")
}

fn kernel(index: usize, form: &Form) -> String {
    let mut loads = String::new();
    let mut code = form.code.replace("$d", &register(form.result, 'd'));
    for (position, (source, letter)) in form.sources.iter().zip(['a', 'b', 'c', 'e']).enumerate() {
        let target = register(*source, letter);
        loads += &format!(
            "    ld.global.b{} {target}, [%in+{}];\n",
            source.bits(),
            8 * position
        );
        code = code.replace(&format!("${letter}"), &target);
    }
    let result = register(form.result, 'd');
    let declared: String = [("h", 16), ("r", 32), ("l", 64)]
        .iter()
        .map(|(class, bits)| {
            let names: Vec<String> = "abcdexyzw"
                .chars()
                .map(|letter| format!("%{class}{letter}"))
                .collect();
            format!("    .reg .b{bits} {};\n", names.join(", "))
        })
        .collect();
    format!(
        "// {name}
.visible .entry f{index}(.param .u64 in, .param .u64 out)
{{
    .reg .pred %p, %q, %s;
{declared}    .reg .b32 %block, %size, %thread;
    .reg .b64 %in, %out;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %in, %in;
    cvta.to.global.u64 %out, %out;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %thread, %block, %size, %thread;
    mad.wide.u32 %in, %thread, 32, %in;
    mad.wide.u32 %out, %thread, 8, %out;
{loads}    {code}
    st.global.b{bits} [%out], {result};
    ret;
}}
",
        name = form.name,
        bits = form.result.register(),
    )
}

/// Calls `found` with each form and its results, or with the driver's error if it does not load.
pub(crate) fn run(
    stream: &Stream,
    forms: &[&Form],
    mut found: impl FnMut(&Form, Result<Vec<u64>, Error>),
) {
    for forms in forms.chunks(PER_MODULE) {
        if let Ok(library) = Library::from_ptx(stream, &module(forms)) {
            for (index, form) in forms.iter().enumerate() {
                found(form, Ok(results(stream, &library, index, form)));
            }
            continue;
        }
        // One of them is rejected; loading each by itself finds it.
        for form in forms {
            let library = Library::from_ptx(stream, &module(&[form]));
            found(
                form,
                library.map(|library| results(stream, &library, 0, form)),
            );
        }
    }
}

fn results(stream: &Stream, library: &Library, index: usize, form: &Form) -> Vec<u64> {
    let sources: Vec<u64> = operands(form).into_iter().flatten().collect();
    assert_eq!(sources.len(), COUNT * SOURCES);
    let sources = DeviceBuffer::from_slice(stream, &sources).expect("allocation failed");
    let mut results = DeviceBuffer::<u64>::zeroed(stream, COUNT).expect("allocation failed");
    let kernel = library
        .kernel::<(&[u64], &mut [u64])>(&format!("f{index}"))
        .expect("the module has the kernel");
    // SAFETY: the launch has one thread per result, each of which reads its own operands and writes
    // its own result.
    unsafe {
        kernel.launch(
            stream,
            LaunchConfig::new(COUNT as u32 / 128, 128),
            (&sources, &mut results),
        )
    }
    .unwrap_or_else(|error| panic!("{}: {error}", form.name));
    results
        .to_vec()
        .unwrap_or_else(|error| panic!("{}: {error}", form.name))
}

/// Returns the compute capability of a device as a target number.
pub(crate) fn architecture(device: &Device) -> TestResult<u32> {
    let capability = device.compute_capability()?;
    Ok(capability.major * 10 + capability.minor)
}
