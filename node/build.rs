//! Sets the linker flags of an addon.

fn main() {
    napi_build::setup();
    // Without an explicit name, a library for macOS contains the path of the build.
    if std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/frazil.node");
    }
}
