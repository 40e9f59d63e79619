// COUNT (NIP-45): exact, over what is stored now.

import type { Filter } from "../nostr/filter.js";
import type { Connection } from "./connection.js";
import { closedBy } from "./messages.js";

export async function count(connection: Connection, id: string, filters: readonly Filter[]): Promise<void> {
  const { outbox, parts, queries, closed } = connection;
  try {
    const number = await queries.pass(() => parts.store.count(filters, { signal: closed }));
    outbox.send({ type: "COUNT", subscription: id, count: number });
  } catch (error) {
    if (!closed.aborted) outbox.send(closedBy(id, connection.failed(error)));
  }
}
