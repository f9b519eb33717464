//! Makes a root of frazil-server's sources for `src/lib.rs`: the modules of `server/src/main.rs`, by their paths.

use std::path::Path;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src");
    println!("cargo::rerun-if-changed={}", folder.display());
    let root = std::fs::read_to_string(folder.join("main.rs")).expect("server/src/main.rs");
    let lines = root.lines().filter(|line| !line.starts_with("//!")).map(|line| {
        match line.strip_prefix("mod ").and_then(|name| name.strip_suffix(';')) {
            Some(name) => format!("#[path = {:?}]\nmod {name};\n", folder.join(name_of(&folder, name))),
            None => format!("{line}\n"),
        }
    });
    let made = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("server.rs");
    std::fs::write(made, lines.collect::<String>()).expect("the folder of the build");
}

/// The file of a module, from its folder.
fn name_of(folder: &Path, name: &str) -> String {
    let file = format!("{name}.rs");
    if folder.join(&file).exists() { file } else { format!("{name}/mod.rs") }
}
