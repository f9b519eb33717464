//! Rows of JSON, and dumps of databases in SQL.

use super::lines::Texts;
use frazil::admin::foreign::Reason;
use serde_json::value::RawValue;
use smallvec::smallvec;
use std::borrow::Cow;
use std::collections::HashMap;

/// The text of a key's value in a line that holds one object. A number is never parsed as a double.
pub(super) fn of_json<'a>(line: &'a [u8], key: &str) -> Texts<'a> {
    let line = line.trim_ascii();
    if let Ok(rows) = serde_json::from_slice::<Vec<&'a RawValue>>(line) {
        return rows.into_iter().flat_map(|row| of_json(row.get().as_bytes(), key)).collect();
    }
    let line = line.strip_prefix(b"[").unwrap_or(line).trim_ascii();
    let object = line.strip_suffix(b",").or(line.strip_suffix(b"]")).unwrap_or(line).trim_ascii();
    if !object.starts_with(b"{") {
        // A part of an object that spans several lines.
        let is_part = object == b"}" || object.contains(&b':');
        return if object.is_empty() { Texts::new() } else { smallvec![if is_part { Err(Reason::NotJson) } else { Ok(object) }] };
    }
    let Ok(fields) = serde_json::from_slice::<HashMap<Cow<'a, str>, &'a RawValue>>(object) else { return smallvec![Err(Reason::NotJson)] };
    // MongoDB calls the primary key _id.
    let value = fields.get(key).or_else(|| if key == "id" { fields.get("_id") } else { None });
    smallvec![value.map(|value| value.get().as_bytes()).ok_or(Reason::NoColumn)]
}

/// The parts of a list between commas, where no bracket or quote is open.
fn fields(list: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    let mut at = 0;
    while at < list.len() {
        match (quote, list[at]) {
            // A doubled quote in SQL closes the text and opens it again.
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'\'' | b'`')) => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            (None, _) => {}
        }
        at += 1;
    }
    parts.push(&list[from..]);
    parts
}

/// Reads one column of a dump. Keeps the position of the column in the current statement.
pub(super) struct Dump<'a> {
    column: &'a str,
    /// The index of the column in the tuples of the current `INSERT`, or in the lines of the current `COPY`.
    insert: Option<usize>,
    copy: Option<usize>,
    /// The columns of the last `CREATE TABLE`, for an `INSERT` without column names.
    table: Option<Vec<String>>,
}

impl<'a> Dump<'a> {
    pub(super) fn new(column: &'a str) -> Self {
        Dump { column, insert: None, copy: None, table: None }
    }

    fn place(&self, names: &[u8]) -> Option<usize> {
        fields(names).into_iter().position(|name| unquoted(name) == self.column)
    }

    /// The values of the column in a line.
    pub(super) fn rows<'l>(&mut self, line: &'l [u8]) -> Texts<'l> {
        let trimmed = line.trim_ascii();
        if let Some(place) = self.copy {
            if trimmed == b"\\." {
                self.copy = None;
                return Texts::new();
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            return smallvec![line.split(|byte| *byte == b'\t').nth(place).ok_or(Reason::NoColumn)];
        }
        let upper = trimmed[..trimmed.len().min(4096)].to_ascii_uppercase();
        let find = |word: &[u8]| upper.windows(word.len()).position(|part| part == word);
        let names = |until: usize| -> Option<&'l [u8]> {
            let open = trimmed[..until].iter().position(|byte| *byte == b'(')?;
            let close = trimmed[..until].iter().rposition(|byte| *byte == b')')?;
            trimmed.get(open + 1..close)
        };
        if upper.starts_with(b"COPY ") {
            self.copy = find(b" FROM STDIN").and_then(names).and_then(|names| self.place(names));
            return Texts::new();
        }
        if upper.starts_with(b"CREATE TABLE") {
            self.table = Some(Vec::new());
        }
        let mut tuples: &[u8] = trimmed;
        if upper.starts_with(b"INSERT ") || upper.starts_with(b"REPLACE ") {
            let Some(values) = find(b"VALUES") else { return Texts::new() };
            let first = self.table.as_ref().map_or(Some(0), |names| names.iter().position(|name| name == self.column).or(Some(0)));
            self.insert = names(values).map_or(first, |names| self.place(names));
            tuples = trimmed[values + b"VALUES".len()..].trim_ascii();
        } else if !(trimmed.starts_with(b"(") && self.insert.is_some()) {
            if let Some(table) = self.table.as_mut().filter(|_| self.insert.is_none()) {
                table.extend(trimmed.split(u8::is_ascii_whitespace).next().map(unquoted).filter(|_| !upper.starts_with(b"CREATE")));
            }
            return Texts::new();
        }
        let Some(place) = self.insert else { return Texts::new() };
        let ends = tuples.ends_with(b";");
        let tuples = tuples.strip_suffix(b";").unwrap_or(tuples).trim_ascii();
        let of = |tuple: &'l [u8]| {
            let tuple = tuple.trim_ascii();
            let inner = tuple.strip_prefix(b"(")?.strip_suffix(b")")?;
            Some(fields(inner).get(place).copied().ok_or(Reason::NoColumn))
        };
        if ends {
            self.insert = None;
        }
        fields(tuples).into_iter().filter_map(of).collect()
    }
}

fn unquoted(name: &[u8]) -> String {
    String::from_utf8_lossy(name.trim_ascii()).trim_matches(['"', '`', '[', ']', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_json() {
        for (line, value) in [
            (r#"{"id":250318245867245581,"n":1}"#, Ok("250318245867245581")),
            (r#"{"n":"a,\"}{","id" : "7" }"#, Ok("\"7\"")),
            (r#"{"_id":{"$numberLong":"7"},"n":1}"#, Ok(r#"{"$numberLong":"7"}"#)),
            (r#"[{"id":7},"#, Ok("7")),
            (r#"[{"id":7}]"#, Ok("7")),
            (r#"{"id":7}]"#, Ok("7")),
            (r#"{"n":{"id":7}}"#, Err(Reason::NoColumn)),
            (r#"{"id":7"#, Err(Reason::NotJson)),
            ("{", Err(Reason::NotJson)),
            ("7,", Ok("7")),
        ] {
            let got: Vec<_> =
                of_json(line.as_bytes(), "id").into_iter().map(|text| text.map(|text| str::from_utf8(text).unwrap())).collect();
            assert_eq!(got, [value], "{line}");
        }
        assert!(of_json(b"]\n", "id").is_empty() && of_json(b"[\n", "id").is_empty());
    }

    #[test]
    fn rows_of_dumps() {
        let dump = "INSERT INTO `t` (`n`,`id`) VALUES ('a,(\\'',7),(NULL,8);\nINSERT INTO t VALUES (9,'x');\nCOPY public.t (n, id) FROM stdin;\nx\t10\n\
                    \\N\t11\n\\.\nINSERT INTO t (id) VALUES\n(12),\n(13);\nSELECT 14;\nCREATE TABLE u (\n  n int,\n  \"id\" bigint\n);\nINSERT INTO u VALUES(1,15);\n";
        let mut rows = Dump::new("id");
        let got: Vec<_> = dump
            .split_inclusive('\n')
            .flat_map(|line| {
                rows.rows(line.as_bytes()).into_iter().map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(got, ["7", "8", "9", "10", "11", "12", "13", "15"]);
    }
}
