// `POST git-receive-pack` over HTTP: reads the commands, lets receive.ts do the push, and answers so that git can print
// why (git-http.md, Push 1, 5 and 8). A refused body is read to its end first: a report that comes earlier is not read.
// The answer is HTTP 200 and a report framed by the client's own capabilities: exactly one line for each command, and human
// words on band 2. While we work, something goes out every few seconds, because clients give up after 15 s of silence.

import type { ServerResponse } from "node:http";
import { Turns } from "../base/budget/turns.js";
import type { Clock } from "../base/clock.js";
import type { ObjectFormat } from "../nostr/nip34.js";
import { mayBeStored, SharedLogError } from "../store/port.js";
import { refuseAll, resultOf } from "./decide-push.js";
import { BodyBrokenError, type BodyReader } from "./http-body.js";
import {
  busy,
  type FoundRepository,
  type GitHttpOptions,
  type GitRequest,
  refuse,
  type UntimedOperation,
  usualPushTurns,
} from "./http-types.js";
import { encodeBand, encodePkt, flushPkt } from "./pkt-line.js";
import { type PushCapabilities, PushHeadParser } from "./push-commands.js";
import type { CommandVerdict, PushCommand, PushRefusalCode, PushResult } from "./push-types.js";
import { receivePush } from "./receive.js";
import { ObjectsUnavailableError } from "./run.js";

const overBudgetGraceMs = 1_000;

export class PushEndpoint {
  readonly #limiter: Turns;

  constructor(readonly options: GitHttpOptions) {
    this.#limiter = new Turns(() => options.pushTurns ?? usualPushTurns);
  }

  /** Pushes that wait for their turn. */
  get queued(): number {
    return this.#limiter.queued;
  }

  async serve(
    { ip }: GitRequest,
    response: ServerResponse,
    body: BodyReader,
    found: FoundRepository,
    signal: AbortSignal,
  ): Promise<UntimedOperation> {
    const parser = new PushHeadParser(this.options.live.current);
    response.setHeader("Content-Type", "application/x-git-receive-pack-result");
    for (;;) {
      const chunk = await body.next();
      if (!chunk) return { ...refuse(response, 400, "the push ended early", "bad-request"), operation: "push" };
      const result = parser.push(chunk);
      if (result.status === "more") continue;
      if (result.status === "probe") {
        response.end();
        return { operation: "probe", status: "ok", bytesIn: body.bytes, bytesOut: 0 };
      }
      if (result.status === "refused") {
        return await this.#refusePush(response, body, result.capabilities, result.code, result.reason);
      }
      const { head } = result;
      const responder = this.#responder(response, head.capabilities);
      return await this.#runPush(responder, body, found, { ...head, first: parser.rest, ip, signal });
    }
  }

  #responder(response: ServerResponse, capabilities: PushCapabilities): PushResponder {
    return new PushResponder(
      response,
      capabilities,
      this.options.clock,
      this.options.live.current.gitProgressIntervalSecs * 1_000,
    );
  }

  async #runPush(
    responder: PushResponder,
    body: BodyReader,
    found: FoundRepository,
    push: {
      readonly commands: readonly PushCommand[];
      readonly format: ObjectFormat;
      readonly capabilities: PushCapabilities;
      readonly first: Buffer;
      readonly ip: string;
      readonly signal: AbortSignal;
    },
  ): Promise<UntimedOperation> {
    const { repositories } = this.options;
    const config = this.options.live.current;
    const faulted = (fault: unknown): PushResult => {
      if (fault instanceof BodyBrokenError || push.signal.aborted) throw fault;
      // An HTTP error here would make git print "Everything up-to-date".
      return resultOf(refuseAll(push.commands, { ok: false, code: "internal", reason: failureText(fault) }), { fault });
    };
    try {
      const result = await receivePush(repositories, this.options.served, {
        address: found.address,
        readOnlyReason: found.readOnlyReason,
        createOnPush: found.createOnPush ?? false,
        commands: push.commands,
        format: push.format,
        atomic: push.capabilities.atomic,
        ip: push.ip,
        budgets: config,
        first: push.first,
        next: async () => {
          const chunk = await body.next();
          // From here on only we are at work: git may check the objects for minutes.
          if (!chunk) responder.begin();
          return chunk;
        },
        turn: (trusted) => this.#limiter.acquire({ repository: found.address.key, ip: push.ip, trusted }, push.signal),
        wallClockMs: config.gitTotalSecs * 1_000,
        signal: push.signal,
      }).catch(faulted);
      responder.stop();
      if (result === "busy") return { ...busy(responder.response), operation: "push" };
      if (!(await body.drain())) this.#cutSoon(responder.response);
      const bytesOut = await responder.end(result);
      return {
        operation: "push",
        status: result.code === "ok" ? "ok" : "refused",
        bytesIn: body.bytes,
        bytesOut,
        ...(result.code === "ok" ? {} : { code: result.code }),
        ...(result.fault === undefined ? {} : { fault: result.fault }),
      };
    } finally {
      responder.stop();
    }
  }

  async #refusePush(
    response: ServerResponse,
    body: BodyReader,
    capabilities: PushCapabilities,
    code: PushRefusalCode,
    reason: string,
  ): Promise<UntimedOperation> {
    if (!(await body.drain())) this.#cutSoon(response);
    const outcome = { operation: "push", status: "refused", code, bytesIn: body.bytes } as const;
    if (!capabilities.reportStatus) {
      const { bytesOut } = refuse(response, 400, reason, "bad-request");
      return { ...outcome, bytesOut };
    }
    const responder = this.#responder(response, capabilities);
    const bytesOut = await responder.end({ unpack: reason, verdicts: [], messages: [reason] });
    return { ...outcome, bytesOut };
  }

  /** The body is over every budget: the client gets a moment to read why, then the connection goes. */
  #cutSoon(response: ServerResponse): void {
    const { socket } = response.req;
    // Otherwise Node closes at once where the client asked for that, and the system drops an answer nobody has read.
    response.shouldKeepAlive = true;
    this.options.clock.after(overBudgetGraceMs, () => socket.destroy());
  }
}

function failureText(fault: unknown): string {
  if (mayBeStored(fault))
    return "error: whether this push was stored is not known: fetch, look, and push again if it is not";
  if (fault instanceof SharedLogError || fault instanceof ObjectsUnavailableError) return `error: ${fault.message}`;
  return "this server could not finish the push: try again";
}

const maxHumanLines = 8;

interface PushReport {
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
