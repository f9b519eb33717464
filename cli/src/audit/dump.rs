//! Rows of JSON, and dumps of databases in SQL.

use super::lines::Texts;
use frazil::admin::foreign::Reason;

/// The value of a key in a line that holds one object, as it is written: a number is never read as a double.
pub(super) fn of_json<'a>(line: &'a [u8], key: &str) -> Texts<'a> {
    let trimmed = line.trim_ascii();
    let trimmed = trimmed.strip_prefix(b"[").unwrap_or(trimmed).trim_ascii();
    let object = trimmed.strip_suffix(b",").or(trimmed.strip_suffix(b"]")).unwrap_or(trimmed).trim_ascii();
    if object.is_empty() {
        return Vec::new();
    }
    if !object.starts_with(b"{") {
        return vec![Ok(object)];
    }
    let of = |key: &str| {
        fields(&object[1..object.len().saturating_sub(1)], b',').into_iter().find_map(|field| {
            let at = colon(field)?;
            let (name, value) = (field[..at].trim_ascii(), field[at + 1..].trim_ascii());
            (name.strip_prefix(b"\"")?.strip_suffix(b"\"")? == key.as_bytes()).then_some(value)
        })
    };
    // MongoDB's name for the key that everybody else calls id.
    match of(key).or_else(|| if key == "id" { of("_id") } else { None }) {
        Some(value) => vec![Ok(value)],
        None => vec![Err(Reason::NoColumn)],
    }
}

/// The colon after a key.
fn colon(field: &[u8]) -> Option<usize> {
    let end = 1 + field.trim_ascii_start().get(1..)?.iter().position(|byte| *byte == b'"')?;
    let start = field.len() - field.trim_ascii_start().len() + end;
    field[start..].iter().position(|byte| *byte == b':').map(|at| start + at)
}

/// The parts of a list, at whose separators no bracket or quote is open.
fn fields(list: &[u8], separator: u8) -> Vec<&[u8]> {
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    let mut at = 0;
    while at < list.len() {
        match (quote, list[at]) {
            // In SQL a quote is doubled: it ends, and begins again.
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'\'' | b'`')) => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, byte) if byte == separator && depth == 0 => {
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

/// The statements of a dump: which column of the present one is meant.
pub(super) struct Dump<'a> {
    column: &'a str,
    /// Within `INSERT` the place of the column in its tuples; within `COPY` in its lines.
    insert: Option<usize>,
    copy: Option<usize>,
    /// The columns of the table that was created last, for inserts that name none.
    table: Option<Vec<String>>,
}

impl<'a> Dump<'a> {
    pub(super) fn new(column: &'a str) -> Self {
        Dump { column, insert: None, copy: None, table: None }
    }

    fn place(&self, names: &[u8]) -> Option<usize> {
        fields(names, b',').into_iter().position(|name| unquoted(name) == self.column)
    }

    /// The values of the column in a line.
    pub(super) fn rows<'l>(&mut self, line: &'l [u8]) -> Texts<'l> {
        let trimmed = line.trim_ascii();
        if let Some(place) = self.copy {
            if trimmed == b"\\." {
                self.copy = None;
                return Vec::new();
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            return vec![line.split(|byte| *byte == b'\t').nth(place).ok_or(Reason::NoColumn)];
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
            return Vec::new();
        }
        if upper.starts_with(b"CREATE TABLE") {
            self.table = Some(Vec::new());
        }
        let mut tuples: &[u8] = trimmed;
        if upper.starts_with(b"INSERT ") || upper.starts_with(b"REPLACE ") {
            let Some(values) = find(b"VALUES") else { return Vec::new() };
            let first = self.table.as_ref().map_or(Some(0), |names| names.iter().position(|name| name == self.column).or(Some(0)));
            self.insert = names(values).map_or(first, |names| self.place(names));
            tuples = trimmed[values + b"VALUES".len()..].trim_ascii();
        } else if !(trimmed.starts_with(b"(") && self.insert.is_some()) {
            if let Some(table) = self.table.as_mut().filter(|_| self.insert.is_none()) {
                table.extend(trimmed.split(u8::is_ascii_whitespace).next().map(unquoted).filter(|_| !upper.starts_with(b"CREATE")));
            }
            return Vec::new();
        }
        let Some(place) = self.insert else { return Vec::new() };
        let ends = tuples.ends_with(b";");
        let tuples = tuples.strip_suffix(b";").unwrap_or(tuples).trim_ascii();
        let of = |tuple: &'l [u8]| {
            let tuple = tuple.trim_ascii();
            let inner = tuple.strip_prefix(b"(")?.strip_suffix(b")")?;
            Some(fields(inner, b',').get(place).copied().ok_or(Reason::NoColumn))
        };
        if ends {
            self.insert = None;
        }
        fields(tuples, b',').into_iter().filter_map(of).collect()
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
            (r#"{"id":7}]"#, Ok("7")),
            (r#"{"n":{"id":7}}"#, Err(Reason::NoColumn)),
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
