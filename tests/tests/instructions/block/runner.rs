//! Runs the forms: by module, and one by one if a module does not load.
//!
//! On this machine's driver each family has a process of its own, so that a form that crashes the
//! compiler or corrupts the context does not affect other families. A form that the driver does not
//! compile or find, or whose texture it does not create, is skipped, like a form with a declared
//! reason: it is printed, and appended to `FILE.left-out` if `CURIUM_INSTRUCTION_RECORD=FILE` is
//! set.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use curium_driver::{Dimensions, Error, Kernel, LaunchAttributes, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel};
use curium_tests::{
    TestDriver, TestResult, on_driver, on_simulator, uses_cuda, with_output_of_new_process,
};

use super::{BlockForm, FAMILIES, Output, TABLE, forms, module};
use crate::form::Sources;
use crate::operands::words;
use crate::program::architecture;

/// The number of kernels in a module.
const PER_MODULE: usize = 100;

/// The kernel of a form: `table`, the operands, the results, and work memory.
type FormKernel = Kernel<(
    [u64; 4],
    &'static [u64],
    &'static mut [u64],
    &'static mut [u64],
)>;

/// The results of a family.
#[derive(Default)]
struct Outcome {
    wrong: String,
    /// The forms that the driver rejects, each with the error.
    left_out: Vec<String>,
    ran: usize,
}

impl Outcome {
    /// Runs the forms, up to the first that corrupts the context.
    fn new(stream: &Stream, forms: &[&BlockForm]) -> Self {
        let mut outcome = Self::default();
        let (out, forms): (Vec<&BlockForm>, Vec<_>) = forms
            .iter()
            .copied()
            .partition(|form| uses_cuda() && form.left_out.is_some());
        outcome.left_out = out
            .into_iter()
            .map(|form| format!("{}: {}", form.name, form.left_out.unwrap_or("")))
            .collect();
        for forms in forms.chunks(PER_MODULE) {
            let together = Library::from_ptx(stream, &module(forms));
            for (index, form) in forms.iter().enumerate() {
                let among_others = together
                    .as_ref()
                    .ok()
                    .and_then(|library| kernel_at(library, index).ok());
                let kernel = among_others.map_or_else(
                    || {
                        Library::from_ptx(stream, &module(&[form]))
                            .and_then(|library| kernel_at(&library, 0))
                    },
                    Ok,
                );
                if !outcome.add(stream, form, kernel) {
                    return outcome;
                }
            }
        }
        outcome
    }

    /// Runs a form; returns `true` if further forms can run after it.
    fn add(
        &mut self,
        stream: &Stream,
        form: &BlockForm,
        kernel: Result<FormKernel, Error>,
    ) -> bool {
        let ready = kernel.and_then(|kernel| {
            let prepared = form
                .prepare
                .as_ref()
                .map(|prepare| prepare(stream))
                .transpose()?;
            Ok((kernel, prepared))
        });
        let (kernel, prepared) = match ready {
            Ok(ready) => ready,
            Err(error) if uses_cuda() && !error.is_sticky() => {
                self.left_out.push(format!(
                    "{}: {}",
                    form.name,
                    error.to_string().replace('\n', " ")
                ));
                return true;
            }
            Err(error) => return self.fail(form, &error),
        };
        let table = prepared.as_ref().map_or(TABLE, |prepared| prepared.table);
        self.ran += 1;
        let sources = words(&form.name, form.extent.threads());
        match results(stream, &kernel, form, &sources, table) {
            Ok(found) => self.wrong += &judge(form, &sources, &found),
            Err(error) => return self.fail(form, &error),
        }
        true
    }

    /// Records an error; returns `true` if further forms can run after it.
    fn fail(&mut self, form: &BlockForm, error: &Error) -> bool {
        self.wrong += &format!("{}: {error}\n", form.name);
        !error.is_sticky()
    }

    /// Prints the skipped forms.
    #[expect(
        clippy::print_stdout,
        reason = "the output of the tests lists those that were skipped"
    )]
    fn report(&self) {
        let Some(path) = std::env::var_os("CURIUM_INSTRUCTION_RECORD").map(PathBuf::from) else {
            self.left_out
                .iter()
                .for_each(|line| println!("skipped: {line}"));
            return;
        };
        let text: String = self
            .left_out
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        let path = path.with_added_extension("left-out");
        let file = File::options().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("failed to write the list");
    }
}

/// Returns the kernel of the form at this index of its module: some drivers report an error only at
/// the lookup.
fn kernel_at(library: &Library, index: usize) -> Result<FormKernel, Error> {
    library.kernel(&format!("f{index}"))
}

fn results(
    stream: &Stream,
    kernel: &FormKernel,
    form: &BlockForm,
    sources: &[Sources],
    table: [u64; 4],
) -> Result<Vec<Output>, Error> {
    let flat: Vec<u64> = sources.iter().flatten().copied().collect();
    let flat = DeviceBuffer::from_slice(stream, &flat)?;
    let mut output = DeviceBuffer::<u64>::zeroed(stream, 4 * sources.len())?;
    let mut work = DeviceBuffer::<u64>::zeroed(stream, 8 * sources.len())?;
    let config = LaunchConfig::new(dimensions(form.extent.grid), form.extent.block as u32);
    let attributes = form
        .extent
        .cluster
        .map_or(LaunchAttributes::new(), |cluster| {
            LaunchAttributes::new().with_cluster(dimensions(cluster))
        });
    // SAFETY: each thread reads its own operands, and writes its own elements of the other two
    // buffers; the caller keeps the objects in `table` alive until the results are read.
    unsafe {
        kernel.launch_with(
            stream,
            config,
            &attributes,
            (table, &flat, &mut output, &mut work),
        )
    }?;
    Ok(output.to_vec()?.as_chunks::<4>().0.to_vec())
}

/// Returns the dimensions of a launch.
fn dimensions([x, y, z]: [u32; 3]) -> Dimensions {
    Dimensions::from((x, y, z))
}

/// Returns a description of the mismatch of a form's results, or an empty string.
fn judge(form: &BlockForm, sources: &[Sources], found: &[Output]) -> String {
    let expected = (form.expected)(sources);
    assert_eq!(
        expected.len(),
        found.len(),
        "{} expects results of all threads",
        form.name
    );
    // PTX does not specify the bits of an `f64` NaN.
    let adds_doubles = form.name.contains(".add.f64");
    let is_nan = |word: &u64| f64::from_bits(*word).is_nan();
    let alike =
        |(expected, found): (&u64, &u64)| expected == found || is_nan(expected) && is_nan(found);
    let holds = |expected: &Output, found: &Output| {
        let mut words = expected.iter().zip(found);
        expected == found
            || form.tolerance > 0.0
                && words.clone().all(|(expected, found): (&u64, &u64)| {
                    let [expected, found] =
                        [expected, found].map(|word| f32::from_bits(*word as u32));
                    expected == found || (expected - found).abs() <= form.tolerance
                })
            || adds_doubles && words.all(alike)
    };
    let wrong = expected
        .iter()
        .zip(found)
        .enumerate()
        .find(|(_, (expected, found))| !holds(expected, found));
    wrong.map_or_else(String::new, |(thread, (expected, found))| {
        format!(
            "{}: thread {thread} of {:x?} left {found:x?}, not {expected:x?}\n",
            form.name, sources[thread]
        )
    })
}

/// Runs the forms of a family that the device supports.
fn check(test: &TestDriver, family: &str) -> TestResult {
    let all = FAMILIES
        .iter()
        .find(|(name, _)| *name == family)
        .ok_or("unknown family")?
        .1();
    let capability = architecture(&test.device())?;
    let forms: Vec<&BlockForm> = all
        .iter()
        .filter(|form| form.architecture <= capability)
        .collect();
    let outcome = Outcome::new(&test.stream(), &forms);
    outcome.report();
    assert!(outcome.wrong.is_empty(), "{}", outcome.wrong);
    // Most forms of each family are accepted everywhere, and all of them if none is skipped.
    assert_eq!(outcome.ran + outcome.left_out.len(), forms.len());
    assert!(
        outcome.ran * 2 > forms.len(),
        "{} of {} forms ran: {:?}",
        outcome.ran,
        forms.len(),
        outcome.left_out
    );
    Ok(())
}

/// Runs the test of a family, in a process of its own on this machine's driver.
#[expect(clippy::print_stdout, reason = "the output lists the skipped forms")]
fn alone(test: impl FnOnce() -> TestResult) -> TestResult {
    if !uses_cuda() {
        return test();
    }
    with_output_of_new_process(
        || test().expect("the forms of the family match"),
        |output, _| println!("{output}"),
    );
    Ok(())
}

/// Defines a test for each family, by name.
macro_rules! families {
    ($($family:ident)*) => {
        $(
            #[test]
            fn $family() -> TestResult {
                alone(|| {
                    on_driver(|test| check(test, stringify!($family)))
                })
            }
        )*

        #[test]
        fn every_family_has_a_test() {
            assert_eq!(FAMILIES.map(|(name, _)| name), [$(stringify!($family)),*]);
        }
    };
}

families! { memory atomic warp partition barrier address asynchronous matrix wmma permute call flow cluster texture surface edges tensor tensor_store
tensor_reduction sparse warpgroup }

#[test]
fn newer_block_forms_match() {
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| {
            let all = forms();
            let forms: Vec<&BlockForm> = all.iter().filter(|form| form.architecture > 90).collect();
            let outcome = Outcome::new(&test.stream(), &forms);
            assert!(outcome.wrong.is_empty(), "{}", outcome.wrong);
            assert!(outcome.ran > 10, "only {} forms ran", outcome.ran);
        },
    );
}

#[test]
fn families_keep_their_forms() {
    let count = forms().len();
    assert!(count > 3000, "only {count} forms are left");
}

#[test]
fn block_modules_for_the_assembler() -> TestResult {
    let Some(folder) = std::env::var_os("CURIUM_INSTRUCTION_PTX").map(PathBuf::from) else {
        return curium_tests::skip("`CURIUM_INSTRUCTION_PTX` is not set");
    };
    for (family, forms) in FAMILIES {
        for (index, form) in forms().iter().enumerate() {
            let path = folder
                .join(format!("block-{family}-{index}"))
                .with_extension("ptx");
            std::fs::write(path, module(&[form]))?;
        }
    }
    Ok(())
}
