//! The command `frazil`: see [`frazil::cli`].

fn main() {
    std::process::exit(frazil::cli::program(std::env::args_os().skip(1)));
}
