// The head of a push: `old new ref` lines, capabilities after a NUL on the first, optional `shallow` lines, flush.
// Strict (git-http.md, Push 1; threats.md rows 2 and 5): git would also execute what it finds in a push certificate, so
// whatever is not exactly this is refused. Incremental: the pack follows in the same body and is never held.

import { GatheredBytes } from "../base/collections.js";
import { sizeText } from "../base/text.js";
import type { Config } from "../config/config.js";
import { formatOf, isOid, isRefName, type ObjectFormat, type Oid } from "../nostr/nip34.js";
import { PktError, readPkt } from "./pkt-line.js";
import type { PushCommand } from "./push-types.js";

export interface PushCapabilities {
  readonly reportStatus: boolean;
  readonly sideBand: boolean;
  readonly quiet: boolean;
  readonly atomic: boolean;
}

interface PushHead {
  readonly commands: readonly PushCommand[];
  /** Of all ids in them. */
  readonly format: ObjectFormat;
  readonly capabilities: PushCapabilities;
}

export type PushHeadResult =
  | { readonly status: "more" }
  | { readonly status: "probe" }
  | { readonly status: "ready"; readonly head: PushHead }
  | {
      readonly status: "refused";
      readonly code: "bad-request" | "too-many-commands";
      readonly reason: string;
      readonly capabilities: PushCapabilities;
    };

const noCapabilities: PushCapabilities = { reportStatus: false, sideBand: false, quiet: false, atomic: false };

function parseCapabilities(text: string): PushCapabilities {
  const tokens = new Set(text.trim().split(" "));
  return {
    reportStatus: tokens.has("report-status"),
    sideBand: tokens.has("side-band-64k"),
    quiet: tokens.has("quiet"),
    atomic: tokens.has("atomic"),
  };
}

const isZero = (text: string): boolean => /^0+$/.test(text);

function parseCommand(line: string): (PushCommand & { readonly format: ObjectFormat }) | undefined {
  const [oldText, newText] = [line.slice(0, line.indexOf(" ")), line.split(" ", 2)[1] ?? ""];
  const ref = line.slice(oldText.length + newText.length + 2);
  if (!isOid(oldText) || !isOid(newText) || oldText.length !== newText.length || !isRefName(ref)) return undefined;
  const unlessZero = (oid: Oid): Oid | undefined => (isZero(oid) ? undefined : oid);
  return { ref, old: unlessZero(oldText), new: unlessZero(newText), format: formatOf(oldText) };
}

/** Feed it chunks until it says something else than `more`. */
export class PushHeadParser {
  #gathered = new GatheredBytes();
  #at = 0;
  /** Bytes read before those in `#gathered`. */
  #consumed = 0;
  #capabilities = noCapabilities;
  #format: ObjectFormat | undefined;
  readonly #commands: PushCommand[] = [];
  readonly #refs = new Set<string>();

  /** All lines before the pack together have at most `pushMaxCommandBytes`. */
  constructor(readonly limits: Pick<Config, "pushMaxCommands" | "pushMaxCommandBytes">) {}

  push(chunk: Buffer): PushHeadResult {
    // A client that sends single bytes must not make us copy for each what came before it.
    if (this.#at > 0) {
      const unread = this.#gathered.all.subarray(this.#at);
      this.#gathered = new GatheredBytes();
      if (unread.length > 0) this.#gathered.add(unread);
      this.#consumed += this.#at;
      this.#at = 0;
    }
    this.#gathered.add(chunk);
    try {
      return this.#parse();
    } catch (error) {
      if (error instanceof PktError) return this.#refuse(error.message);
      throw error;
    }
  }

  /** What follows the head in the chunks pushed so far. */
  get rest(): Buffer {
    return this.#gathered.all.subarray(this.#at);
  }

  #parse(): PushHeadResult {
    const bytes = this.#gathered.all;
    for (;;) {
      const read = readPkt(bytes, this.#at);
      const { pushMaxCommandBytes: maxBytes } = this.limits;
      if (this.#consumed + this.#at > maxBytes) {
        const reason = `the list of refs is over ${sizeText(maxBytes)}: push fewer refs at a time`;
        return this.#refuse(reason, "too-many-commands");
      }
      if (!read) return { status: "more" };
      this.#at = read.end;
      const { pkt } = read;
      if (pkt.type === "flush") return this.#end();
      if (pkt.type !== "data") return this.#refuse("only commands may come before the flush of a push");
      const refused = this.#line(pkt.payload);
      if (refused) return refused;
    }
  }

  #end(): PushHeadResult {
    if (this.#commands.length === 0) {
      return this.#consumed + this.#at === 4 ? { status: "probe" } : this.#refuse("a push must contain a command");
    }
    const format = this.#format ?? "sha1";
    return { status: "ready", head: { commands: this.#commands, format, capabilities: this.#capabilities } };
  }

  #line(payload: Buffer): PushHeadResult | undefined {
    let body = payload;
    const nul = payload.indexOf(0);
    if (nul >= 0) {
      if (this.#commands.length > 0) return this.#refuse("capabilities belong on the first command");
      this.#capabilities = parseCapabilities(payload.toString("utf8", nul + 1));
      body = payload.subarray(0, nul);
    }
    if (body.at(-1) === 0x0a) body = body.subarray(0, -1);
    const line = body.toString("utf8");
    // A replaced byte would make us authorise another name than the one that was sent.
    if (!Buffer.from(line, "utf8").equals(body)) return this.#refuse("a command must be UTF-8");
    if (/^shallow (?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(line)) return undefined;
    const parsed = parseCommand(line);
    if (!parsed) return this.#refuse("a command must be two object ids and a legal ref name");
    const { format, ...command } = parsed;
    this.#format ??= format;
    if (format !== this.#format) return this.#refuse("all object ids of a push must have the same length");
    if (this.#refs.has(command.ref)) return this.#refuse("a push must name each ref once");
    const { pushMaxCommands: maxCommands } = this.limits;
    if (this.#commands.length >= maxCommands) {
      return this.#refuse(`a push may move at most ${maxCommands} refs: push fewer at a time`, "too-many-commands");
    }
    this.#refs.add(command.ref);
    this.#commands.push(command);
    return undefined;
  }

  #refuse(reason: string, code: "bad-request" | "too-many-commands" = "bad-request"): PushHeadResult {
    return { status: "refused", code, reason, capabilities: this.#capabilities };
  }
}
