# What the scripts have in common; to be read by `.` first: one run at a time in a checkout, steps with their times, and an end
# that leaves no process and no folder behind, however it comes.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What every build of a binding is told, so that what they share is compiled once: see Cargo.toml.
ALIGNED=frazil-c/aligned,frazil-node/aligned,frazil-python/aligned
scratch='' step='' interrupted='' memory='' times=() besides=() begun=() started=0
# How many steps go on beside each other: some of them mostly wait.
places=$(($(getconf _NPROCESSORS_ONLN) + 2))

step() { # NAME
    end_step
    step=$1 since=$SECONDS
    printf '\n== %s\n' "$step"
}

end_step() {
    [ -z "$step" ] || times+=("$(printf '%5d s  %s' $((SECONDS - since)) "$step")")
    step=''
}

# Runs a command in a process group of its own, so that its end can be told to all of it, and nobody waits for a terminal.
set -m
run() { # COMMAND...
    "$@" < /dev/null &
    wait $!
}

# Runs a step in the background, beside the steps that follow, once there is a place for it.
beside() { # NAME COMMAND...
    while [ ${#besides[@]} -ge "$places" ]; do await_one; done
    local name=$1 said=$scratch/beside-$((started += 1))
    shift
    printf '\n== %s: begins beside others\n' "$name"
    printf '%s\n' "$name" > "$said.name"
    {
        SECONDS=0
        "$@"
        times > "$said.cpu"
        printf '%5d s  %s, beside others: %d s of a processor\n' "$SECONDS" "$name" "$(processor_s "$said.cpu")" > "$said.time"
    } < /dev/null > "$said" 2>&1 &
    besides[started]=$! begun[started]=$SECONDS
}

# What `times` has told of a shell's children, in seconds.
processor_s() { # FILE
    awk -F '[ms ]' 'NR == 2 { print int($1 * 60 + $2 + $4 * 60 + $5) }' "$1"
}

# Waits until one of the steps in the background has ended, and prints what it has said; one that has failed ends the run.
await_one() {
    local number said status=0 before=$step
    while :; do
        for number in "${!besides[@]}"; do
            kill -0 "${besides[number]}" 2>/dev/null || break 2
        done
        sleep 0.2
    done
    said=$scratch/beside-$number step=$(cat "$scratch/beside-$number.name")
    wait "${besides[number]}" || status=$?
    unset "besides[number]"
    printf '\n== %s\n' "$step"
    cat "$said"
    if [ $status != 0 ]; then
        since=${begun[number]}
        exit $status
    fi
    times+=("$(cat "$said.time")")
    rm "$said" "$said.name" "$said.cpu" "$said.time"
    step=$before
}

# Has the tests' servers write into memory where there is plenty: what they answer then waits for no disk that a build keeps busy.
servers_in_memory() {
    [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || return 0
    [ "$(df -Pk /dev/shm | awk 'NR == 2 { print int($4 / 1048576) }')" -ge 4 ] || return 0
    [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 6 ] || return 0
    memory=$(mktemp -d /dev/shm/frazil-XXXXXX)
    chmod 1777 "$memory"
    export FRAZIL_TEST_SERVERS=$memory
}

# Waits for the steps in the background.
join() {
    end_step
    while [ ${#besides[@]} != 0 ]; do await_one; done
}

finish() {
    local status=$? broken=$step running
    trap '' HUP INT TERM
    # From the shell's own table: a signal may come before the line after the start of a command.
    running=($(jobs -p))
    if [ ${#running[@]} != 0 ]; then
        running=("${running[@]/#/-}")
        kill -TERM -- "${running[@]}" 2>/dev/null || true
        for _ in {1..300}; do
            kill -0 -- "${running[@]}" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "${running[@]}" 2>/dev/null || true
    fi
    end_step
    [ ${#times[@]} = 0 ] || printf '\n== Times\n%s\n%5d s  in all\n' "$(printf '%s\n' "${times[@]}")" "$SECONDS"
    [ -z "$memory" ] || rmdir "$memory" 2>/dev/null || mv "$memory" "$scratch/servers" || true
    [ -n "$scratch" ] || return 0
    if [ "$status" = 0 ] || [ -n "$interrupted" ]; then
        rm -rf "$scratch"
    else
        rmdir "$scratch" 2>/dev/null || echo "Failed${broken:+: $broken}. What the tests have left is in $scratch" >&2
    fi
}
trap finish EXIT
trap 'interrupted=1; exit 129' HUP
trap 'interrupted=1; exit 130' INT
trap 'interrupted=1; exit 143' TERM

# Two runs would write into the same folders. What a run has started holds the lock as well.
mkdir -p build
exec 9> build/.lock
if command -v flock >/dev/null && ! flock --nonblock 9; then
    echo "Another run is going on in $PWD: waiting for its end" >&2
    run flock 9
fi

# Servers run under accounts of their own, and write there as in /tmp.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/frazil-XXXXXX")
chmod 1777 "$scratch"
export TMPDIR=$scratch
