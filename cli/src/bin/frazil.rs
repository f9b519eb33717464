//! The command `frazil`: see [`frazil_cli`].

/// Runs before Rust's runtime, which opens `/dev/null` in place of a closed standard output.
// SAFETY: the sections contain functions without arguments that are called once, before `main`; this one makes a system call and stores a flag.
#[cfg(unix)]
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn note() {
        frazil_cli::note_closed_output();
    }
    note
};

fn main() {
    std::process::exit(frazil_cli::program(std::env::args_os().skip(1)));
}
