CREATE TABLE IF NOT EXISTS topics (
    id bigint PRIMARY KEY,
    title varchar(100) NOT NULL
);

CREATE TABLE IF NOT EXISTS messages (
    id bigint PRIMARY KEY,
    topic_id bigint NOT NULL REFERENCES topics (id) ON DELETE RESTRICT ON UPDATE CASCADE,
    author varchar(100) NOT NULL,
    text varchar(2000) NOT NULL
);

CREATE INDEX IF NOT EXISTS messages_topic_id_idx ON messages (topic_id);
