//! Sets the linker flags of an addon.

fn main() {
    napi_build::setup();
    // Without a name, a library for macOS has the path at which it was built.
    if std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/frazil.node");
    }
}
