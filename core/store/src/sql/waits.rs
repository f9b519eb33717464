//! PostgreSQL's reason for a late call: the event for which the session that locks the table is
//! waiting.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

/// Queries the reason over a separate connection, because the late one cannot be used any more.
/// `None` if the user may not see the reason, or if the session only waits for locks. A commit that
/// waits for a standby keeps its locks.
pub(super) async fn ask(options: PgConnectOptions, table: &str) -> sqlx::Result<Option<String>> {
    let query = format!(
        "SELECT string_agg(DISTINCT CASE wait_event WHEN 'SyncRep' THEN 'a standby to confirm its commit (SyncRep: synchronous_standby_names)' \
         WHEN 'ClientRead' THEN 'its own client (ClientRead: an open transaction)' ELSE wait_event_type || ' ' || wait_event END, ', ') \
         FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE relation = to_regclass('{table}') AND granted \
         AND mode <> 'AccessShareLock' AND wait_event_type <> 'Lock'"
    );
    let mut connection = options.connect().await?;
    let row = sqlx::raw_sql(AssertSqlSafe(query)).fetch_one(&mut connection).await?;
    connection.close().await?;
    row.try_get(0)
}
