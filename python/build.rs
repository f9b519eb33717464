//! Ends a build for an interpreter that the binding does not run on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let interpreter = pyo3_build_config::get().implementation();
    if interpreter != pyo3_build_config::PythonImplementation::CPython {
        println!(
            "cargo::error=frazil is for CPython 3.11 and later, and this is {interpreter}: run CPython; programs on {interpreter} take IDs from a \
             frazil-server, by HTTP or by Redis' protocol"
        );
    }
}
