//! The first column of a query, row by row. The command line searches it for IDs. Leases do not use
//! it.

use super::link::refused;
use super::refusal::{self, Refusal};
use super::url::{self, Options, SqlServer};
use frazil_base::error::{Error, ErrorKind, Result};
use futures_core::Stream;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

const TO_CONNECT: Duration = Duration::from_secs(15);
const TO_CLOSE: Duration = Duration::from_millis(200);

/// The interval between checks whether a wait for the server should continue.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The beginning of the transaction, in which no query may write.
const BEGIN: &str = "START TRANSACTION READ ONLY";
/// A COMMIT within the query ends the transaction. In MariaDB, so does a statement such as CREATE
/// TABLE. The next transaction has the access mode of the session.
const FOR_A_MYSQL_SESSION: &str = "SET SESSION TRANSACTION READ ONLY";
const FOR_A_POSTGRESQL_SESSION: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";

/// Runs a query, and passes each row's value as text, or `None` for NULL, until `take` or `stop`
/// ends it. Only the present row of the answer is in memory.
///
/// # Errors
/// `STORE_*` for the connection; `SPEC` for the database's error about the query, and for a query
/// with several columns.
pub fn column(given: &str, query: &str, stop: &dyn Fn() -> bool, take: &mut dyn FnMut(Option<&[u8]>) -> bool) -> Result<()> {
    let login = if given.starts_with("postgres") { url::postgresql(given)? } else { url::mysql(given)? };
    let unreachable = |why: String| refusal::error(&Refusal::other(why), &login);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| unreachable(error.to_string()))?;
    let late = || unreachable(format!("no answer within {TO_CONNECT:?}"));
    let lost = |error| refusal::error(&refused(error), &login);
    let done = runtime.block_on(async {
        match login.options.clone() {
            Options::Postgresql(options) => {
                let Some(connection) = unless(stop, options.connect()).await else {
                    return if stop() { Ok(()) } else { Err(late()) };
                };
                let mut connection = connection.map_err(lost)?;
                connection.execute(FOR_A_POSTGRESQL_SESSION).await.map_err(lost)?;
                connection.execute(BEGIN).await.map_err(lost)?;
                let rows = sqlx::raw_sql(AssertSqlSafe(query)).fetch(&mut connection);
                each(rows, &login, stop, |row| {
                    one_column(row.len())?;
                    Ok(take(row.try_get_unchecked::<Option<&str>, _>(0)?.map(str::as_bytes)))
                })
                .await?;
                // This close is only polite to the server, because the rows have arrived.
                let _ = timeout(TO_CLOSE, connection.close()).await;
            }
            Options::Mysql(options) => {
                let Some(connection) = unless(stop, options.connect()).await else {
                    return if stop() { Ok(()) } else { Err(late()) };
                };
                let mut connection = connection.map_err(lost)?;
                connection.execute(FOR_A_MYSQL_SESSION).await.map_err(lost)?;
                connection.execute(BEGIN).await.map_err(lost)?;
                let rows = sqlx::raw_sql(AssertSqlSafe(query)).fetch(&mut connection);
                each(rows, &login, stop, |row| {
                    one_column(row.len())?;
                    Ok(take(row.try_get_unchecked::<Option<&[u8]>, _>(0)?))
                })
                .await?;
                let _ = timeout(TO_CLOSE, connection.close()).await;
            }
        }
        Ok(())
    });
    // A plain drop would wait for a look-up of the host's name, which has no timeout.
    runtime.shutdown_background();
    done
}

/// Returns the work's result; `None` if it takes too long, or `stop` ends it.
async fn unless<T>(stop: &dyn Fn() -> bool, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, end) = (pin!(work), Instant::now() + TO_CONNECT);
    while Instant::now() < end && !stop() {
        if let Ok(done) = timeout(LOOK_EVERY, work.as_mut()).await {
            return Some(done);
        }
    }
    None
}

fn one_column(columns: usize) -> sqlx::Result<()> {
    if columns == 1 { Ok(()) } else { Err(sqlx::Error::Configuration(format!("it gives {columns} columns, not one").into())) }
}

async fn each<R>(
    mut rows: impl Stream<Item = sqlx::Result<R>> + Unpin,
    login: &SqlServer,
    stop: &dyn Fn() -> bool,
    mut take: impl FnMut(R) -> sqlx::Result<bool>,
) -> Result<()> {
    let mut look = pin!(sleep(LOOK_EVERY));
    loop {
        let next = poll_fn(|context| {
            if let Poll::Ready(row) = Pin::new(&mut rows).poll_next(context) {
                return Poll::Ready(Some(row));
            }
            look.as_mut().poll(context).map(|()| None)
        });
        let went_on = match next.await {
            Some(Some(row)) => row.and_then(&mut take),
            Some(None) => return Ok(()),
            None => {
                look.as_mut().reset(Instant::now() + LOOK_EVERY);
                Ok(!stop())
            }
        };
        match went_on {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(refuse(error, login)),
        }
    }
}

/// Makes a database's error an error of the query, unless the connection is lost.
fn refuse(error: sqlx::Error, login: &SqlServer) -> Error {
    let why = match error {
        sqlx::Error::Configuration(why) => why.to_string(),
        sqlx::Error::Database(_) => {
            let Refusal { code, message } = refused(error);
            format!("{} ({code})", login.without_user(&message))
        }
        other => return refusal::error(&refused(other), login),
    };
    Error::new(ErrorKind::Spec, format!("the query cannot be run by {}: {why}", login.endpoint))
}
