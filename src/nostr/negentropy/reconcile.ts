// Negentropy (NIP-77), both sides: one step takes a message and makes the answer. The same for both sides, but for two things: a client learns
// from lists of ids, a server answers them with its own. Answers never exceed the frame; what does not fit is left to
// the next round as one fingerprint over the rest.

import type { EventId } from "../event.js";
import { differenceOf, type NegentropyRecords } from "./records.js";
import {
  type Bound,
  fingerprintBytes,
  firstBound,
  idBytes,
  isBefore,
  lastBound,
  messageToHex,
  mode,
  protocolVersion,
  WireReader,
  WireWriter,
} from "./wire.js";

const defaultFrameBytes = 500_000;
const minFrameBytes = 4096;

// Room for what closes a message: a skip, and the fingerprint of the rest.
const closingBytes = 200;
/** A bound, a mode and a count at their longest. */
const listHeadBytes = 60;
const buckets = 16;

export interface Step {
  readonly ok: true;
  readonly message: Uint8Array;
  /** Ids only we have. Only a client learns them. */
  readonly have: readonly EventId[];
  /** Ids only the peer has. */
  readonly need: readonly EventId[];
}

interface WireError {
  readonly ok: false;
  /** One sentence for NEG-ERR or the log. */
  readonly error: string;
}

const wrong = (error: string): WireError => ({ ok: false, error });
const ended = wrong("the message ends in the middle of a range");

export type Role = "client" | "server";

/** The first message of a client: everything it has, in at most 16 ranges. */
function openingMessage(records: NegentropyRecords): Uint8Array {
  const writer = new WireWriter();
  writer.byte(protocolVersion);
  writeRange(writer, records, 0, records.length, lastBound);
  return writer.finish();
}

/** Few records are listed; many are divided into ranges with a fingerprint each. */
function writeRange(writer: WireWriter, records: NegentropyRecords, lower: number, upper: number, end: Bound): void {
  const count = upper - lower;
  if (count < buckets * 2) {
    writeIds(writer, records, lower, upper, end);
    return;
  }
  let from = lower;
  for (let bucket = 0; bucket < buckets; bucket++) {
    const to = from + Math.floor(count / buckets) + (bucket < count % buckets ? 1 : 0);
    writeFingerprint(writer, records, from, to, to === upper ? end : records.boundBefore(to));
    from = to;
  }
}

function writeIds(writer: WireWriter, records: NegentropyRecords, lower: number, upper: number, end: Bound): void {
  writer.bound(end);
  writer.varint(mode.idList);
  writer.varint(upper - lower);
  writer.bytes(records.idsOf(lower, upper));
}

function writeFingerprint(writer: WireWriter, records: NegentropyRecords, from: number, to: number, end: Bound): void {
  writer.bound(end);
  writer.varint(mode.fingerprint);
  writer.hex(records.fingerprint(from, to));
}

export function reconcileStep(
  records: NegentropyRecords,
  role: Role,
  frameBytes: number,
  message: Uint8Array,
): Step | WireError {
  const reader = new WireReader(message);
  const version = reader.byte();
  if (version === undefined || version < 0x60 || version > 0x6f) return wrong("this is not a negentropy message");
  if (version !== protocolVersion) {
    // A server answers with the version it speaks; there is nothing a client could do with that.
    if (role === "client") return wrong(`the peer speaks negentropy version ${version - 0x60}, not 1`);
    return { ok: true, message: Uint8Array.of(protocolVersion), have: [], need: [] };
  }
  return new Answer(records, role, frameBytes - closingBytes, reader).write();
}

type Outcome = "answered" | "full" | WireError;

class Answer {
  readonly #records: NegentropyRecords;
  readonly #role: Role;
  readonly #limit: number;
  readonly #reader: WireReader;
  readonly #writer = new WireWriter();
  readonly #have: EventId[] = [];
  readonly #need: EventId[] = [];
  /** Where the current range begins, and the first of our records in it. */
  #start = firstBound;
  #lower = 0;
  /** Ranges that need no answer are told as one skip, and only when something follows them. */
  #skipping = false;

  constructor(records: NegentropyRecords, role: Role, limit: number, reader: WireReader) {
    this.#records = records;
    this.#role = role;
    this.#limit = limit;
    this.#reader = reader;
  }

  write(): Step | WireError {
    const writer = this.#writer;
    writer.byte(protocolVersion);
    while (!this.#reader.atEnd) {
      const end = this.#reader.bound();
      if (!end) return ended;
      if (isBefore(end, this.#start)) return wrong("a range ends before it begins");
      const upper = this.#records.lowerBound(this.#lower, end);
      const mark = writer.mark();
      const skippingBefore = this.#skipping;
      let outcome = this.#answerRange(upper, end);
      if (typeof outcome !== "string") return outcome;
      if (writer.length > this.#limit) {
        writer.rewind(mark);
        this.#skipping = skippingBefore;
        outcome = "full";
      }
      if (outcome === "full") {
        this.#writeSkip();
        writeFingerprint(writer, this.#records, this.#lower, this.#records.length, lastBound);
        break;
      }
      this.#start = end;
      this.#lower = upper;
    }
    return { ok: true, message: writer.finish(), have: this.#have, need: this.#need };
  }

  #answerRange(upper: number, end: Bound): Outcome {
    switch (this.#reader.varint()) {
      case undefined:
        return ended;
      case mode.skip:
        this.#skipping = true;
        return "answered";
      case mode.fingerprint:
        return this.#answerFingerprint(upper, end);
      case mode.idList:
        return this.#answerIds(upper, end);
      default:
        return wrong("a range has a mode that does not exist");
    }
  }

  #answerFingerprint(upper: number, end: Bound): Outcome {
    const theirs = this.#reader.bytes(fingerprintBytes);
    if (!theirs) return ended;
    if (messageToHex(theirs) === this.#records.fingerprint(this.#lower, upper)) {
      this.#skipping = true;
    } else {
      this.#writeSkip();
      writeRange(this.#writer, this.#records, this.#lower, upper, end);
    }
    return "answered";
  }

  #answerIds(upper: number, end: Bound): Outcome {
    const count = this.#reader.varint();
    const theirs = count === undefined ? undefined : this.#reader.bytes(count * idBytes);
    if (!theirs) return ended;
    if (this.#role === "client") {
      const { have, need } = differenceOf(this.#records, this.#lower, upper, theirs);
      for (const id of have) this.#have.push(id);
      for (const id of need) this.#need.push(id);
      this.#skipping = true;
      return "answered";
    }
    this.#writeSkip();
    const room = Math.floor((this.#limit - this.#writer.length - listHeadBytes) / idBytes);
    if (room <= 0 || room >= upper - this.#lower) {
      writeIds(this.#writer, this.#records, this.#lower, upper, end);
      return "answered";
    }
    const fits = this.#lower + room;
    writeIds(this.#writer, this.#records, this.#lower, fits, this.#records.boundBefore(fits));
    this.#lower = fits;
    return "full";
  }

  #writeSkip(): void {
    if (!this.#skipping) return;
    this.#writer.bound(this.#start);
    this.#writer.varint(mode.skip);
    this.#skipping = false;
  }
}

interface NegentropyServerOptions {
  /** Longest answer, in bytes before hex. */
  readonly frameBytes?: number;
  /** Longest message taken: about 50,000 fingerprints, or 100 ms of work. Clients in use send at most 500 kB. */
  readonly maxMessageBytes?: number;
}

type ServerAnswer = { readonly ok: true; readonly message: Uint8Array } | WireError;

/** The answering side: stateless between messages but for its records. */
export class NegentropyServer {
  readonly #records: NegentropyRecords;
  readonly #frameBytes: number;
  readonly #maxMessageBytes: number;

  constructor(records: NegentropyRecords, options: NegentropyServerOptions = {}) {
    this.#records = records;
    this.#frameBytes = Math.max(minFrameBytes, options.frameBytes ?? defaultFrameBytes);
    this.#maxMessageBytes = options.maxMessageBytes ?? 1_000_000;
  }

  reconcile(message: Uint8Array): ServerAnswer {
    if (message.length > this.#maxMessageBytes) {
      return { ok: false, error: `a message may have at most ${this.#maxMessageBytes} bytes` };
    }
    const step = reconcileStep(this.#records, "server", this.#frameBytes, message);
    return step.ok ? { ok: true, message: step.message } : step;
  }
}

interface NegentropyClientOptions {
  /** Longest message we send, in bytes before hex. */
  readonly frameBytes?: number;
  /** Ids the peer may say it has and we lack; more is an error. */
  readonly maxNeed?: number;
}

/** Rounds in a row that may teach nothing: ranges are divided by 16, so an honest peer needs few. */
const maxIdleRounds = 64;

type ClientStep =
  | {
      readonly ok: true;
      /** Ids only we have, learned in this step. */
      readonly have: readonly EventId[];
      /** Ids only the peer has, learned in this step. */
      readonly need: readonly EventId[];
      /** What to send next; undefined when both sides are compared. */
      readonly message: Uint8Array | undefined;
    }
  | WireError;

interface Counted {
  readonly count: number;
  readonly fingerprint: string;
}

/** The asking side. Tells each id once, and ends an exchange with a peer that leads nowhere. */
export class NegentropyClient {
  readonly #records: NegentropyRecords;
  readonly #frameBytes: number;
  readonly #maxNeed: number;
  readonly #had = new Set<EventId>();
  readonly #needed = new Set<EventId>();
  #idleRounds = 0;

  constructor(records: NegentropyRecords, options: NegentropyClientOptions = {}) {
    this.#records = records;
    this.#frameBytes = Math.max(minFrameBytes, options.frameBytes ?? defaultFrameBytes);
    this.#maxNeed = options.maxNeed ?? 1_000_000;
  }

  initiate(): Uint8Array {
    return openingMessage(this.#records);
  }

  reconcile(message: Uint8Array): ClientStep {
    const step = reconcileStep(this.#records, "client", this.#frameBytes, message);
    if (!step.ok) return step;
    const have = onlyNew(step.have, this.#had);
    const need = onlyNew(step.need, this.#needed);
    if (this.#needed.size > this.#maxNeed) return { ok: false, error: `the peer lists more than ${this.#maxNeed} ids` };
    const isDone = step.message.length === 1;
    this.#idleRounds = have.length + need.length > 0 ? 0 : this.#idleRounds + 1;
    if (!isDone && this.#idleRounds > maxIdleRounds) {
      return { ok: false, error: `${maxIdleRounds} rounds in a row taught nothing` };
    }
    return { ok: true, have, need, message: isDone ? undefined : step.message };
  }

  /** What both sides hold. The peer's follows from the differences, so it is right only when the exchange has ended. */
  compared(): { readonly ours: Counted; readonly theirs: Counted } {
    const { length: count } = this.#records;
    return {
      ours: { count, fingerprint: this.#records.fingerprint(0, count) },
      theirs: {
        count: count - this.#had.size + this.#needed.size,
        fingerprint: this.#records.fingerprintBut(this.#had, this.#needed),
      },
    };
  }
}

function onlyNew(ids: readonly EventId[], known: Set<EventId>): EventId[] {
  return ids.filter((id) => {
    if (known.has(id)) return false;
    known.add(id);
    return true;
  });
}
