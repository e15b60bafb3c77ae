//! `curium run`, run as a program.

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use curium_sim::DeviceModel;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn Error>>;

/// Runs a shell script on every rank. Returns the exit code, the sorted lines of output, and the
/// errors.
fn run(arguments: &[&str], script: &str) -> TestResult<(Option<i32>, Vec<String>, String)> {
    let mut command = program::curium();
    command
        .arg("run")
        .args(arguments)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null());
    let outcome = program::run(&mut command)?;
    let mut lines: Vec<_> = outcome.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    Ok((outcome.code, lines, outcome.stderr))
}

#[test]
fn ranks_share_a_rendezvous() -> TestResult {
    let script = "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE; echo $MASTER_ADDR $MASTER_PORT $CURIUM_TOKEN >&2";
    let (code, lines, errors) = run(&["--ranks", "3"], script)?;
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        lines,
        [
            "[0] 0 of 3, 0 of 3",
            "[1] 1 of 3, 1 of 3",
            "[2] 2 of 3, 2 of 3"
        ]
    );
    let mut rendezvous: Vec<_> = errors
        .lines()
        .filter_map(|line| line.split_once("] "))
        .map(|(_, rendezvous)| rendezvous)
        .collect();
    rendezvous.sort_unstable();
    rendezvous.dedup();
    let [address] = rendezvous.as_slice() else {
        panic!("{rendezvous:?}")
    };
    assert!(
        address.starts_with("127.0.0.1 ")
            && address
                .split(' ')
                .nth(2)
                .is_some_and(|token| token.len() == 64),
        "{address}"
    );
    Ok(())
}

/// The exit code is that of the failed rank.
#[test]
fn failed_rank_ends_the_others() -> TestResult {
    let start = Instant::now();
    let script = "if [ $RANK = 2 ]; then exit 7; fi; echo begun; exec sleep 100";
    let (code, lines, errors) = run(&["-n", "4", "--grace", "100"], script)?;
    assert_eq!(code, Some(7), "{errors}");
    assert!(
        errors.contains("rank 2 failed (exit status: 7)"),
        "{errors}"
    );
    assert!(
        lines.iter().all(|line| line.ends_with("begun")),
        "{lines:?}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
    Ok(())
}

/// A rank that ignores the request to terminate is killed after the grace period.
#[test]
fn stubborn_rank_is_killed() -> TestResult {
    let start = Instant::now();
    let script =
        "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; trap '' TERM; while :; do sleep 0.1; done";
    let (code, _, errors) = run(&["-n", "2", "--grace", "1"], script)?;
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(20)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    Ok(())
}

/// A rank that a signal ends gives 128 plus the signal's number.
#[test]
fn signal_sets_the_exit_code() -> TestResult {
    let (code, _, errors) = run(
        &["-n", "2"],
        "if [ $RANK = 1 ]; then kill -KILL $$; fi; exec sleep 60",
    )?;
    assert_eq!(code, Some(137), "{errors}");
    Ok(())
}

#[test]
fn sigterm_ends_every_rank() -> TestResult {
    let script = "trap 'echo ended; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let command = ["run", "-n", "2", "--", "sh", "-c", script];
    let mut program = program::curium()
        .args(command)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?)
        .lines()
        .map_while(Result::ok);
    let mut lines: Vec<String> = output.by_ref().take(2).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let killed = Command::new("kill")
        .arg(program.id().to_string())
        .status()?;
    assert!(killed.success());
    lines.extend(output);
    assert_eq!(program.wait()?.code(), Some(143));
    lines.sort();
    assert_eq!(lines, ["[0] begun", "[0] ended", "[1] begun", "[1] ended"]);
    Ok(())
}

/// The ranks load the simulator's libraries.
#[test]
fn each_rank_gets_a_device() -> TestResult {
    let folder = tempfile::tempdir()?;
    let file = |name| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").expect("the folder is writable");
        path.to_str().expect("the path is text").to_owned()
    };
    // The shell loads none of them.
    let driver = file("libcuda.so.1");
    let nccl = file("libnccl.so.2");
    let cublas = file("libcublas.so.13");
    let cufft = file("libcufft.so.12");
    let arguments = ["--ranks", "3", "--simulated", "--simulator", &driver];
    let (code, lines, errors) = run(
        &arguments,
        "echo $CURIUM_SIM_DEVICES $CURIUM_DRIVER_PATH $CURIUM_NCCL_PATH $CURIUM_CUBLAS_PATH $CURIUM_CUFFT_PATH",
    )?;
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        lines,
        [0, 1, 2].map(|rank| format!("[{rank}] 3 {driver} {nccl} {cublas} {cufft}"))
    );
    Ok(())
}

#[test]
fn device_models_are_listed() -> TestResult {
    let output = program::curium()
        .args(["run", "--device-model", "list"])
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(rows.len(), 1 + DeviceModel::all().count(), "{text}");
    assert!(
        rows[0].contains("compute capability") && rows[0].contains("L2 cache"),
        "{text}"
    );
    let cells: Vec<_> = rows[1].split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "T4", "7.5", "40", "14.6", "GiB", "64.0", "KiB", "4.0", "MiB"
        ]
    );
    Ok(())
}

/// A name may be written without spaces and in lower case.
#[test]
fn ranks_get_the_device_model() -> TestResult {
    let folder = tempfile::tempdir()?;
    let driver = folder.path().join("libcuda.so.1");
    std::fs::write(&driver, "")?;
    let driver = driver.to_str().ok_or("the path is not UTF-8")?;
    let arguments = [
        "-n",
        "1",
        "--device-model",
        "rtx4090",
        "--simulator",
        driver,
    ];
    let (code, lines, errors) = run(&arguments, "echo $CURIUM_SIM_DEVICE_MODEL")?;
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(lines, ["[0] RTX 4090"]);
    Ok(())
}

/// The error for an unknown name proposes a similar one.
#[test]
fn unknown_device_model_is_refused() -> TestResult {
    let (code, _, errors) = run(&["--device-model", "RTX 4080"], "true")?;
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("similar") && errors.contains("RTX 4090"),
        "{errors}"
    );
    let output = program::curium()
        .args(["run", "--device-model", "A100"])
        .output()?;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    Ok(())
}

#[test]
fn unstartable_program_is_named() -> TestResult {
    let output = program::curium()
        .args(["run", "-n", "2", "--", "./absent"])
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("./absent could not be started"),
        "{output:?}"
    );
    Ok(())
}

#[test]
fn rank_count_is_positive() -> TestResult {
    let output = program::curium()
        .args(["run", "-n", "0", "--", "true"])
        .output()?;
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

/// A failed rank ends the processes that ranks left in the background, too.
#[test]
fn descendants_end_with_the_rank() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ended");
    let script = format!(
        "if [ $RANK = 0 ]; then exec sleep 100; fi; sh -c 'trap \"echo >{}; exit\" TERM; echo ready; while :; do sleep 0.05; done' & \
         sleep 1; exit 3",
        file.display()
    );
    let start = Instant::now();
    let (code, lines, errors) = run(&["-n", "2", "--grace", "20"], &script)?;
    assert_eq!(code, Some(3), "{errors}");
    assert_eq!(lines, ["[1] ready"]);
    assert!(file.exists(), "the descendant received no SIGTERM");
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    Ok(())
}

/// A descendant that ignores SIGTERM is killed after the grace period, and its output until then is
/// forwarded.
#[test]
fn stubborn_descendant_is_killed() -> TestResult {
    let start = Instant::now();
    let script =
        "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & sleep 0.5; exit 3";
    let (code, lines, errors) = run(&["-n", "1", "--grace", "1"], script)?;
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    let [line] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    let id = line.trim_start_matches("[0] ");
    assert!(!is_running(id), "process {id} is running");
    Ok(())
}

/// Returns `true` if the process exists and is no zombie.
fn is_running(id: &str) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", id])
        .output()
        .expect("ps exists");
    let state = String::from_utf8_lossy(&output.stdout);
    !state.trim().is_empty() && !state.starts_with('Z')
}

/// After all ranks succeeded, a descendant that holds the output has the grace period to end.
#[test]
fn job_ends_its_descendants() -> TestResult {
    let start = Instant::now();
    let script = "(sleep 0.3; echo late; exec sleep 100) & echo $!";
    let (code, lines, errors) = run(&["-n", "1", "--grace", "1"], script)?;
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    let [id, late] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(late, "[0] late");
    let id = id.trim_start_matches("[0] ");
    assert!(!is_running(id), "process {id} is running");
    Ok(())
}

/// A process in a session of its own is not terminated, but does not hold the job, although it
/// holds the pipe.
#[cfg(target_os = "linux")]
#[test]
fn other_session_holds_no_job() -> Result<(), Box<dyn Error>> {
    for code in [0, 3] {
        let start = Instant::now();
        let script = format!("echo before; setsid sleep 30 & sleep 0.2; echo after; exit {code}");
        let (exit_code, lines, errors) = run(&["-n", "2", "--grace", "1"], &script)?;
        assert_eq!(exit_code, Some(code), "{errors}");
        let after = lines.iter().filter(|line| line.ends_with("after")).count();
        assert!(after >= 1, "{lines:?}");
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "{:?}",
            start.elapsed()
        );
    }
    Ok(())
}

/// A process in a session of its own that writes without an end does not hold the job either.
#[cfg(target_os = "linux")]
#[test]
fn endless_output_holds_no_job() -> TestResult {
    let start = Instant::now();
    let script = "setsid timeout 30 yes & sleep 0.2; exit 3";
    let mut command = program::curium();
    command.args(["run", "-n", "1", "--grace", "1", "--", "sh", "-c", script]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    assert_eq!(status.code(), Some(3));
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    Ok(())
}

/// A line of 64 MiB without an end is forwarded in pieces, in little memory.
#[cfg(target_os = "linux")]
#[test]
fn endless_line_is_bounded() -> Result<(), Box<dyn Error>> {
    let script = "head -c 67108864 /dev/zero; echo; echo end; exec sleep 100";
    let mut program = program::curium()
        .args(["run", "-n", "1", "--grace", "1", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    let mut output = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?);
    let mut line = Vec::new();
    let mut longest = 0;
    while line != b"[0] end\n" {
        line.clear();
        assert!(output.read_until(b'\n', &mut line)? > 0, "no end");
        longest = longest.max(line.len());
    }
    assert_eq!(longest, 65536 + "[0] \n".len());
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()))?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|peak| peak.trim().strip_suffix(" kB"))
        .ok_or("no `VmHWM` line")?;
    assert!(
        Command::new("kill")
            .arg(program.id().to_string())
            .status()?
            .success()
    );
    program.wait()?;
    assert!(peak.parse::<usize>()? < 48 * 1024, "{peak} KiB");
    Ok(())
}

/// The second interrupt kills ranks that ignore the first.
#[test]
fn second_interrupt_kills() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let script = "trap '' TERM INT; echo begun; while :; do sleep 0.05; done";
    let mut program = interruptible_curium()
        .args([
            "run", "-n", "2", "--grace", "1000", "--", "sh", "-c", script,
        ])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?);
    assert_eq!(output.lines().take(2).count(), 2);
    while program.try_wait()?.is_none() {
        assert!(start.elapsed() < Duration::from_secs(30));
        Command::new("kill")
            .args(["-INT", &program.id().to_string()])
            .status()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(program.wait()?.code(), Some(130));
    Ok(())
}

/// The longest grace period is no time limit.
#[test]
fn longest_grace_period() -> TestResult {
    let grace = u64::MAX.to_string();
    let script = "if [ $RANK = 1 ]; then exit 3; fi; exec sleep 100";
    let (code, _, errors) = run(&["-n", "2", "--grace", &grace], script)?;
    assert_eq!(code, Some(3), "{errors}");
    let (code, _, errors) = run(&["-n", "2", "--grace", &grace], "exit 0")?;
    assert_eq!(code, Some(0), "{errors}");
    Ok(())
}

/// Returns a pipe whose reader has closed it.
fn closed_pipe() -> std::io::Result<Stdio> {
    let (_, writer) = std::io::pipe()?;
    Ok(writer.into())
}

/// The exit code of a rank and the grace period do not depend on a receiver of the report.
#[test]
fn closed_stderr_changes_nothing() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ended");
    let script = format!(
        "if [ $RANK = 1 ]; then sleep 0.5; exit 7; fi; trap 'echo >{}; exit' TERM; while :; do sleep 0.05; done",
        file.display()
    );
    for stderr in [closed_pipe()?, full_device()?] {
        let status = program::curium()
            .args(["run", "-n", "2", "--", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .status()?;
        assert_eq!(status.code(), Some(7));
        assert!(file.exists(), "rank 0 received no SIGTERM");
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

/// Returns a device to which nothing can be written, or a closed pipe where there is none.
fn full_device() -> std::io::Result<Stdio> {
    match std::fs::OpenOptions::new().write(true).open("/dev/full") {
        Ok(device) => Ok(device.into()),
        Err(_) => closed_pipe(),
    }
}

/// Returns a command that runs `curium` with the default effect of signals, which a shell may have
/// made the tests ignore.
fn interruptible_curium() -> Command {
    use std::os::unix::process::CommandExt as _;

    use nix::sys::signal::{SigHandler, Signal, signal};

    let mut command = program::curium();
    let reset = || {
        for number in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
        ] {
            // SAFETY: this sets no handler.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: `signal` may be called between `fork` and `exec`.
    unsafe { command.pre_exec(reset) };
    command
}

/// Starts two ranks that run for long, sends a signal, and returns the exit code and the processes
/// of ranks that still run.
fn signaled(signal: &str) -> Result<(Option<i32>, Vec<String>), Box<dyn Error>> {
    let mut program = interruptible_curium()
        .args([
            "run",
            "-n",
            "2",
            "--",
            "sh",
            "-c",
            "echo $$; exec sleep 100",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?);
    let mut ids = Vec::new();
    for line in output.lines().take(2) {
        let line = line?;
        ids.push(
            line.split_once("] ")
                .ok_or("no rank in the line")?
                .1
                .to_owned(),
        );
    }
    Command::new("kill")
        .args([signal, &program.id().to_string()])
        .status()?;
    let code = program.wait()?.code();
    ids.retain(|id| is_running(id));
    Ok((code, ids))
}

/// Each signal of the terminal, and a request to terminate, ends all ranks. The exit code names it.
#[test]
fn every_signal_ends_the_ranks() -> Result<(), Box<dyn Error>> {
    for (signal, code) in [("-HUP", 129), ("-INT", 130), ("-QUIT", 131), ("-TERM", 143)] {
        let (exit_code, running) = signaled(signal)?;
        assert_eq!(exit_code, Some(code), "{signal}");
        assert!(running.is_empty(), "{signal}: {running:?}");
    }
    Ok(())
}

/// Signals that are ignored from the start, as `nohup` does, do not end the job.
#[test]
fn ignored_signals_stay_ignored() -> Result<(), Box<dyn Error>> {
    let words = program::words(env!("CARGO_BIN_EXE_curium"));
    let mut program = Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"])
        .args(words)
        .args([
            "run",
            "-n",
            "1",
            "--",
            "sh",
            "-c",
            "echo begun; sleep 1; echo done",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?).lines();
    assert_eq!(lines.next().transpose()?.as_deref(), Some("[0] begun"));
    for signal in ["-HUP", "-INT"] {
        Command::new("kill")
            .args([signal, &program.id().to_string()])
            .status()?;
    }
    assert_eq!(lines.next().transpose()?.as_deref(), Some("[0] done"));
    assert_eq!(program.wait()?.code(), Some(0));
    Ok(())
}

/// An interrupt while ranks are being started ends the job before all have been started.
#[test]
fn interrupt_ends_the_start() -> Result<(), Box<dyn Error>> {
    let mut program = program::curium()
        .args(["run", "-n", "100000", "--grace", "1", "--"])
        .args(["sh", "-c", "echo begun; exec sleep 100"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = BufReader::new(program.stdout.take().ok_or("stdout is not piped")?);
    output.read_line(&mut String::new())?;
    Command::new("kill")
        .arg(program.id().to_string())
        .status()?;
    std::io::copy(&mut output, &mut std::io::sink())?;
    assert_eq!(program.wait()?.code(), Some(143));
    Ok(())
}

/// A rank that has changed its user cannot be killed by others than the superuser. All others are
/// killed nevertheless.
#[cfg(target_os = "linux")]
#[test]
fn another_users_rank() -> Result<(), Box<dyn Error>> {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let is_root = Command::new("id").arg("-u").output()?.stdout == b"0\n";
    let setpriv = std::path::Path::new("/usr/bin/setpriv");
    if !is_root || !setpriv.exists() || std::env::var_os("CURIUM_TEST_RUNNER").is_some() {
        return Ok(());
    }
    // Every user must reach the programs, and file systems of tests may ignore the mode that
    // changes the user.
    let folder = tempfile::tempdir_in("/var/tmp")?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let become_root = folder.path().join("become_root");
    fs::copy(setpriv, &become_root)?;
    fs::set_permissions(&become_root, fs::Permissions::from_mode(0o4755))?;
    let curium = folder.path().join("curium");
    fs::copy(env!("CARGO_BIN_EXE_curium"), &curium)?;
    let script = format!(
        "case $RANK in 0) exec {} --reuid=0 --regid=0 --clear-groups sleep 5;; 1) sleep 0.5; exit 9;; esac; \
         trap '' TERM; echo $$; while :; do sleep 0.1; done",
        become_root.display()
    );
    let output = Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(curium)
        .args(["run", "-n", "3", "--grace", "1", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .current_dir("/")
        .output()?;
    let errors = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(9), "{errors}");
    assert!(errors.contains("rank 0 could not be killed"), "{errors}");
    let lines = String::from_utf8(output.stdout)?;
    let id = lines.trim().trim_start_matches("[2] ");
    assert!(!is_running(id), "process {id} is running");
    Ok(())
}

/// Input from a terminal reaches rank 0, although another process group has the terminal.
#[cfg(target_os = "linux")]
#[test]
fn terminal_input_reaches_rank_0() -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;
    let words = program::words(env!("CARGO_BIN_EXE_curium")).join(" ");
    let line = format!("{words} run -n 2 -- sh -c 'read line; echo \"got <$line>\"'");
    // `script` runs the command on a terminal of its own.
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = script.stdin.take().ok_or("stdin is not piped")?;
    stdin.write_all(b"hello\n")?;
    let mut lines = BufReader::new(script.stdout.take().ok_or("stdout is not piped")?).lines();
    let is_there = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.trim_end() == "[0] got <hello>");
    assert!(is_there);
    drop(stdin);
    script.wait()?;
    Ok(())
}
