//! Ends a build for a system that the server does not run on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_none() {
        let target = std::env::var("TARGET").unwrap_or_default();
        println!(
            "cargo::error=frazil-server is for Unix, and {target} is not Unix: on Windows run its container image, or build it in WSL; programs on \
             Windows reach a server with store=frazil://HOST:PORT, by HTTP or by Redis' protocol"
        );
    }
}
