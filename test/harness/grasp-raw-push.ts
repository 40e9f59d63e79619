// A push written by hand, for clients that speak git in a way stock git does not: which capabilities, which commands.

import { runProgram } from "./git-server.js";

const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;

export const zeroId = "0".repeat(40);

export interface RawCommand {
  readonly old: string;
  readonly new: string;
  readonly ref: string;
}

export interface RawPush {
  readonly commands: readonly RawCommand[];
  readonly capabilities: string;
  /** Objects to send, by id, from this working copy. */
  readonly from?: string;
  readonly objects?: readonly string[];
  /** Instead of well-formed commands. */
  readonly head?: string;
}

async function packOf(folder: string, objects: readonly string[]): Promise<Buffer> {
  const input = objects.map((id) => `${id}\n`).join("");
  const made = await runProgram("sh", ["-c", "git pack-objects --revs --stdout -q | base64 -w0"], {
    cwd: folder,
    input,
  });
  return Buffer.from(made.stdout, "base64");
}

/** Sends it and answers the whole body as text. */
export async function rawPush(url: string, push: RawPush): Promise<{ readonly status: number; readonly text: string }> {
  const lines = push.commands.map(({ old, new: to, ref }, index) =>
    pkt(`${old} ${to} ${ref}${index === 0 ? `\0 ${push.capabilities}` : ""}`),
  );
  const head = push.head ?? `${lines.join("")}0000`;
  const pack = push.from && push.objects ? await packOf(push.from, push.objects) : Buffer.alloc(0);
  const response = await fetch(`${url}/git-receive-pack`, {
    method: "POST",
    headers: { "Content-Type": "application/x-git-receive-pack-request" },
    body: Buffer.concat([Buffer.from(head, "latin1"), pack]),
  });
  return { status: response.status, text: Buffer.from(await response.arrayBuffer()).toString("latin1") };
}
