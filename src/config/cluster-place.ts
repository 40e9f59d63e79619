// Where a machine's cluster is: the database's URL and the pack store's place, with secrets read from the files that hold
// them. Read at start only: a file that cannot be read stops it with a sentence.

import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Config, Problem } from "./config.js";
import type { SettingName } from "./schema.js";
import { postgresUrl } from "./value-kinds.js";

export interface BucketAccess {
  readonly bucket: string;
  readonly region: string;
  /** Undefined: Amazon's own. */
  readonly endpoint?: string;
  /** Undefined: what the machine has (environment, profile, role of the instance). */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export type PackAccess =
  | { readonly type: "directory"; readonly path: string }
  | ({ readonly type: "s3" } & BucketAccess);

export interface ClusterPlace {
  readonly url: string;
  readonly schema: string;
  /** What people call this machine. */
  readonly name: string;
  readonly packs: PackAccess;
}

export type ClusterSettings = Pick<
  Config,
  | "databaseUrl"
  | "databaseUrlFile"
  | "databaseSchema"
  | "nodeName"
  | "packStore"
  | "s3Endpoint"
  | "s3Region"
  | "s3AccessKeyId"
  | "s3SecretAccessKey"
  | "s3SecretAccessKeyFile"
>;

type Found<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

export function clusterPlace(config: ClusterSettings): Found<ClusterPlace> {
  const url = secretOf("NGIT_DATABASE_URL", config.databaseUrl, "NGIT_DATABASE_URL_FILE", config.databaseUrlFile);
  if (!url.ok) return url;
  const checked = postgresUrl().read(url.value ?? "");
  if (!checked.ok) {
    return fault("NGIT_DATABASE_URL_FILE", "holds no postgres:// URL", "Write one into it, and nothing else");
  }
  const packs = packAccess(config);
  if (!packs.ok) return packs;
  const name = config.nodeName ?? hostname();
  return { ok: true, value: { url: checked.value, schema: config.databaseSchema, name, packs: packs.value } };
}

function packAccess(config: ClusterSettings): Found<PackAccess> {
  const { packStore, s3Endpoint, s3Region, s3AccessKeyId } = config;
  if (packStore === undefined)
    return fault("NGIT_PACK_STORE", "is not set", "Set it to directory:<path> or s3:<bucket>");
  if (packStore.type === "directory") return { ok: true, value: { type: "directory", path: resolve(packStore.path) } };
  const secret = secretOf(
    "NGIT_S3_SECRET_ACCESS_KEY",
    config.s3SecretAccessKey,
    "NGIT_S3_SECRET_ACCESS_KEY_FILE",
    config.s3SecretAccessKeyFile,
  );
  if (!secret.ok) return secret;
  const { value: secretAccessKey } = secret;
  const credentials =
    s3AccessKeyId !== undefined && secretAccessKey !== undefined
      ? { accessKeyId: s3AccessKeyId, secretAccessKey }
      : undefined;
  return {
    ok: true,
    value: {
      ...packStore,
      region: s3Region,
      ...(s3Endpoint !== undefined && { endpoint: s3Endpoint }),
      ...(credentials && { credentials }),
    },
  };
}

const fault = (key: SettingName, message: string, fix: string): Found<never> => ({
  ok: false,
  problem: { key, origin: "file", message, fix },
});

/** The file's content is never shown: it may be a secret with a typing error. */
function secretOf(
  name: SettingName,
  value: string | undefined,
  fileName: SettingName,
  file: string | undefined,
): Found<string | undefined> {
  if (value !== undefined || file === undefined) return { ok: true, value };
  try {
    const text = readFileSync(file, "utf8").trim();
    if (text !== "" && text.length <= 4_096 && !/[\x00-\x1f\x7f]/.test(text)) return { ok: true, value: text };
    return fault(
      fileName,
      `the file ${JSON.stringify(file)} does not hold one line`,
      `Write ${name} into it, and nothing else`,
    );
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unreadable";
    return fault(
      fileName,
      `the file ${JSON.stringify(file)} cannot be read (${reason})`,
      "Check the path and its permissions",
    );
  }
}
