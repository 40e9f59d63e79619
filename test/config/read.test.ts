// A setting that nothing reads promises its operator something the server does not do.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { allSettings } from "../../src/config/schema.js";

/** Read by src/config itself: other settings, and the place of a cluster (cluster-place.ts), are worked out of them. */
const workedOut: readonly string[] = [
  "NGIT_DATA_PATH",
  "NGIT_DATABASE_URL",
  "NGIT_DATABASE_URL_FILE",
  "NGIT_DATABASE_SCHEMA",
  "NGIT_NODE_NAME",
  "NGIT_S3_ENDPOINT",
  "NGIT_S3_REGION",
  "NGIT_S3_ACCESS_KEY_ID",
  "NGIT_S3_SECRET_ACCESS_KEY",
  "NGIT_S3_SECRET_ACCESS_KEY_FILE",
];

const program = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .filter((path) => !path.startsWith("config/") && !path.includes("/testing/"))
  .map((path) => readFileSync(`src/${path}`, "utf8"))
  .join("\n");

const readAsProperty = new Set([...program.matchAll(/\.([a-z][A-Za-z0-9]+)\b/g)].map(([, name]) => name));
const takenApart = new Set(
  [...program.matchAll(/\{([^{}]+)\}(?:: \w+[,)]| = [\w.#]*(?:config|current|limits|rules)\b)/g)].flatMap(
    ([, names = ""]) => names.match(/\w+/g) ?? [],
  ),
);

test("every setting is read somewhere outside the configuration room", () => {
  const unread = allSettings
    .filter(({ property }) => !readAsProperty.has(property) && !takenApart.has(property))
    .map(({ name }) => name);
  assert.deepEqual(unread, workedOut);
});
