// The relay's numbers (spec/configuration.md): `ngit_websocket_*` and `ngit_events_*`. Labels are verbs, known kinds
// and refusal codes; never an address, never text a stranger chose.

import { Counter, Histogram, type Registry } from "prom-client";
import { gaugeOf } from "../base/gauge.js";
import type { IntakeObserver } from "../intake/intake.js";
import { kindLabel } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { ClientVerb, RelayVerb } from "./messages.js";
import type { Visitors } from "./visitors.js";

/** Who is connected, as the gauges ask it. */
type ConnectionCounts = Pick<Visitors, "connections" | "uniqueIps" | "countWith">;

export type RelayMetrics = ReturnType<typeof createRelayMetrics>;

/** `abuseThreshold`: an address with more connections than this counts as an abuser. */
export function createRelayMetrics(registry: Registry, abuseThreshold: () => number) {
  const registers = [registry];
  let counts: ConnectionCounts = { connections: 0, uniqueIps: 0, countWith: () => 0 };
  const gauge = (name: string, help: string, read: () => number): void => gaugeOf(registry, name, help, read);
  gauge("ngit_websocket_connections_active", "Open WebSocket connections", () => counts.connections);
  gauge("ngit_websocket_unique_ips", "Addresses (IPv6: /64 networks) with an open connection", () => counts.uniqueIps);
  gauge("ngit_websocket_flagged_abusers", "Addresses with more open connections than the abuse threshold", () =>
    counts.countWith(abuseThreshold() + 1),
  );
  const opened = new Counter({
    name: "ngit_websocket_connections_total",
    help: "WebSocket connections accepted since the start",
    registers,
  });
  const duration = new Histogram({
    name: "ngit_websocket_connection_duration_seconds",
    help: "How long WebSocket connections lasted",
    buckets: [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400],
    registers,
  });
  const counter = (name: string, help: string, label: string) => plainCounter(name, help, label, registry);
  const received = counter("ngit_websocket_messages_received_total", "Messages from clients, by type", "type");
  const sent = counter("ngit_websocket_messages_sent_total", "Messages to clients, by type", "type");
  const eventsReceived = counter("ngit_events_received_total", "Events that arrived, by kind", "kind");
  const eventsStored = counter("ngit_events_stored_total", "Events that were stored, by kind", "kind");
  const eventsRejected = new Counter({
    name: "ngit_events_rejected_total",
    help: "Events that were refused, by kind and reason",
    labelNames: ["kind", "reason"],
    registers,
  });

  const intakeObserver: IntakeObserver = {
    received: (event) => eventsReceived(kindLabel(event.kind)),
    decided(event, _source, answer) {
      if (!answer.ok) eventsRejected.inc({ kind: kindLabel(event.kind), reason: answer.code });
      else if (answer.outcome === "stored") eventsStored(kindLabel(event.kind));
    },
  };
  return {
    /** Gauges are read from here when somebody asks for them. */
    watch(watched: ConnectionCounts): void {
      counts = watched;
    },
    connectionOpened: () => opened.inc(),
    connectionClosed: (seconds: number) => duration.observe(seconds),
    /** undefined: it could not be seen what the message was meant to be. */
    received: (verb: ClientVerb | undefined) => received(verb ?? "invalid"),
    sent: (verb: RelayVerb) => sent(verb),
    /** An event that was refused before intake saw it. */
    refusedAtTheDoor(kind: number | undefined, code: RefusalCode): void {
      const label = kind === undefined ? "other" : kindLabel(kind);
      eventsReceived(label);
      eventsRejected.inc({ kind: label, reason: code });
    },
    intakeObserver,
  };
}

/** Counts in a plain map, handed over when asked: an event and a delivery must not pay for label hashing. */
function plainCounter(name: string, help: string, label: string, registry: Registry): (value: string) => void {
  const totals = new Map<string, number>();
  new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [value, total] of totals) this.inc({ [label]: value }, total);
    },
  });
  return (value) => {
    totals.set(value, (totals.get(value) ?? 0) + 1);
  };
}
