//! Fails a build for an interpreter that the binding does not support, and writes the docstrings of the stub to files, for `doc!`.

use std::path::Path;
use std::{env, fs};

const STUB: &str = "frazil/_frazil.pyi";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STUB}");
    let interpreter = pyo3_build_config::get().implementation();
    if interpreter != pyo3_build_config::PythonImplementation::CPython {
        println!(
            "cargo::error=frazil is for CPython 3.11 and later, and this is {interpreter}: run CPython; programs on {interpreter} take IDs from a \
             frazil-server, by HTTP or by Redis' protocol"
        );
    }
    let stub = fs::read_to_string(STUB).expect("the stub is in the package");
    let out = env::var_os("OUT_DIR").expect("cargo names the folder");
    for (name, doc) in docs(&stub) {
        fs::write(Path::new(&out).join(name + ".txt"), doc).expect("the folder can be written");
    }
}

/// The docstrings of classes, functions and methods by their names: `Snowflake`, `stats`, `Snowflake.batch`. Those of functions
/// begin with the signature, because CPython shows no types.
fn docs(stub: &str) -> Vec<(String, String)> {
    let mut aliases: Vec<_> = stub.lines().filter_map(|line| line.split_once(": TypeAlias = ")).collect();
    // One name may be the beginning of another.
    aliases.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let (mut found, mut class, mut decorator) = (Vec::new(), String::new(), "");
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        let indent = line.len() - item.len();
        if item.starts_with('@') {
            decorator = item;
        }
        let Some(rest) = item.strip_prefix("class ").or_else(|| item.strip_prefix("def ")) else { continue };
        let is_class = item.starts_with("class ");
        let mut head = rest.to_owned();
        while !head.ends_with(':') && !head.ends_with("...") {
            let line = lines.next().expect("a head ends").trim();
            head += &if head.ends_with(',') { format!(" {line}") } else { line.to_owned() };
        }
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        if indent == 0 {
            class = if is_class { format!("{name}.") } else { String::new() };
        }
        let is_property = std::mem::take(&mut decorator) == "@property";
        let Some(head) = head.strip_suffix(':') else { continue };
        let Some(first) = lines.clone().next().and_then(|line| line.trim_start().strip_prefix("\"\"\"")) else { continue };
        lines.next();
        let mut doc = first.to_owned();
        while !doc.ends_with("\"\"\"") {
            let line = lines.next().expect("a docstring ends");
            doc = format!("{doc}\n{}", line.get(indent + 4..).unwrap_or_default());
        }
        let doc = doc.trim_end_matches("\"\"\"").trim_end();
        let signature = if is_class || is_property { String::new() } else { signature(head, &aliases) + "\n\n" };
        let name = if is_class { name.to_owned() } else { format!("{class}{name}") };
        found.push((name, signature + doc));
    }
    found
}

/// A signature for a reader: without the object itself, and with the types that the stub's private names abbreviate.
fn signature(head: &str, aliases: &[(&str, &str)]) -> String {
    let mut text = head.replace("(self, ", "(").replace("(self)", "()").replace("(cls, ", "(").replace(", )", ")");
    // An alias may name another one.
    for _ in 0..2 {
        for (name, meaning) in aliases {
            text = text.split(name).collect::<Vec<_>>().join(meaning);
        }
    }
    while let Some((before, rest)) = text.split_once(": Unpack[") {
        text = format!("{before}{}", rest.split_once(']').map_or("", |(_, after)| after));
    }
    text
}
