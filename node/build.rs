//! Sets the linker flags of an addon.

fn main() {
    napi_build::setup();
}
