//! The name of a namespace's folder: the namespace itself if every system accepts it, and otherwise
//! percent-encoded as in a URL.
//!
//! File systems of macOS and Windows treat `a` and `A` as equal. Windows also treats `a.` as `a`, and `nul` as a device. Two namespaces
//! must be two folders there, too, and a folder that is moved between systems keeps its name. So the encoding is the same everywhere. A
//! name of 64 letters takes at most 192 bytes.

/// The names of devices on Windows, also with a suffix. COM and LPT have a digit after them.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul"];
const PORTS: &[&str] = &["com", "lpt"];

/// The folder's name.
pub(super) fn encode(namespace: &str) -> String {
    let last = namespace.len().wrapping_sub(1);
    let is_device = is_device(namespace);
    let mut name = String::with_capacity(namespace.len());
    for (at, letter) in namespace.char_indices() {
        let is_plain = match letter {
            'a'..='z' | '0'..='9' => at > 0 || !is_device,
            '.' => at > 0 && at < last,
            '-' | '_' | '~' => true,
            _ => false,
        };
        if is_plain {
            name.push(letter);
        } else {
            letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| name.push_str(&format!("%{byte:02x}")));
        }
    }
    name
}

/// The namespace whose folder has this name, if there is one.
pub(super) fn decode(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok().filter(|namespace| encode(namespace) == name)
}

fn is_device(namespace: &str) -> bool {
    let stem = namespace.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let port = |port| stem.strip_prefix(port).is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()));
    DEVICES.contains(&&*stem) || PORTS.iter().any(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_namespace_has_a_separate_folder_that_every_system_takes() {
        let plain = ["default", "shop.eu-west_1", "a", "0", "-", "console", "com", "com10", "x.nul", "shop~", "shop~nul"];
        let other = [
            ("Shop", "%53hop"),
            ("SHOP", "%53%48%4f%50"),
            ("axB", "ax%42"),
            (".lent", "%2elent"),
            (".", "%2e"),
            ("..", "%2e%2e"),
            ("a.", "a%2e"),
            ("nul", "%6eul"),
            ("Nul", "%4eul"),
            ("con.x", "%63on.x"),
            ("com1", "%63om1"),
            ("LPT9.a", "%4c%50%549.a"),
        ];
        let mut folders = HashSet::new();
        for (namespace, folder) in plain.map(|name| (name, name)).into_iter().chain(other) {
            assert_eq!(encode(namespace), folder);
            assert_eq!(decode(folder).as_deref(), Some(namespace));
            assert!(folders.insert(folder.to_ascii_lowercase()) && !is_device(folder) && !folder.ends_with('.'), "{folder}");
        }
        for foreign in ["Shop", "%53Hop", "%61", "%", "%5", "%zz", "%ff", "a%2E", "%2e%2E", ".lent", "nul", "ä", "%é9", "lost+found"] {
            assert_eq!(decode(foreign), None, "{foreign}");
        }
    }
}
