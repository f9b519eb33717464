//! The answer of PostgreSQL to why a call was late: what the session waits for that keeps the table locked.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

/// Asks over a connection of its own, because the late one is of no use any more. `None` where the user may not see it, or where only
/// locks are waited for. A commit that waits for a standby keeps its locks.
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
