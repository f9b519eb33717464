CREATE TABLE "messages" (
	"id" bigint PRIMARY KEY NOT NULL,
	"topic_id" bigint NOT NULL,
	"author" varchar(100) NOT NULL,
	"text" varchar(2000) NOT NULL
);
--> statement-breakpoint
CREATE TABLE "topics" (
	"id" bigint PRIMARY KEY NOT NULL,
	"title" varchar(100) NOT NULL
);
--> statement-breakpoint
ALTER TABLE "messages" ADD CONSTRAINT "messages_topic_id_topics_id_fk" FOREIGN KEY ("topic_id") REFERENCES "public"."topics"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "messages_topic_id" ON "messages" USING btree ("topic_id");