// A process full of attackers, as its parent orders it. It gives way to everybody else on the machine: what is measured is
// what attacks cost the server, not what making them costs. It ends by itself.

import { setPriority } from "node:os";
import { startHostilePeers } from "./hostile-peers.js";
import { httpAttacks } from "./http-attacks.js";
import { type Attack, relayAttacks } from "./relay-attacks.js";
import { Stranger, type Target } from "./stranger.js";

export interface AttackOrder {
  readonly target: Target;
  readonly seconds: number;
  readonly share: "relay" | "http" | "peers";
  /** Only attacks whose name contains it. */
  readonly only: string;
}

export interface AttackResult {
  /** Attempts, by attack. */
  readonly attempts: Readonly<Record<string, number>>;
}

setPriority(19);
process.on("disconnect", () => process.exit(1));
const order = await new Promise<AttackOrder>((resolve) =>
  process.once("message", (value) => resolve(value as AttackOrder)),
);
const endMs = performance.now() + order.seconds * 1_000;
const attempts: Record<string, number> = {};

/** Whoever is refused tries again at once; a pause only keeps a refused connection from being a busy loop here. */
const refusedPauseMs = 50;

async function repeat(attack: Attack, stranger: Stranger): Promise<void> {
  while (performance.now() < endMs) {
    attempts[attack.name] = (attempts[attack.name] ?? 0) + 1;
    const begun = performance.now();
    await attack.attempt(stranger).catch(() => undefined);
    if (performance.now() - begun < refusedPauseMs) {
      await new Promise((resolve) => setTimeout(resolve, refusedPauseMs));
    }
  }
}

if (order.share === "peers") {
  const end = await startHostilePeers(new Stranger(order.target, "127.0.0.200"));
  await new Promise((resolve) => setTimeout(resolve, endMs - performance.now()));
  end();
} else {
  const [attacks, network] = order.share === "relay" ? [relayAttacks, 10] : [httpAttacks, 100];
  const chosen = attacks.filter(({ name }) => name.includes(order.only));
  await Promise.all(
    chosen.flatMap((attack) => {
      const stranger = new Stranger(order.target, `127.0.0.${network + attacks.indexOf(attack)}`);
      return Array.from({ length: attack.workers }, () => repeat(attack, stranger));
    }),
  );
}
const result: AttackResult = { attempts };
process.send?.(result, () => process.exit(0));
