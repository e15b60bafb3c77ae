#!/usr/bin/env bash
# Runs this bundle on a machine with a GPU: the tests on the real driver, the examples and the demo.
#
#   --sanitize   also runs the contract tests and the demo under compute-sanitizer: memcheck, initcheck, racecheck
#   --bench      also runs the benchmarks
#   --kernels    runs only the kernels in Rust beside CUDA C++: the small sizes, also under compute-sanitizer with --sanitize, and the benchmark
#   --nccl       runs only the tests, the benchmark and the examples of NCCL, with a rank for each GPU
#   --simulator  runs everything on the simulator instead of the GPU: a dry run of this script
#
# The log, the demo's picture, the results of the instruction forms, the figures of the kernels (beside_cuda.json), and the list of the
# called functions (for xtask/gpu-tested.txt) go to $OUT, by default `out` beside this file. Exits with 1 if anything failed.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$here/out}
log=$out/gpu.log
rows=()
failures=0
sanitize=false
bench=false
nccl=false
kernels=false
device=gpu
# The time limit of a program in seconds.
limit=900

for argument in "$@"; do
    case $argument in
        --sanitize) sanitize=true ;;
        --bench) bench=true ;;
        --nccl) nccl=true ;;
        --kernels) kernels=true ;;
        --simulator) device=sim ;;
        *) echo "unknown argument $argument" >&2; exit 2 ;;
    esac
done

mkdir -p "$out"
: >"$log"
if [[ -f $here/programs.tar.xz ]]; then tar -C "$here" -xJf "$here/programs.tar.xz" || exit 2; fi

# run NAME COMMAND…: runs the command, logs its output and adds a row to the summary.
run() {
    local name=$1 begin end status part passed failed
    shift
    # In the output folder, so that it shows what was running if the machine stops this script.
    part=$out/running.log
    begin=$(date +%s.%N)
    timeout "$limit" "$@" >"$part" 2>&1
    status=$?
    end=$(date +%s.%N)
    passed=$(count passed "$part")
    failed=$(count failed "$part")
    # A program other than a test passes or fails as a whole. A program that dies has failed, whatever it counted before.
    if ((passed + failed == 0 && status == 0)) && ! grep -q '^test result:' "$part"; then passed=1; fi
    if ((failed == 0 && status != 0)); then failed=1; fi
    if ((failed > 0)); then failures=$((failures + 1)); fi
    rows+=("$(printf '%-32s %7d %7d %9.2f s  %s' "$name" "$passed" "$failed" "$(awk "BEGIN { print $end - $begin }")" \
        "$(verdict "$status" "$failed")")")
    { echo "=== $name: exit status $status"; cat "$part"; echo; } >>"$log"
    if ((failed > 0)); then
        echo "--- $name failed (exit status $status); its last lines:"
        tail -n 40 "$part"
    fi
    rm -f "$part"
}

# count WORD FILE: adds up the result lines of the tests.
count() {
    sed -n "s/^test result:.* \([0-9]*\) $1;.*/\1/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

verdict() {
    if (($1 == 124)); then
        echo "timed out"
    elif (($2 > 0)); then
        echo "FAILED"
    else
        echo "ok"
    fi
}

# show NAME: prints what the program logged last.
show() {
    sed -n "/^=== $1:/,\$p" "$log"
}

# summary: prints the table of the programs, and returns whether all passed.
summary() {
    {
        printf '%-32s %7s %7s %11s\n' program passed failed time
        printf '%s\n' "${rows[@]}"
        echo "programs that failed: $failures"
    } | tee -a "$log"
    ((failures == 0))
}

# The kernels in Rust, with small sizes.
small_kernels=("$here/benches/beside_cuda" "--$device" --small)

# measure_kernels: prints the kernels in Rust beside CUDA C++.
measure_kernels() {
    local options=(--bench)
    if [[ $device == sim ]]; then options=(--simulator); fi
    run "kernels beside CUDA C++" "$here/benches/beside_cuda" "${options[@]}" --output "$out"
    show "kernels beside CUDA C++"
}

# check_kernels: runs the kernels under each tool of compute-sanitizer.
check_kernels() {
    local tool
    for tool in memcheck initcheck racecheck synccheck; do
        run "$tool kernels" compute-sanitizer --tool "$tool" --target-processes application-only --error-exitcode 99 --report-api-errors no "${small_kernels[@]}"
    done
}

if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader | tee -a "$log"
fi

if [[ $device == gpu ]]; then export CURIUM_TEST_DRIVER=cuda; else unset CURIUM_TEST_DRIVER; fi
# These tests append the driver functions that they call to this file.
called=$(mktemp)
demo=("$here/bin/curium" demo --device "$device" --output)

# Tests create no multicast objects.
export NCCL_NVLS_ENABLE=0
gpus=0
if [[ $device == gpu ]] && command -v nvidia-smi >/dev/null; then gpus=$(nvidia-smi --list-gpus | wc -l); fi

# launch NAME RANKS PROGRAM…: runs the program as this number of ranks.
launch() {
    local name=$1 ranks=$2
    shift 2
    run "$name" "$here/bin/curium" run --ranks "$ranks" -- "$@"
}

if $kernels; then
    run kernels "${small_kernels[@]}"
    if $sanitize; then check_kernels; fi
    measure_kernels
    summary
    exit
fi

for program in "$here"/tests/* "$here"/examples/*; do
    [[ -x $program ]] || continue
    name=$(basename "$program")
    # Programs that need ranks, or libraries that a machine without NCCL lacks.
    case $name in
        collectives)
            if ((gpus > 1)); then
                launch collectives "$gpus" "$program"
                sed -n '/^=== collectives:/,$p' "$log"
            fi
            continue ;;
        data_parallel)
            launch "data_parallel, simulated" 4 "$program" --device sim
            if ((gpus > 1)); then launch data_parallel "$gpus" "$program"; fi
            continue ;;
        rendezvous) launch rendezvous 4 "$program"; continue ;;
    esac
    if $nccl; then
        if [[ $name == contract ]]; then run "contract nccl" "$program" nccl::; fi
        continue
    fi
    case $name in
        contract | graphics) CURIUM_CALLED=$called run "$(basename "$program")" "$program" ;;
        # For tests/tests/instructions of the repository.
        instructions) CURIUM_INSTRUCTION_RECORD=$out/recorded.txt run instructions "$program" ;;
        # The machine may have no CUDA runtime.
        runtime_interop) run runtime_interop "$program" --allow-missing ;;
        [0-9][0-9]_*) run "$(basename "$program")" "$program" --device "$device" ;;
        # Kernels in Rust, which check their results. One of them writes a picture.
        curium-example-*) if [[ $device == gpu ]]; then run "$name" env -C "$out" "$program"; fi ;;
        *) run "$(basename "$program")" "$program" ;;
    esac
done
if ! $nccl; then
    if [[ -x ${small_kernels[0]} ]]; then run kernels "${small_kernels[@]}"; fi
    run demo "${demo[@]}" "$out/demo.png"
    run doctor "$here/bin/curium" doctor --device "$device" --save "$out/machine.json"
    run info "$here/bin/curium" info --device "$device" --json
    run trace "$here/bin/curium" trace --device gpu --output "$out/trace.json" -- "${demo[@]}" "$out/traced.png"
fi

# The new xtask/gpu-tested.txt.
LC_ALL=C sort -u "$called" >"$out/gpu-tested.txt"
rm -f "$called"

if $sanitize; then
    if command -v compute-sanitizer >/dev/null; then
        # The contract tests make invalid calls on purpose, and break contexts in processes of their own only. The sanitizer makes
        # launches synchronous: tests that block a stream return early, or are skipped here.
        export CURIUM_TEST_LAUNCHES_WAIT=1
        limit=3600
        contract=()
        for part in process sticky soak fault random neutrality coverage two_ failed_context value_wait stream_memory future; do
            contract+=(--skip "$part")
        done
        # Kernels of NVIDIA's libraries are not this project's, and racecheck takes hours for some of them.
        for part in blas:: blas_lt:: fft:: rand:: nccl::; do
            contract+=(--skip "$part")
        done
        for tool in memcheck initcheck racecheck; do
            unsupported=()
            case $tool in
                # Its instrumentation fails with CUDA_ERROR_LAUNCH_FAILED on imported memory, ends the process when the host accesses
                # managed memory of a green context, stalls on a device whose memory is full, and loses writes to memory that several
                # threads allocate at once.
                initcheck) unsupported=(external::memory green_context_is_current out_of_memory used_by_many_threads) ;;
                # It stalls on a test that enqueues each operation in a capture, and changes the error of a destroyed context.
                racecheck) unsupported=(no_operation_enqueues objects_of_a_destroyed_context) ;;
            esac
            unsupported=("${unsupported[@]/#/--skip=}")
            checked=(compute-sanitizer --tool "$tool" --target-processes application-only --error-exitcode 99)
            checked+=(--report-api-errors no)
            run "$tool contract" "${checked[@]}" "$here/tests/contract" --test-threads 1 "${contract[@]}" "${unsupported[@]}"
            run "$tool demo" "${checked[@]}" "${demo[@]}" "$(mktemp -u --suffix .png)"
        done
        if [[ -x ${small_kernels[0]} ]]; then check_kernels; fi
    else
        rows+=("compute-sanitizer is not on PATH")
        failures=$((failures + 1))
    fi
fi

if $bench; then
    for program in "$here"/benches/*; do
        [[ -x $program ]] || continue
        if [[ $(basename "$program") == beside_cuda ]]; then measure_kernels; continue; fi
        run "$(basename "$program")" "$program" --bench
        show "$(basename "$program")"
    done
    run "curium bench" "$here/bin/curium" bench --device "$device" --svg "$out"
    show "curium bench"
fi

summary
