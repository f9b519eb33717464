//! Names the dynamic library as a linker looks it up, which Cargo does not do.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfrazil.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    }
}
