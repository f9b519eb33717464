//! The command `frazil`: see [`frazil::cli`].

use std::io::{stderr, stdout};

fn main() {
    std::process::exit(frazil::cli::main(std::env::args_os().skip(1), &mut stdout(), &mut stderr()));
}
