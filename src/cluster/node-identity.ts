// Which machine of which cluster a data directory belongs to: a file in it, made at the first start.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent, makeDirectory, replaceFile } from "../base/durable-files.js";
import { ClusterRefusal } from "./check-database.js";

export const nodeFile = "node.json";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The machine's name in the cluster. Throws a ClusterRefusal when the directory belongs to another one. */
export async function nodeIdentity(folder: string, cluster: string): Promise<string> {
  const path = join(folder, nodeFile);
  const text = await ifPresent(readFile(path, "utf8"));
  if (text === undefined) {
    const node = randomUUID();
    await makeDirectory(folder);
    await replaceFile(path, `${JSON.stringify({ node, cluster })}\n`);
    return node;
  }
  const known = readIdentity(text);
  if (!known) {
    throw new ClusterRefusal("other-cluster", `${path} cannot be read: restore it, or use an empty data directory`);
  }
  if (known.cluster !== cluster) {
    throw new ClusterRefusal(
      "other-cluster",
      `the data directory ${folder} belongs to cluster ${known.cluster}, the database to ${cluster}: check NGIT_DATABASE_URL, or use an empty data directory`,
    );
  }
  return known.node;
}

function readIdentity(text: string): { readonly node: string; readonly cluster: string } | undefined {
  try {
    const { node, cluster } = JSON.parse(text) as { node?: unknown; cluster?: unknown };
    return typeof node === "string" && uuid.test(node) && typeof cluster === "string" ? { node, cluster } : undefined;
  } catch {
    return undefined;
  }
}
