// Brings changes of the shared log into the view, several in one transaction: a machine that is behind need not sync its disk
// once for each of them. What does not fit the view is never applied in part.

import { type Effects, joined } from "../engine/effects.js";
import { UnfittingEffectsError, type View } from "../engine/view.js";
import { newestFormat } from "./body.js";
import type { LoggedChange } from "./change-log.js";

/** Of a machine that keeps up, one or two. */
const groupChanges = 200;
const groupBytes = 2 * 2 ** 20;

/** The view is as good as it was: a newer version goes on from it. */
export class NewerFormatError extends Error {
  override readonly name = "NewerFormatError";
}

function* grouped(changes: readonly LoggedChange[]): Iterable<readonly LoggedChange[]> {
  let group: LoggedChange[] = [];
  let bytes = 0;
  for (const change of changes) {
    group.push(change);
    bytes += change.bytes;
    if (group.length < groupChanges && bytes < groupBytes) continue;
    yield group;
    group = [];
    bytes = 0;
  }
  if (group.length > 0) yield group;
}

/**
 * Throws UnfittingEffectsError or RangeError when they do not follow on what the view has, NewerFormatError when this version
 * cannot read them, and what the disk says otherwise.
 */
export async function applyChanges(view: View, after: number, changes: readonly LoggedChange[]): Promise<void> {
  let n = after;
  for (const group of grouped(changes)) {
    await applyTogether(view, n, group);
    n += group.length;
  }
}

async function applyTogether(view: View, after: number, group: readonly LoggedChange[]): Promise<void> {
  const all: Effects[] = [];
  for (const [index, change] of group.entries()) {
    const n = after + index + 1;
    if (change.format > newestFormat) {
      throw new NewerFormatError(
        `another server writes changes of format ${change.format}, this program reads up to ${newestFormat}: install the newer version here`,
      );
    }
    if (change.n !== n) throw new RangeError(`the log lacks change ${n}`);
    const effects = change.effects();
    if (effects.start !== (all.at(-1)?.position ?? view.position)) {
      throw new UnfittingEffectsError(`change ${n} does not fit the view`);
    }
    all.push(effects);
  }
  const [first, ...rest] = all;
  const last = group.at(-1);
  if (!first || !last) return;
  await view.apply(joined([first, ...rest]), { applied: { n: last.n, token: last.token }, isForeign: true });
}
