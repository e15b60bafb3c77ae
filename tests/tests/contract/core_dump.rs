//! [`CoreDump`]: the files that the driver writes when a kernel fails. The simulator writes none.
#![cfg(not(miri))]

use std::path::Path;

use curium_diagnostics::{CoreDump, CoreDumpFlags};
use curium_driver::{ContextFlags, ContextOptions, Kernel, LaunchConfig, Library};
use curium_tests::{TestResult, in_own_process, kernels, on_driver, skip, uses_cuda};

#[test]
fn settings_are_read_back() -> TestResult {
    if !uses_cuda() {
        return skip("needs a GPU");
    }
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let flags = CoreDumpFlags::SKIP_GLOBAL_MEMORY | CoreDumpFlags::SKIP_ABORT;
            let set = "curium.%p.dump";
            let filled_in = format!("curium.{}.dump", std::process::id());
            let scopes = [
                (CoreDump::global(test.driver()), filled_in.as_str()),
                (CoreDump::of_context(&test.context()), set),
            ];
            for (dump, file) in scopes {
                dump.set_file(set)?;
                assert_eq!(dump.file()?, Path::new(file));
                dump.set_flags(flags)?;
                assert_eq!(dump.flags()?, flags);
                for value in [true, false] {
                    dump.set_triggers_host(value)?;
                    assert_eq!(dump.triggers_host()?, value);
                    dump.set_enabled(value)?;
                    assert_eq!(dump.is_enabled()?, value);
                }
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn failing_kernel_leaves_a_dump() -> TestResult {
    if !uses_cuda() {
        return skip("needs a GPU");
    }
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let file = std::env::temp_dir().join(format!("curium.{}.dump", std::process::id()));
            let dump = CoreDump::global(test.driver());
            dump.set_file(&file)?;
            dump.set_triggers_host(false)?;
            let flags = CoreDumpFlags::SKIP_GLOBAL_MEMORY | CoreDumpFlags::SKIP_ABORT;
            dump.set_flags(flags)?;
            dump.set_enabled(true)?;
            let options = ContextOptions::new().with_flags(ContextFlags::COREDUMP);
            let context = test.device().create_context(options)?;
            let stream = context.stream()?;
            let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
            let trap: Kernel<(u32,)> = library.kernel("trap")?;
            // SAFETY: the kernel traps and accesses no memory.
            unsafe { trap.launch(&stream, LaunchConfig::new(1, 1), (1,)) }?;
            stream.synchronize().expect_err("it fails");
            let bytes = std::fs::read(&file)?;
            std::fs::remove_file(&file)?;
            assert_eq!(bytes[..4], *b"\x7fELF");
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

pub(crate) mod operations {
    use curium_diagnostics::{CoreDump, CoreDumpFlags, CoreDumpListener};

    use crate::operations::{Fixture, Operation, Operations, boxed, made};

    const SOLITARY: &[Operation] = &[
        ("CoreDump::is_enabled", |fixture| {
            made(dump(fixture).is_enabled()?)
        }),
        ("CoreDump::set_enabled", |fixture| {
            made(dump(fixture).set_enabled(false)?)
        }),
        ("CoreDump::triggers_host", |fixture| {
            made(dump(fixture).triggers_host()?)
        }),
        ("CoreDump::set_triggers_host", |fixture| {
            made(dump(fixture).set_triggers_host(true)?)
        }),
        ("CoreDump::is_user_triggered", |fixture| {
            made(dump(fixture).is_user_triggered()?)
        }),
        ("CoreDump::set_user_triggered", |fixture| {
            made(dump(fixture).set_user_triggered(false)?)
        }),
        ("CoreDump::file", |fixture| made(dump(fixture).file()?)),
        ("CoreDump::set_file", |fixture| {
            made(dump(fixture).set_file("core")?)
        }),
        ("CoreDump::pipe", |fixture| made(dump(fixture).pipe()?)),
        ("CoreDump::set_pipe", |fixture| {
            made(dump(fixture).set_pipe("pipe")?)
        }),
        ("CoreDump::flags", |fixture| made(dump(fixture).flags()?)),
        ("CoreDump::set_flags", |fixture| {
            made(dump(fixture).set_flags(CoreDumpFlags::empty())?)
        }),
        ("CoreDumpListener::on_start", |fixture| {
            made(CoreDumpListener::on_start(&fixture.driver, |_| {})?)
        }),
        ("CoreDumpListener::on_completion", |fixture| {
            made(CoreDumpListener::on_completion(&fixture.driver, |_| {})?)
        }),
        ("CoreDumpListener::close", |fixture| {
            let listener = CoreDumpListener::on_start(&fixture.driver, |_| {})?;
            listener
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    #[cfg(all(unix, not(miri)))]
    inventory::submit! { Operations::Solitary(SOLITARY) }

    /// Returns the core dump settings of the fixture's context.
    fn dump(fixture: &Fixture) -> CoreDump {
        CoreDump::of_context(&fixture.context)
    }
}
