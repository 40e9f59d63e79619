// The relay: takes upgraded sockets, gives each a session, keeps them honest (ping, stalls, limits) and closes them.
// It is a reader of the store; events enter through intake only.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { privateKinds } from "../nostr/event.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import { RecordBudget, type RelayParts } from "./connection.js";
import type { RelayLimits } from "./limits.js";
import { Live } from "./live.js";
import { FlushTurn } from "./outbox.js";
import { type Room, SocketSession } from "./socket-session.js";
import { relayBudgets, Visitors } from "./visitors.js";

export interface Relay {
  /**
   * Takes over a socket whose request asked for a WebSocket. Answers a refusal, having touched nothing, when this
   * address (as the HTTP side sees it) may not have another connection.
   */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, ip: string): { readonly ok: true } | Refusal;
  /** The settings were read again: what they say holds for the next frame. */
  limitsChanged(): void;
  readonly connections: number;
  readonly subscriptions: number;
  /** No new connections or events; answers under way go out, then sockets are closed with 1001, by force at the end. */
  close(withinMs: number): Promise<void>;
}

const sweepMs = 1_000;

export function createRelay(given: Omit<RelayParts, "limits"> & { readonly limits: () => RelayLimits }): Relay {
  const { clock, metrics } = given;
  // Looked at many times a frame, and made anew from all settings: kept until these are read again.
  const parts = { ...given, limits: given.limits() };
  const budgets = relayBudgets(parts);
  const live = new Live(parts.store, budgets.outgoing);
  parts.store.count([{ kinds: privateKinds }]).then((count) => live.privateCounted(count), parts.onFault);
  const visitors = new Visitors(clock, parts);
  const sessions = new Set<SocketSession>();
  const room: Room = {
    parts,
    live,
    records: new RecordBudget(),
    budgets,
    turn: new FlushTurn(clock),
    left(session) {
      sessions.delete(session);
      metrics.connectionClosed((clock.monotonicMs() - session.openedAtMs) / 1000);
    },
  };
  metrics.watch(visitors);
  const stopMembers = parts.members.onChange(() => {
    for (const session of sessions) session.membersChanged();
  });
  const webSockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // Checked in the session, where a bad frame costs a NOTICE and not the connection.
    skipUTF8Validation: true,
    // Answered through the outbox: what nobody reads must not pile up.
    autoPong: false,
    // A message of up to twice the limit is read and refused; beyond that the socket is closed with 1009.
    maxPayload: parts.limits.maxMessageBytes * 2,
  });
  let closing = false;
  let stopSweep = clock.after(sweepMs, sweep);

  function sweep(): void {
    stopSweep = clock.after(sweepMs, sweep);
    const nowMs = clock.monotonicMs();
    for (const session of sessions) session.tick(nowMs);
    visitors.sweep();
  }

  function welcome(webSocket: WebSocket, socket: Duplex, ip: string): void {
    sessions.add(new SocketSession(webSocket, socket, room, ip, visitors.enter(ip)));
    metrics.connectionOpened();
  }

  return {
    accept(request, socket, head, ip) {
      if (closing) return refuse("shutting-down", "the server is shutting down: try again later");
      const entry = visitors.mayEnter(ip);
      if (!entry.ok) return entry;
      webSockets.handleUpgrade(request, socket, head, (webSocket) => welcome(webSocket, socket, ip));
      return { ok: true };
    },
    limitsChanged() {
      parts.limits = given.limits();
      webSockets.options.maxPayload = parts.limits.maxMessageBytes * 2;
    },
    get connections() {
      return sessions.size;
    },
    get subscriptions() {
      return live.subscriptions;
    },
    async close(withinMs) {
      closing = true;
      stopSweep();
      let cancel = () => {};
      const deadline = new Promise<void>((resolve) => {
        cancel = clock.after(withinMs, resolve);
      });
      await Promise.race([deadline, Promise.all([...sessions].map((session) => session.finish()))]);
      cancel();
      const left = [...sessions];
      for (const session of left) session.terminate();
      await Promise.all(left.map((session) => session.ended()));
      stopMembers();
      live.close();
      webSockets.close();
    },
  };
}
