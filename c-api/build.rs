//! Names the dynamic library as a linker looks it up, which Cargo does not do, and has it stay where it was loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // What keeps its ABI keeps its name: below 1.0 a minor version may break it. lay_out.sh and CMakeLists.txt say the same.
    let abi = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfrazil.so.{abi}"),
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libfrazil.{abi}.dylib"),
        _ => {}
    }
    // Its threads outlive the last handle for a while, and its table of fixed numbers is needed until the process ends. macOS has no such flag,
    // and unloads no library with variables of threads; on Windows the core's stay.rs does it.
    if std::env::var_os("CARGO_CFG_UNIX").is_some() && std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() != Ok("apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
