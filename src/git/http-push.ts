// `POST git-receive-pack` over HTTP: reads the commands, lets receive.ts do the push, and answers so that git can print
// why (git-http.md, Push 1, 5 and 8). A refused body is read to its end first: a report that comes earlier is not read.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Turns } from "../base/budget/turns.js";
import { BodyBrokenError, type BodyReader } from "./http-body.js";
import { busy, type FoundRepository, type GitHttpOptions, type Outcome, refuse } from "./http-types.js";
import { type PushCapabilities, PushHeadParser } from "./push-commands.js";
import type { PushHooks, PushResult } from "./push-hooks.js";
import { PushResponder } from "./push-report.js";
import { refuseAll, resultOf } from "./push-verdicts.js";
import { receivePush } from "./receive.js";
import type { PushRefusalCode } from "./types.js";

const overBudgetGraceMs = 1_000;

export class PushEndpoint {
  readonly #limiter: Turns;

  constructor(readonly options: GitHttpOptions) {
    this.#limiter = new Turns(() => options.limits.pushes);
  }

  /** Pushes that wait for their turn. */
  get queued(): number {
    return this.#limiter.queued;
  }

  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    body: BodyReader,
    found: FoundRepository,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const ip = this.options.ipOf(request);
    const parser = new PushHeadParser(this.options.limits.pushHead);
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
      const { commands, capabilities } = result.head;
      const responder = this.#responder(response, capabilities);
      return await this.#runPush(responder, body, found, { commands, capabilities, first: parser.rest, ip, signal });
    }
  }

  #responder(response: ServerResponse, capabilities: PushCapabilities): PushResponder {
    return new PushResponder(response, capabilities, this.options.clock, this.options.limits.progressMs);
  }

  async #runPush(
    responder: PushResponder,
    body: BodyReader,
    found: FoundRepository,
    push: {
      readonly commands: Parameters<PushHooks["authority"]>[1];
      readonly capabilities: PushCapabilities;
      readonly first: Buffer;
      readonly ip: string;
      readonly signal: AbortSignal;
    },
  ): Promise<Outcome> {
    const { repositories, budgets, limits } = this.options;
    const faulted = (fault: unknown): PushResult => {
      if (fault instanceof BodyBrokenError || push.signal.aborted) throw fault;
      // An HTTP error here would make git print "Everything up-to-date".
      const reason = "this server could not finish the push: try again";
      return resultOf(refuseAll(push.commands, { ok: false, code: "internal", reason }), { fault });
    };
    try {
      const result = await receivePush(repositories, this.options, {
        address: found.address,
        readOnlyReason: found.readOnlyReason,
        createOnPush: found.createOnPush ?? false,
        commands: push.commands,
        atomic: push.capabilities.atomic,
        ip: push.ip,
        budgets,
        first: push.first,
        next: async () => {
          const chunk = await body.next();
          // From here on only we are at work: git may check the objects for minutes.
          if (!chunk) responder.begin();
          return chunk;
        },
        turn: (trusted) => this.#limiter.acquire({ repository: found.address.key, ip: push.ip, trusted }, push.signal),
        wallClockMs: limits.totalMs,
        signal: push.signal,
      }).catch(faulted);
      responder.stop();
      if (result === "busy") return { ...busy(responder.response, limits.retryAfterSeconds), operation: "push" };
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
  ): Promise<Outcome> {
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
