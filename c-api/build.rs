//! Sets the name under which a linker finds the dynamic library, which Cargo does not do, and prevents its unloading.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name changes with the ABI, which a minor version below 1.0 may break. lay_out.sh and CMakeLists.txt use the same name.
    let abi = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfrazil.so.{abi}"),
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libfrazil.{abi}.dylib"),
        _ => {}
    }
    // The library's threads outlive the last handle for a while, and its table of fixed numbers is needed until the process ends. macOS
    // needs no flag, because it unloads no library with thread-local variables. On Windows the core's stay.rs does it.
    if std::env::var_os("CARGO_CFG_UNIX").is_some() && std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() != Ok("apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
