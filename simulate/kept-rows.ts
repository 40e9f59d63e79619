// What our server keeps over a restart beside its store, as the shell does: remembered ids, the naughty list, and when
// each relay was last in step.

import type { Command, Input, KeptRelay, NaughtyKind, RememberedId, Time } from "../src/sync/core/messages.js";

export class KeptRows {
  readonly #remembered = new Map<string, RememberedId>();
  readonly #naughty = new Map<string, { relay: string; kind: NaughtyKind; untilWallMs: number }>();

  readonly #relays = new Map<string, KeptRelay>();

  execute(command: Command): void {
    switch (command.type) {
      case "remember":
        this.#remembered.set(command.entry.id, command.entry);
        break;
      case "forget":
        this.#remembered.delete(command.id);
        break;
      case "saveNaughty":
        this.#naughty.set(command.relay, command);
        break;
      case "dropNaughty":
        this.#naughty.delete(command.relay);
        break;
      case "keepRelay":
        this.#relays.set(command.relay, command.entry);
        break;
      case "dropKept":
        this.#relays.delete(command.relay);
        break;
    }
  }

  /** What a new core is given. */
  loaded(now: Time): Input[] {
    const entries = [...this.#remembered.values()].filter((entry) => entry.untilWallMs > now.wallMs);
    const naughty = [...this.#naughty.values()].filter((entry) => entry.untilWallMs > now.wallMs);
    return [
      { type: "rememberedLoaded", entries },
      { type: "naughtyLoaded", entries: naughty },
      { type: "relaysLoaded", entries: [...this.#relays].map(([relay, entry]) => ({ relay, entry })) },
    ];
  }
}
