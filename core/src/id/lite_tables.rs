//! node/lite/src/tables.ts: the core's tables for `frazil/lite`, so that none is written twice.

use crate::id::layout::RESERVED;
use crate::id::preset::PRESETS;
use frazil_base::error::ErrorKind;

fn tables() -> String {
    let codes: String = ErrorKind::ALL.iter().map(|kind| format!("  {}: {},\n", kind.name(), kind.code())).collect();
    let presets: String = PRESETS.iter().map(|preset| format!("  {}: '{}',\n", preset.name, preset.layout)).collect();
    let reserved: String = RESERVED.iter().map(|name| format!("  '{name}',\n")).collect();
    format!(
        "// The core's tables, written by `make generate`.\n\n\
         /** The number of each error. */\nexport const numbers = {{\n{codes}}} as const\n\n\
         /** The layout of each preset. */\nexport const presets: Readonly<Record<string, string>> = {{\n{presets}}}\n\n\
         /** Names that no node field may have. */\nexport const reserved: readonly string[] = [\n{reserved}]\n"
    )
}

#[test]
fn lite_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../node/lite/src/tables.ts");
    if std::env::var_os("FRAZIL_REGENERATE").is_some() {
        std::fs::write(path, tables()).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, tables(), "tables.ts differs from the core: run `make generate`");
}
