// Forgets machines that were taken away. A machine that stops leaves its row, so that operators see that it is missed; the
// leader forgets it after a day, an operator at once. A machine that was forgotten and comes back takes part as before.

import { aliveSeconds } from "../../cluster/node-life.js";
import type { DatabasePlace, Session } from "../../cluster/session.js";
import type { NodeStatus } from "./status.js";

/** As long as the log waits for a machine. */
const forgottenAfter = "1 day";

/** Answers the names of the machines that were silent for longer than a day. */
export async function forgetLongSilent(session: Session, { schema }: DatabasePlace): Promise<readonly string[]> {
  const rows = await session.rows(
    `DELETE FROM ${schema}.node WHERE seen < clock_timestamp() - interval '${forgottenAfter}' RETURNING name`,
  );
  return rows.map(([name]) => name ?? "");
}

/** False when it lives meanwhile. */
export async function forgetIfSilent(session: Session, { schema }: DatabasePlace, node: string): Promise<boolean> {
  const rows = await session.rows(
    `DELETE FROM ${schema}.node WHERE node = $1 AND seen < clock_timestamp() - interval '${aliveSeconds} seconds' RETURNING 1`,
    [node],
  );
  return rows.length > 0;
}

export type Forgettable<N> =
  | { readonly ok: true; readonly nodes: readonly N[] }
  | { readonly ok: false; readonly message: string };

/** As many characters of an identity as `holdfast cluster status` shows. */
const shownCharacters = 8;

/**
 * The silent machines that are meant, by name or by the beginning of their identity. A machine that was set up anew has the
 * name of the one before: the living one stays. Pure.
 */
export function whomToForget<N extends Pick<NodeStatus, "node" | "name" | "isAlive">>(
  nodes: readonly N[],
  wanted: string,
): Forgettable<N> {
  const isMeant = ({ node, name }: N): boolean =>
    name === wanted || (wanted.length >= shownCharacters && node.startsWith(wanted));
  const meant = nodes.filter(isMeant);
  if (meant.length === 0) {
    const names = nodes.map(({ name }) => name).join(", ");
    return {
      ok: false,
      message: `no machine is called ${JSON.stringify(wanted)}: there are ${names === "" ? "none" : names}`,
    };
  }
  const silent = meant.filter(({ isAlive }) => !isAlive);
  if (silent.length > 0) return { ok: true, nodes: silent };
  return { ok: false, message: `${wanted} is alive: stop it first, and wait ${aliveSeconds} seconds` };
}
