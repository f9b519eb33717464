//! An ID as a column of sqlx's databases. It uses the same types as an `i64`, such as `BIGINT`.

use super::Id;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Type};

impl<DB: Database> Type<DB> for Id
where
    i64: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        i64::type_info()
    }

    fn compatible(column: &DB::TypeInfo) -> bool {
        i64::compatible(column)
    }
}

impl<'q, DB: Database> Encode<'q, DB> for Id
where
    i64: Encode<'q, DB>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        self.get().encode_by_ref(buffer)
    }
}

/// Refuses a negative number with `ID_INVALID`.
impl<'r, DB: Database> Decode<'r, DB> for Id
where
    i64: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Id::new(i64::decode(value)?)?)
    }
}

#[cfg(all(test, feature = "sql", not(loom)))]
mod tests {
    use super::*;
    use sqlx::{Connection, MySqlConnection, PgConnection, Row};

    /// Tests a column with IDs, one without, and one of another type.
    macro_rules! on_a_server {
        ($name:ident, $connection:ty, $variable:literal, $insert:literal) => {
            #[test]
            #[ignore = "needs a server's URL: tests/servers runs it"]
            fn $name() {
                let url = std::env::var($variable).unwrap_or_else(|_| panic!("{} is not set: a server's URL", $variable));
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut server = <$connection>::connect(&url).await.unwrap();
                    sqlx::query("CREATE TEMPORARY TABLE orders (id BIGINT, parent BIGINT, name VARCHAR(9))")
                        .execute(&mut server)
                        .await
                        .unwrap();
                    let (first, last) = (Id::new(0).unwrap(), Id::new(i64::MAX).unwrap());
                    for (id, parent) in [(first, None), (last, Some(first))] {
                        sqlx::query($insert).bind(id).bind(parent).execute(&mut server).await.unwrap();
                    }
                    let rows: Vec<(Id, Option<Id>)> =
                        sqlx::query_as("SELECT id, parent FROM orders ORDER BY id").fetch_all(&mut server).await.unwrap();
                    assert_eq!(rows, [(first, None), (last, Some(first))]);
                    let row = sqlx::query("SELECT -id, parent, name FROM orders ORDER BY id DESC").fetch_one(&mut server).await.unwrap();
                    let error = row.try_get::<Id, _>(0).unwrap_err().to_string();
                    assert!(error.contains("-9223372036854775807 is negative"), "{error}");
                    assert!(row.try_get::<Id, _>(2).is_err(), "a text is not an ID");
                });
            }
        };
    }

    on_a_server!(ids_in_postgresql, PgConnection, "FRAZIL_TEST_POSTGRESQL", "INSERT INTO orders VALUES ($1, $2, 'x')");
    on_a_server!(ids_in_mariadb, MySqlConnection, "FRAZIL_TEST_MARIADB", "INSERT INTO orders VALUES (?, ?, 'x')");
}
