// LFS as git-lfs speaks it over HTTP: one batch request, then a PUT or GET at the address that the answer gives; and the
// pointers that stand for files in commits.

import { createHash } from "node:crypto";
import { ask } from "./raw-http.js";

export interface LargeFile {
  readonly oid: string;
  readonly size: number;
  readonly content: Buffer;
}

export interface BatchObject {
  readonly oid: string;
  readonly size: number;
  readonly actions?: Readonly<Record<"upload" | "download", { readonly href: string }>>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface BatchAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly objects: readonly BatchObject[];
  readonly message: string | undefined;
}

export function largeFileOf(text: string | Buffer): LargeFile {
  const content = Buffer.from(text);
  return { oid: createHash("sha256").update(content).digest("hex"), size: content.length, content };
}

export const pointerTo = ({ oid, size }: Pick<LargeFile, "oid" | "size">): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}`;

const contentType = "application/vnd.git-lfs+json";

export async function batch(
  url: string,
  operation: "upload" | "download",
  files: readonly Pick<LargeFile, "oid" | "size">[],
  authorization?: string,
): Promise<BatchAnswer> {
  const objects = files.map(({ oid, size }) => ({ oid, size }));
  const headers = { Accept: contentType, "Content-Type": contentType };
  const answer = await ask(`${url}/info/lfs/objects/batch`, {
    headers: authorization === undefined ? headers : { ...headers, Authorization: authorization },
    body: JSON.stringify({ operation, transfers: ["basic"], hash_algo: "sha256", objects }),
  });
  const body = (answer.text === "" ? {} : JSON.parse(answer.text)) as Partial<BatchAnswer>;
  return { status: answer.status, headers: answer.headers, objects: body.objects ?? [], message: body.message };
}

export function put(href: string, content: Buffer, authorization?: string) {
  const headers = { "Content-Length": String(content.length) };
  const all = authorization === undefined ? headers : { ...headers, Authorization: authorization };
  return ask(href, { method: "PUT", headers: all, body: content });
}

/** What a client has after a clone: undefined where the server does not give it. */
export async function download(url: string, file: LargeFile, authorization?: string): Promise<string | undefined> {
  const { objects } = await batch(url, "download", [file], authorization);
  const href = objects[0]?.actions?.download.href;
  if (href === undefined) return undefined;
  const answer = await ask(href);
  return answer.status === 200 ? answer.body.toString() : undefined;
}

/** Everything that a push sends for these; answers the status of each transfer. */
export async function upload(url: string, files: readonly LargeFile[], authorization?: string): Promise<number[]> {
  const { objects } = await batch(url, "upload", files, authorization);
  const statuses: number[] = [];
  for (const { oid, actions, error } of objects) {
    const file = files.find((one) => one.oid === oid);
    if (error || !file) statuses.push(error?.code ?? 0);
    else if (actions) statuses.push((await put(actions.upload.href, file.content)).status);
    else statuses.push(204);
  }
  return statuses;
}
