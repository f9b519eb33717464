//! Text from outside, without characters that control a terminal, move other characters, or are invisible.

fn is_hidden(c: char) -> bool {
    !matches!(c, '\'' | '"' | '\\') && c.escape_debug().len() > 1
}

/// Escapes hidden characters.
pub(in super::super) fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if is_hidden(c) { c.escape_debug().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// Escapes the hidden characters of JSON. Its only newlines are those between its lines.
pub(super) fn escaped(json: &str) -> String {
    let mut text = String::new();
    for c in json.chars() {
        match is_hidden(c) && c != '\n' {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}")),
            false => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(plain("ä\u{1b}[2J\n"), "ä\\u{1b}[2J\\n");
        assert_eq!(plain("a\u{9b}2J\u{202e}b\u{200b} 'c' \"d\" \\"), "a\\u{9b}2J\\u{202e}b\\u{200b} 'c' \"d\" \\");
        let document = serde_json::json!({ "holder": "ä \u{1b} \u{7f} \u{9b} \u{202e} \u{e0001} \" \\" });
        let text = escaped(&format!("{document:#}\n"));
        assert_eq!(text, "{\n  \"holder\": \"ä \\u001b \\u007f \\u009b \\u202e \\udb40\\udc01 \\\" \\\\\"\n}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }
}
