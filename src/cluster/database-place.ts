// Where the database of a cluster is, read from its URL. What cannot be used is refused by name; no refusal shows the URL,
// which holds a password.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ClusterRefusal } from "./check-database.js";
import type { DatabasePlace } from "./session.js";

const connectMs = 5_000;

/** Throws a ClusterRefusal. Between machines TLS is checked fully unless the URL says `sslmode=disable`. */
export function databasePlace(url: string, schema = "holdfast"): DatabasePlace {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || (parsed.protocol !== "postgres:" && parsed.protocol !== "postgresql:")) throw wrongUrl();
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(schema)) {
    throw new ClusterRefusal(
      "wrong-url",
      "NGIT_DATABASE_SCHEMA must be a lower-case letter and then letters, digits and _, at most 63",
    );
  }
  const database = decoded(parsed.pathname.slice(1));
  const host = parsed.searchParams.get("host") ?? decoded(parsed.hostname).replace(/^\[|\]$/g, "");
  if (database === "" || host === "") throw wrongUrl();
  const port = Number(parsed.port || 5432);
  const isHere = host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.");
  const mode = parsed.searchParams.get("sslmode") ?? (isHere ? "disable" : "verify-full");
  const authority = parsed.searchParams.get("sslrootcert");
  return {
    config: {
      ...{ host, port, database },
      user: decoded(parsed.username) || undefined,
      password: decoded(parsed.password) || undefined,
      ssl: mode === "disable" ? false : { ...(authority && { ca: certificateIn(authority) }) },
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 3_000,
    },
    schema,
    words: `${host}:${port}/${database}`,
  };
}

const wrongUrl = (): ClusterRefusal =>
  new ClusterRefusal(
    "wrong-url",
    "NGIT_DATABASE_URL must be postgres://user:password@host:port/database, or postgres:///database?host=/run/postgresql for a socket on this machine",
  );

/** A password such as `100%pure` that was written as it is: the URL parser takes it, decoding throws. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ClusterRefusal(
      "wrong-url",
      "a % in NGIT_DATABASE_URL is not followed by two hexadecimal digits: in user, password and database write %25 for %, %40 for @, %2F for / and %3A for :",
    );
  }
}

function certificateIn(path: string): string {
  const its = `the file ${JSON.stringify(path)} that sslrootcert in NGIT_DATABASE_URL names`;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new ClusterRefusal("tls", `${its} cannot be read (${reason}): check the path and its permissions`);
  }
  try {
    // Node takes any text for an authority, and then trusts none.
    new X509Certificate(text);
  } catch {
    throw new ClusterRefusal("tls", `${its} holds no certificate: it must be the authority's, in PEM form`);
  }
  return text;
}
