// Traffic over WebSockets: events, questions, open subscriptions, reconciliations. Each sets up its sockets and answers
// the function that makes the traffic until the ledger says that it is over.

import { randomBytes } from "node:crypto";
import { SecretKey, signEvent } from "../src/nostr/keys.js";
import { NegentropyClient } from "../src/nostr/negentropy/reconcile.js";
import { NegentropyRecords } from "../src/nostr/negentropy/records.js";
import { atRate, type Ledger } from "./ledger.js";
import { frameOf, RawClient } from "./raw-client.js";
import { addressOf, type HostedRepository, type Traffic, type TrafficOrder } from "./traffic.js";

type Of<Role extends Traffic["role"]> = Extract<Traffic, { role: Role }>;
type Run = () => Promise<void>;

const sentMark = "sent:";
const answerWithinMs = 30_000;

async function connected(port: number, count: number, ledger: Ledger): Promise<RawClient[]> {
  const clients: RawClient[] = [];
  while (clients.length < count) {
    const some = Math.min(100, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: some }, () => RawClient.connect(port)))));
  }
  for (const { socket } of clients) {
    socket.on("close", () => {
      if (!ledger.isOver) ledger.closed++;
    });
  }
  return clients;
}

const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T;

interface Issue {
  readonly repository: HostedRepository;
  readonly id: string;
}

/** One of ten events opens an issue: every server that follows the repository follows each of them from then on. */
const eventsAnIssue = 10;
const maxIssuesTalkedAbout = 1_000;

function talkAbout(
  repository: HostedRepository,
  issue: Issue | undefined,
  key: SecretKey,
): { readonly id: string; readonly frame: Buffer } {
  const owner = repository.ownerHex;
  const comment = (id: string): string[][] => [
    ["E", id, "", owner],
    ["K", "1621"],
    ["e", id, "", owner],
    ["k", "1621"],
  ];
  const draft = {
    kind: issue ? 1111 : 1621,
    created_at: Math.floor(Date.now() / 1_000),
    tags: [["a", addressOf(repository)], ["p", owner], ...(issue ? comment(issue.id) : [["subject", "under load"]])],
    content: `${sentMark}${Date.now()} ${randomBytes(200).toString("base64")}`,
  };
  const { id, raw } = signEvent(key, draft, randomBytes);
  return { id, frame: frameOf(`["EVENT",${raw}]`) };
}

export async function eventTraffic(order: TrafficOrder, traffic: Of<"events">, ledger: Ledger): Promise<Run> {
  const clients = await connected(order.port, traffic.connections, ledger);
  const authors = Array.from({ length: 20 }, () => SecretKey.generate(randomBytes));
  const waiting = new Map<string, (ok: boolean, text: string) => void>();
  for (const client of clients) {
    client.onText = (payload) => {
      const [verb, id, ok, text] = JSON.parse(payload.toString()) as [string, string, boolean, string];
      if (verb === "OK") waiting.get(id)?.(ok, text);
    };
  }
  let turn = 0;
  const issues: Issue[] = [];
  const publish = async (): Promise<void> => {
    const issue = turn % eventsAnIssue === 0 || issues.length === 0 ? undefined : anyOf(issues);
    const repository = issue?.repository ?? anyOf(order.repositories);
    const { id, frame } = talkAbout(repository, issue, anyOf(authors));
    const began = performance.now();
    const client = clients[turn++ % clients.length];
    const [ok, text] = await new Promise<[boolean, string]>((resolve) => {
      const timer = setTimeout(() => resolve([false, "no answer"]), answerWithinMs);
      waiting.set(id, (isOk, why) => {
        clearTimeout(timer);
        resolve([isOk, why]);
      });
      client?.socket.write(frame);
    });
    waiting.delete(id);
    if (!ok) return ledger.failed("event, to its OK", text);
    ledger.took("event, to its OK", performance.now() - began);
    ledger.acknowledged.push(id);
    if (issue) return;
    issues.push({ repository, id });
    if (issues.length > maxIssuesTalkedAbout) issues.shift();
  };
  return () => atRate(traffic.perSecond, ledger, publish);
}

export async function requestTraffic(order: TrafficOrder, traffic: Of<"requests">, ledger: Ledger): Promise<Run> {
  const clients = await connected(order.port, traffic.connections, ledger);
  const waiting = new Map<string, () => void>();
  for (const client of clients) {
    client.onText = (payload) => {
      // Events are many: only the end of an answer is read.
      if (payload[2] !== 0x45 || payload[3] !== 0x4f) return;
      waiting.get((JSON.parse(payload.toString()) as string[])[1] ?? "")?.();
    };
  }
  const shapes: Record<string, () => object> = {
    "REQ #a limit 100, to EOSE": () => ({ "#a": [addressOf(anyOf(order.repositories))], limit: 100 }),
    "REQ kinds limit 50, to EOSE": () => ({ kinds: traffic.kinds ?? [1621, 30617, 30618], limit: 50 }),
    "REQ author+kind+d, to EOSE": () => {
      const { ownerHex, identifier } = anyOf(order.repositories);
      return { kinds: [30618], authors: [ownerHex], "#d": [identifier] };
    },
  };
  let turn = 0;
  const ask = async (): Promise<void> => {
    const [name, filter] = anyOf(Object.entries(shapes));
    const id = `q${turn}`;
    const client = clients[turn++ % clients.length];
    const began = performance.now();
    const isAnswered = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), answerWithinMs);
      waiting.set(id, () => {
        clearTimeout(timer);
        resolve(true);
      });
      client?.socket.write(frameOf(JSON.stringify(["REQ", id, filter()])));
    });
    waiting.delete(id);
    client?.socket.write(frameOf(JSON.stringify(["CLOSE", id])));
    if (isAnswered) ledger.took(name, performance.now() - began);
    else ledger.failed(name, "no EOSE");
  };
  return () => atRate(traffic.perSecond, ledger, ask);
}

/** Each delivery tells how long the event took from its sender, who runs on the same clock. */
export async function liveTraffic(order: TrafficOrder, traffic: Of<"live">, ledger: Ledger): Promise<Run> {
  const clients = await connected(order.port, traffic.sockets, ledger);
  let opened = 0;
  let counted = 0;
  for (const [index, client] of clients.entries()) {
    client.onText = (payload) => {
      if (payload[3] === 0x4f) opened++;
      const at = payload.indexOf(sentMark);
      // One in ten is enough to know how long they take.
      if (at < 0 || counted++ % 10 > 0) return;
      const sent = Number(payload.toString("latin1", at + sentMark.length, at + sentMark.length + 13));
      ledger.took("live event, sender to subscriber", Date.now() - sent);
    };
    for (let number = index; number < traffic.subscriptions; number += clients.length) {
      const repository = order.repositories[number % order.repositories.length];
      if (!repository) continue;
      const filter = { kinds: [1621], "#a": [addressOf(repository)], limit: 0 };
      client.socket.write(frameOf(JSON.stringify(["REQ", `s${number}`, filter])));
    }
  }
  while (opened < traffic.subscriptions) await new Promise((resolve) => setTimeout(resolve, 20));
  return async () => {
    while (!ledger.isOver) await new Promise((resolve) => setTimeout(resolve, 50));
    for (const client of clients) client.close();
  };
}

/** From nothing: all that the server has of one repository is named. */
export async function negentropyTraffic(order: TrafficOrder, traffic: Of<"negentropy">, ledger: Ledger): Promise<Run> {
  const [client] = await connected(order.port, 1, ledger);
  if (!client) throw new Error("no connection");
  let heard: (message: string[]) => void = () => undefined;
  client.onText = (payload) => heard(JSON.parse(payload.toString()) as string[]);
  let turn = 0;
  const reconcile = async (): Promise<void> => {
    const began = performance.now();
    const id = `n${turn++}`;
    const side = new NegentropyClient(
      new NegentropyRecords({ length: 0, times: new Float64Array(), ids: new Uint8Array() }),
    );
    const filter = { "#a": [addressOf(anyOf(order.repositories))] };
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
    let frame: string[] | [string, string, object, string] = ["NEG-OPEN", id, filter, hex(side.initiate())];
    for (;;) {
      const answer = await new Promise<string[] | undefined>((resolve) => {
        const timer = setTimeout(() => resolve(undefined), answerWithinMs);
        heard = (message) => {
          if (message[1] !== id) return;
          clearTimeout(timer);
          resolve(message);
        };
        client.socket.write(frameOf(JSON.stringify(frame)));
      });
      const step = answer?.[0] === "NEG-MSG" ? side.reconcile(Buffer.from(answer[2] ?? "", "hex")) : undefined;
      if (!step?.ok) return ledger.failed("NIP-77, to its end", JSON.stringify(answer ?? "no answer"));
      if (!step.message) break;
      frame = ["NEG-MSG", id, hex(step.message)];
    }
    client.socket.write(frameOf(JSON.stringify(["NEG-CLOSE", id])));
    ledger.took("NIP-77, to its end", performance.now() - began);
  };
  // One after the other: they share a connection and a listener.
  let last = Promise.resolve();
  const next = (): Promise<void> => {
    last = last.then(() => (ledger.isOver ? undefined : reconcile()));
    return last;
  };
  return () => atRate(traffic.perSecond, ledger, next);
}
