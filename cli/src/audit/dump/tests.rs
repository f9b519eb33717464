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
        let got: Vec<_> = of_json(line.as_bytes(), "id").into_iter().map(|text| text.map(|text| str::from_utf8(text).unwrap())).collect();
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
