// The sockets of sync: carries out what the core says about links and tells it what they say. At most one connection
// a relay; every input carries the number of its link, so that what an old socket still says is not mistaken.

import { sharedAbort } from "../base/shared-abort.js";
import { authEvent, Entering, RelayClient, type RelayMessage } from "../net/relay-client.js";
import { nothingKnown, type RelayDialer, type RelayLimits } from "../net/relay-dialer.js";
import { type NostrEvent, type Pubkey, parseEvent } from "../nostr/event.js";
import type { SecretKey } from "../nostr/keys.js";
import type { Command, Input, RelayKey } from "./core/messages.js";
import { type OwnSide, Reconciliation } from "./reconciliation.js";

interface ConnectionsParts {
  readonly dialer: RelayDialer;
  readonly serverKey: SecretKey;
  readonly own: OwnSide;
  readonly tell: (input: Input) => void;
  readonly bytes: (relay: RelayKey, direction: "in" | "out", count: number) => void;
  readonly dialFailed: (relay: RelayKey, message: string) => void;
  /** Whose relay it is, as its information document says. */
  readonly runBy: (relay: RelayKey, keys: readonly Pubkey[]) => void;
  readonly fault: (error: unknown) => void;
}

type Connect = Extract<Command, { type: "connect" }>;
type LinkCommand = Extract<Command, { link: number }>;

class Connection {
  readonly stop = sharedAbort();
  readonly sessions = new Map<string, Reconciliation>();
  client: RelayClient | undefined;
  challenge = "";
  authId = "";
  /** Until the relay has let us in, where that is asked for. */
  entering: Entering | undefined;
  /** The core wants no more from this relay for now. */
  held = false;

  constructor(
    readonly relay: RelayKey,
    readonly number: number,
    readonly url: string,
  ) {}
}

/** An answer to NIP-11 that comes later than the socket by more than this is not waited for. */
const informationGraceMs = 1_000;

export class Connections {
  readonly #parts: ConnectionsParts;
  readonly #open = new Map<RelayKey, Connection>();
  /** Intake holds as much as it should: nobody is read. */
  #allHeld = false;

  constructor(parts: ConnectionsParts) {
    this.#parts = parts;
  }

  execute(command: LinkCommand): void {
    if (command.type === "connect") {
      void this.#connect(command).catch(this.#parts.fault);
      return;
    }
    const connection = this.#open.get(command.relay);
    if (connection?.number !== command.link) return;
    switch (command.type) {
      case "disconnect":
        this.#drop(connection);
        break;
      case "subscribe":
        connection.client?.subscribe(command.subscription, command.filters);
        break;
      case "unsubscribe":
        connection.client?.unsubscribe(command.subscription);
        break;
      case "reconcile":
        this.#reconcile(connection, command);
        break;
      case "stopReconcile":
        connection.sessions.get(command.session)?.stop();
        connection.sessions.delete(command.session);
        break;
      case "authenticate":
        this.#authenticate(connection);
        break;
      case "pauseReading":
      case "resumeReading":
        connection.held = command.type === "pauseReading";
        this.#applyPause(connection);
        break;
    }
  }

  /** Back-pressure for all: intake is full, or has room again. */
  holdAll(held: boolean): void {
    if (this.#allHeld === held) return;
    this.#allHeld = held;
    for (const connection of this.#open.values()) this.#applyPause(connection);
  }

  close(): void {
    for (const connection of [...this.#open.values()]) this.#drop(connection);
  }

  async #connect({ relay, link: number, url }: Connect): Promise<void> {
    const older = this.#open.get(relay);
    if (older) this.#drop(older);
    const connection = new Connection(relay, number, url);
    const { stop } = connection;
    this.#open.set(relay, connection);
    const { dialer, tell } = this.#parts;
    const { clock } = dialer;
    let limits: RelayLimits = {};
    let limitsKnown = false;
    const looked = dialer
      .lookUp(url, stop.signal)
      .catch(() => nothingKnown)
      .then((found) => {
        limits = found.limits;
        limitsKnown = true;
        if (!stop.signal.aborted) this.#parts.runBy(relay, found.keys);
      });
    const dialled = await dialer.dial(url, stop.signal);
    if (stop.signal.aborted) {
      if (dialled.ok) dialled.socket.terminate();
      return;
    }
    if (!dialled.ok) {
      this.#drop(connection);
      this.#parts.dialFailed(relay, dialled.message);
      tell({ type: "connectFailed", relay, link: number, kind: dialled.kind });
      return;
    }
    connection.client = new RelayClient(dialled.socket, clock, dialer.settings(), {
      message: (message) => this.#onMessage(connection, message),
      bytes: (direction, count) => this.#parts.bytes(relay, direction, count),
      closed: (silentMs) => {
        if (connection.entering) return connection.entering.fail();
        this.#drop(connection);
        tell({ type: "closed", relay, link: number, silentMs });
      },
    });
    if (dialer.entrance && !(await this.#isLetIn(connection, dialer.entrance))) return;
    this.#applyPause(connection);
    // What the relay says before the core knows of the link (a challenge) waits in the socket.
    connection.client.pause();
    let cancel = (): void => undefined;
    await Promise.race([looked, new Promise<void>((go) => (cancel = clock.after(informationGraceMs, go)))]);
    cancel();
    if (stop.signal.aborted) return;
    tell({ type: "connected", relay, link: number, limits });
    this.#applyPause(connection);
    if (limitsKnown) return;
    await looked;
    if (!stop.signal.aborted) tell({ type: "nip11", relay, link: number, limits });
  }

  /** False: the core has been told, or wants it no more. */
  async #isLetIn(connection: Connection, key: SecretKey): Promise<boolean> {
    const { dialer, tell } = this.#parts;
    const { relay, number, url, stop } = connection;
    const { clock } = dialer;
    const answer = (challenge: string): NostrEvent => {
      connection.challenge = challenge;
      const event = authEvent(key, url, challenge, clock);
      connection.client?.authenticate(event);
      return event;
    };
    connection.entering = new Entering({ clock, withinMs: dialer.settings().syncDialTimeoutSecs * 1_000, answer });
    const isIn = await connection.entering.done;
    connection.entering = undefined;
    if (stop.signal.aborted) return false;
    if (isIn) return true;
    this.#drop(connection);
    tell({ type: "connectFailed", relay, link: number, kind: "no-entry" });
    return false;
  }

  #applyPause(connection: Connection): void {
    if (connection.held || this.#allHeld) connection.client?.pause();
    else connection.client?.resume();
  }

  #drop(connection: Connection): void {
    if (this.#open.get(connection.relay) === connection) this.#open.delete(connection.relay);
    connection.stop.abort();
    connection.entering?.fail();
    for (const session of connection.sessions.values()) session.stop();
    connection.sessions.clear();
    connection.client?.close();
  }

  #onMessage(connection: Connection, message: RelayMessage): void {
    const { entering } = connection;
    if (entering) {
      entering.heard(message);
      return;
    }
    const { tell } = this.#parts;
    const of = { relay: connection.relay, link: connection.number };
    switch (message.type) {
      case "EVENT": {
        const parsed = parseEvent(message.event);
        if (parsed.ok) tell({ type: "event", ...of, subscription: message.subscription, event: parsed.event });
        break;
      }
      case "EOSE":
        tell({ type: "eose", ...of, subscription: message.subscription });
        break;
      case "CLOSED": {
        const session = connection.sessions.get(message.subscription);
        if (session) session.heard(message);
        else tell({ type: "subscriptionClosed", ...of, subscription: message.subscription, message: message.text });
        break;
      }
      case "NOTICE":
        tell({ type: "notice", ...of, message: message.text });
        break;
      case "AUTH":
        connection.challenge = message.challenge;
        tell({ type: "authChallenge", ...of });
        break;
      case "OK":
        if (message.id === connection.authId) tell({ type: "authenticated", ...of });
        break;
      case "NEG-MSG":
      case "NEG-ERR":
        connection.sessions.get(message.subscription)?.heard(message);
        break;
    }
  }

  #authenticate(connection: Connection): void {
    const { serverKey, dialer } = this.#parts;
    const event = authEvent(serverKey, connection.url, connection.challenge, dialer.clock);
    connection.authId = event.id;
    connection.client?.authenticate(event);
  }

  #reconcile(connection: Connection, command: Extract<Command, { type: "reconcile" }>): void {
    const { session } = command;
    const of = { relay: connection.relay, link: connection.number, session };
    const { tell, own, fault } = this.#parts;
    const reconciliation = new Reconciliation(session, command.maxMissing, own, {
      send: (message) => connection.client?.reconcile(message),
      progress: (ours) => tell({ type: "reconcileProgress", ...of, ...(ours && { ours }) }),
      ended: (result) => {
        connection.sessions.delete(session);
        if (!result.ok) return tell({ type: "reconcileFailed", ...of, kind: result.kind });
        const { missing, waiting, peerMissing, sides } = result;
        tell({ type: "reconciled", ...of, missing, waiting, peerMissing: peerMissing.length, sides });
      },
      fault,
    });
    connection.sessions.set(session, reconciliation);
    void reconciliation.open(command.filter);
  }
}
