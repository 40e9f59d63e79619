// Settings of a machine that is one of several: the shared log in PostgreSQL, and the store for packs and large files.

import { type SettingTable, setting } from "../setting.js";
import { packPlace, path, postgresUrl, schemaName, text, visible, webUrl } from "../value-kinds.js";

export const clusterSettings = {
  NGIT_DATABASE_URL: setting(postgresUrl(), {
    secret: true,
    help: "For postgres: where the database is. Between machines TLS is checked fully (sslmode=verify-full) unless the URL says otherwise.",
    example: "postgres://holdfast:secret@db.example.com/holdfast?sslrootcert=/etc/ssl/db.pem",
  }),
  NGIT_DATABASE_URL_FILE: setting(path(), {
    help: "A file that holds NGIT_DATABASE_URL, instead of it.",
    example: "/run/secrets/holdfast-database-url",
  }),
  NGIT_DATABASE_SCHEMA: setting(schemaName(), {
    fallback: "holdfast",
    help: "For postgres: the schema of the cluster's tables. Clusters that share a database need one each.",
  }),
  NGIT_NODE_NAME: setting(text(60), {
    fallbackWords: "the machine's host name",
    help: "For postgres: what this machine is called in `holdfast cluster status`, logs and metrics. Each machine needs a name of its own.",
  }),
  NGIT_PACK_STORE: setting(packPlace(), {
    help: "For postgres: where all machines keep packs, large files and snapshots. A directory on a file system they share, or a bucket of S3.",
    example: "s3:holdfast-packs",
  }),
  NGIT_S3_ENDPOINT: setting(webUrl(), {
    fallbackWords: "Amazon's, for the region",
    help: "For a bucket: the URL of the S3 server.",
    example: "https://s3.example.com",
  }),
  NGIT_S3_REGION: setting(visible(60), { fallback: "us-east-1", help: "For a bucket: its region." }),
  NGIT_S3_ACCESS_KEY_ID: setting(visible(128), {
    fallbackWords: "what the machine has: AWS_ACCESS_KEY_ID, a profile, or the role of the instance",
    help: "For a bucket: the key's name.",
  }),
  NGIT_S3_SECRET_ACCESS_KEY: setting(visible(256), { secret: true, help: "For a bucket: the key." }),
  NGIT_S3_SECRET_ACCESS_KEY_FILE: setting(path(), {
    help: "A file that holds NGIT_S3_SECRET_ACCESS_KEY, instead of it.",
    example: "/run/secrets/holdfast-s3",
  }),
} satisfies SettingTable;
