#!/usr/bin/env bash
# Runs this bundle on a machine with a GPU: the tests on the real driver, the examples and the demo.
#
#   --sanitize   also runs the contract tests and the demo under compute-sanitizer: memcheck, initcheck, racecheck
#   --bench      also runs the benchmarks
#
# The log, the demo's picture, what every form of an instruction gave, and the list of the functions that were called (for
# xtask/gpu-tested.txt) go to $OUT, which is `out` beside this file unless set. Exits with 1 if anything failed.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$here/out}
log=$out/gpu.log
rows=()
failures=0
sanitize=false
bench=false

for argument in "$@"; do
    case $argument in
        --sanitize) sanitize=true ;;
        --bench) bench=true ;;
        *) echo "unknown argument $argument" >&2; exit 2 ;;
    esac
done

mkdir -p "$out"
: >"$log"
if [[ -f $here/programs.tar.xz ]]; then tar -C "$here" -xJf "$here/programs.tar.xz" || exit 2; fi

# run NAME COMMAND…: runs the command into the log and adds a row to the summary.
run() {
    local name=$1 begin end status part passed failed
    shift
    part=$(mktemp)
    begin=$(date +%s.%N)
    timeout 900 "$@" >"$part" 2>&1
    status=$?
    end=$(date +%s.%N)
    passed=$(count passed "$part")
    failed=$(count failed "$part")
    # A program that is no test passes or fails as a whole; one that dies has failed whatever it counted before.
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

# count WORD FILE: the sum over the closing lines of the tests.
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

if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader | tee -a "$log"
fi

export CURIUM_TEST_DRIVER=cuda
# These tests add the functions of the driver that they call to this file.
called=$(mktemp)
demo=("$here/bin/curium" demo --device gpu --output)

for program in "$here"/tests/* "$here"/examples/*; do
    [[ -x $program ]] || continue
    case $(basename "$program") in
        contract | graphics) CURIUM_CALLED=$called run "$(basename "$program")" "$program" ;;
        # For tests/tests/instructions of the repository.
        instructions) CURIUM_INSTRUCTION_RECORD=$out/recorded.txt run instructions "$program" ;;
        # The machine may have no CUDA runtime.
        runtime_interop) run runtime_interop "$program" --allow-missing ;;
        [0-9][0-9]_*) run "$(basename "$program")" "$program" --device gpu ;;
        *) run "$(basename "$program")" "$program" ;;
    esac
done
run demo "${demo[@]}" "$out/demo.png"
run doctor "$here/bin/curium" doctor --device gpu --save "$out/machine.json"
run info "$here/bin/curium" info --device gpu --json
run trace "$here/bin/curium" trace --device gpu --output "$out/trace.json" -- "${demo[@]}" "$out/traced.png"

# What xtask/gpu-tested.txt is to say.
LC_ALL=C sort -u "$called" >"$out/gpu-tested.txt"
rm -f "$called"

if $sanitize; then
    if command -v compute-sanitizer >/dev/null; then
        # The contract tests call wrongly on purpose, and break a context only in a process of its own. The sanitizer has each
        # launch wait: tests that hold up a stream end where they would do so, or are left out here.
        export CURIUM_TEST_LAUNCHES_WAIT=1
        contract=()
        for part in process sticky soak fault random neutrality coverage two_ failed_context value_wait stream_memory future; do
            contract+=(--skip "$part")
        done
        for tool in memcheck initcheck racecheck; do
            checked=(compute-sanitizer --tool "$tool" --target-processes application-only --error-exitcode 99)
            checked+=(--report-api-errors no)
            run "$tool contract" "${checked[@]}" "$here/tests/contract" --test-threads 1 "${contract[@]}"
            run "$tool demo" "${checked[@]}" "${demo[@]}" "$(mktemp -u --suffix .png)"
        done
    else
        rows+=("compute-sanitizer is not on PATH")
        failures=$((failures + 1))
    fi
fi

if $bench; then
    for program in "$here"/benches/*; do
        [[ -x $program ]] || continue
        run "$(basename "$program")" "$program" --bench
        sed -n "/^=== $(basename "$program"):/,\$p" "$log"
    done
    run "curium bench" "$here/bin/curium" bench --device gpu --svg "$out"
    sed -n "/^=== curium bench:/,\$p" "$log"
fi

{
    printf '%-32s %7s %7s %11s\n' program passed failed time
    printf '%s\n' "${rows[@]}"
    echo "programs that failed: $failures"
} | tee -a "$log"
((failures == 0))
