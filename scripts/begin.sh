# What the scripts have in common; to be read by `.` first: one run at a time in a checkout, steps with their times, and an end
# that leaves no process and no folder behind, however it comes.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What every build of a binding is told, so that what they share is compiled once: see Cargo.toml.
ALIGNED=frazil-c/aligned,frazil-node/aligned,frazil-python/aligned
# Where this is set, each of hundreds of processes compiles anew what it imports.
unset PYTHONDONTWRITEBYTECODE
# scripts/setup.sh says what is missing, all at once.
. scripts/rust.sh
find_cargo 2>/dev/null || true
scratch='' step='' failed='' interrupted='' memory='' times=() besides=() begun=() told=() begun_so_far=0
# What takes longer than this beside others hangs; and how long it may take to end once it is told to.
limit_s=1800 farewell_s=60
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

# Starts a command in a process group of its own, so that its end can be told to all of it, and nobody waits for a terminal. The shell
# keeps the terminal's foreground for itself: it is the shell that a Ctrl-C reaches, and not what it runs for a moment.
start() { # COMMAND...
    set -m
    "$@" < /dev/null &
    set +m
}

# Waits for what was started, and ends what that has left in its group.
await() { # PID
    local status=0
    wait "$1" || status=$?
    kill -KILL -- "-$1" 2>/dev/null || true
    return $status
}

run() { # COMMAND...
    start "$@"
    await $!
}

# Runs a step in the background, beside the steps that follow, once there is a place for it.
beside() { # NAME COMMAND...
    # Whoever has ended is told of now: a failure is known as soon as possible.
    while one_has_ended || [ ${#besides[@]} -ge "$places" ]; do await_one; done
    local said=$scratch/beside-$((begun_so_far += 1))
    printf '\n== %s: begins beside others\n' "$1"
    printf '%s\n' "$1" > "$said.name"
    start timed "$said" "$@" >> "$said" 2>&1
    besides[begun_so_far]=$! begun[begun_so_far]=$SECONDS
}

# Runs a command, and writes down its times.
timed() { # FILE NAME COMMAND...
    local said=$1 name=$2
    shift 2
    # Whoever interrupts the step waits for what the command says to that.
    trap : TERM
    FRAZIL_GUARD_SCOPE=$said
    SECONDS=0
    "$@"
    times > "$said.cpu"
    printf '%5d s  %s, beside others: %d s of a processor\n' "$SECONDS" "$name" "$(processor_s "$said.cpu")" > "$said.time"
}

# What `times` has told of a shell's children, in seconds.
processor_s() { # FILE
    awk -F '[ms ]' 'NR == 2 { print int($1 * 60 + $2 + $4 * 60 + $5) }' "$1"
}

# Whether a step in the background has ended: its number is in `ended` then.
one_has_ended() {
    [ ${#besides[@]} != 0 ] || return 1
    for ended in "${!besides[@]}"; do
        kill -0 "${besides[ended]}" 2>/dev/null || return 0
    done
    return 1
}

# Interrupts a step in the background that hangs, so that it says where, and ends one that does not listen.
interrupt_what_hangs() {
    local number since
    for number in "${!besides[@]}"; do
        since=$((SECONDS - begun[number]))
        if [ $since -ge "$limit_s" ] && [ -z "${told[number]:-}" ]; then
            told[number]=1
            printf '\nNot ended after %d s: interrupted\n' $since >> "$scratch/beside-$number"
            kill -TERM -- "-${besides[number]}" 2>/dev/null || true
        elif [ $since -ge $((limit_s + farewell_s)) ]; then
            kill -KILL -- "-${besides[number]}" 2>/dev/null || true
        fi
    done
}

# Prints a step and what it has said: all of it, unless a program goes round in circles.
say() { # NAME FILE
    local size=$(($(wc -c < "$2")))
    printf '\n== %s\n' "$1"
    [ $size -le 10000000 ] || printf 'Of %d MB these are the last 10:\n' $((size / 1000000))
    tail -c 10000000 "$2"
}

# Waits until one of the steps in the background has ended, and prints what it has said; one that has failed ends the run.
await_one() {
    local said status=0 before=$step
    until one_has_ended; do
        interrupt_what_hangs
        run sleep 0.2
    done
    said=$scratch/beside-$ended step=$(cat "$scratch/beside-$ended.name")
    await "${besides[ended]}" || status=$?
    unset "besides[ended]"
    if [ $status != 0 ]; then
        since=${begun[ended]} failed=$said
        printf '\n== %s: failed, and is printed once the others have ended\n' "$step"
        exit $status
    fi
    say "$step" "$said"
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
    trap '' HUP INT PIPE QUIT TERM
    # What follows happens also where nobody can be told any more, and where the disk is full.
    set +e
    # From the shell's own table: a signal may come before the line after the start of a command.
    running=($(jobs -p))
    if [ ${#running[@]} != 0 ]; then
        # The shell would tell of each that it has ended.
        disown -a
        running=("${running[@]/#/-}")
        kill -TERM -- "${running[@]}" 2>/dev/null
        for _ in {1..300}; do
            kill -0 -- "${running[@]}" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "${running[@]}" 2>/dev/null
    fi
    end_step
    [ ${#times[@]} = 0 ] || printf '\n== Times\n%s\n%5d s  in all\n' "$(printf '%s\n' "${times[@]}")" "$SECONDS" 2>/dev/null
    # The end of a log is what is looked at first, and what a truncated log still has.
    if [ -n "$failed" ]; then
        say "$broken" "$failed" 2>/dev/null
        [ -z "$(tail -c 1 "$failed" 2>/dev/null)" ] || printf '\n' 2>/dev/null
    fi
    # Whom we print to may have gone first: our own command has had that signal then.
    [ "$status" != 141 ] || printf '\n' 2>/dev/null || interrupted=1
    [ -n "$scratch" ] || return
    if [ "$status" = 0 ] || [ -n "$interrupted" ]; then
        rm -rf "$scratch" ${memory:+"$memory"}
        return
    fi
    # What is in memory is in nobody's way afterwards, unless there is no room on the disk.
    [ -z "$memory" ] || rmdir "$memory" 2>/dev/null || mv "$memory" "$scratch/servers" && memory=''
    rmdir "$scratch" 2>/dev/null || echo "Failed${broken:+: $broken}. What the tests have left is in $scratch${memory:+ and $memory}" >&2
}
trap finish EXIT
trap 'interrupted=1; exit 129' HUP
trap 'interrupted=1; exit 130' INT
trap 'interrupted=1; exit 131' QUIT
trap 'interrupted=1; exit 141' PIPE
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
# Suites that go on beside each other have the same fixed node numbers.
export FRAZIL_GUARD_SCOPE=$scratch
