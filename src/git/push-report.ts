// How a push is answered (git-http.md, Push 8): HTTP 200 and a report framed by the client's own capabilities, exactly
// one line for each command, and human words on band 2. While we work, something goes out every few seconds, because
// clients give up after 15 s of silence.

import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.js";
import { encodeBand, encodePkt, flushPkt } from "./pkt-line.js";
import type { PushCapabilities } from "./push-commands.js";
import type { CommandVerdict } from "./types.js";

const maxHumanLines = 8;

export interface PushReport {
  /** "ok" or why the objects were not taken. */
  readonly unpack: string;
  readonly verdicts: readonly CommandVerdict[];
  /** More to tell the person who pushes. */
  readonly messages: readonly string[];
}

/** One line of printable text: what others wrote must not frame our answer (threats.md row 5). */
const oneLine = (text: string): string => text.replace(/[\x00-\x1f\x7f]+/g, " ").slice(0, 500);

export function reportBody(report: PushReport, capabilities: PushCapabilities): Buffer {
  if (!capabilities.reportStatus) return Buffer.alloc(0);
  const plain = Buffer.concat([
    encodePkt(`unpack ${oneLine(report.unpack)}\n`),
    ...report.verdicts.map((verdict) =>
      encodePkt(verdict.ok ? `ok ${verdict.command.ref}\n` : `ng ${verdict.command.ref} ${oneLine(verdict.reason)}\n`),
    ),
    flushPkt,
  ]);
  const reasons = report.verdicts.flatMap((verdict) => (verdict.ok ? [] : [verdict.reason]));
  if (capabilities.sideBand) {
    const human = [...new Set([...reasons.slice(0, maxHumanLines), ...report.messages])];
    return Buffer.concat([...human.map((line) => encodeBand(2, `${oneLine(line)}\n`)), encodeBand(1, plain), flushPkt]);
  }
  const [reason] = report.unpack === "ok" ? reasons : [report.unpack];
  if (reason === undefined) return plain;
  return Buffer.concat([encodePkt(`ERR authorisation failed: ${oneLine(reason)}\n`), plain]);
}

/** Owns the response of a push from the end of its body to the report. */
export class PushResponder {
  #stopProgress: (() => void) | undefined;
  #hasBegun = false;

  constructor(
    readonly response: ServerResponse,
    readonly capabilities: PushCapabilities,
    readonly clock: Clock,
    readonly progressMs: number,
  ) {}

  /** From now on the client hears from us. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (!this.capabilities.sideBand) {
      this.response.flushHeaders();
      return;
    }
    const tick = (): void => {
      // `quiet` asks for no words: an empty packet on band 1 is only a sign of life.
      const sign = this.capabilities.quiet ? encodeBand(1, "") : encodeBand(2, "still working on it\n");
      if (!this.response.destroyed) this.response.write(sign);
      this.#stopProgress = this.clock.after(this.progressMs, tick);
    };
    this.#stopProgress = this.clock.after(this.progressMs, tick);
  }

  stop(): void {
    this.#stopProgress?.();
    this.#stopProgress = undefined;
  }

  /** Resolves with the number of bytes when the report is handed to the socket. */
  async end(report: PushReport): Promise<number> {
    this.stop();
    const body = reportBody(report, this.capabilities);
    if (this.response.destroyed) return 0;
    await new Promise<void>((resolve) => {
      this.response.once("close", resolve);
      this.response.end(body, () => resolve());
    });
    return body.length;
  }
}
