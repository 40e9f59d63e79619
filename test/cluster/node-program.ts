// The process of node-process.ts: a machine's store in a cluster, which does what its parent says and may end or stand still
// at any step of a commit.

import { createHash } from "node:crypto";
import { SharedLogError } from "../../src/store/port.js";
import type { ClusterStore } from "../../src/store/postgres/open.js";
import type { CommitStep } from "../../src/store/postgres/shared-order.js";
import { eventOf } from "../../src/store/testing/events.js";
import { openNode } from "./three-nodes.js";

export interface NodeArguments {
  readonly url: string;
  readonly schema: string;
  readonly folder: string;
  readonly name: string;
}

export type ToNode =
  /** Works one after the other: each takes the next number and stores an event with it. */
  | { readonly type: "write"; readonly works: number; readonly epoch?: number }
  | { readonly type: "arm"; readonly step: CommitStep; readonly signal: "SIGKILL" | "SIGSTOP" }
  | { readonly type: "facts" }
  | { readonly type: "end" };

export interface NodeFacts {
  readonly position: number;
  readonly events: number;
  readonly applied: number;
  readonly epoch: number | undefined;
  /** Of every event and every row, in order. */
  readonly digest: string;
}

export type FromNode =
  | { readonly type: "started" }
  | { readonly type: "acknowledged"; readonly number: number; readonly id: string }
  | { readonly type: "refused"; readonly trouble: string; readonly id: string }
  | { readonly type: "written" }
  | { readonly type: "facts"; readonly facts: NodeFacts };

if (process.send) {
  const tell = (message: FromNode): void => void process.send?.(message);
  const { url, schema, folder, name } = JSON.parse(process.argv[2] ?? "{}") as NodeArguments;
  let armed: { readonly step: CommitStep; readonly signal: "SIGKILL" | "SIGSTOP" } | undefined;
  const node = await openNode(
    { url: () => url },
    {
      ...{ schema, folder, name },
      indexAtRows: 20,
      at: (step) => {
        if (armed?.step !== step) return undefined;
        const { signal } = armed;
        armed = undefined;
        process.kill(process.pid, signal);
        return undefined;
      },
    },
  );
  let written = 0;
  const write = async (epoch: number | undefined): Promise<void> => {
    const event = eventOf({ content: `${name} ${process.pid} ${written++}` });
    try {
      const number = await node.store.transact(
        async (tx) => {
          const next = ((await tx.row<number>("meta", "count")) ?? 0) + 1;
          tx.setRow("meta", "count", next);
          tx.setRow("audit", String(next), event.id);
          await tx.put(event);
          return next;
        },
        epoch === undefined ? {} : { epoch },
      );
      tell({ type: "acknowledged", number, id: event.id });
    } catch (error) {
      const trouble = error instanceof SharedLogError ? error.trouble : String(error);
      tell({ type: "refused", trouble, id: event.id });
    }
  };
  process.on("message", async (message: ToNode) => {
    switch (message.type) {
      case "write":
        for (let work = 0; work < message.works; work++) await write(message.epoch);
        tell({ type: "written" });
        break;
      case "arm":
        armed = message;
        break;
      case "facts":
        tell({ type: "facts", facts: await factsOf(node) });
        break;
      case "end":
        await node.close();
        process.exit(0);
    }
  });
  process.on("disconnect", () => process.exit(1));
  tell({ type: "started" });
}

const tables = ["meta", "audit"] as const;

async function factsOf(node: ClusterStore): Promise<NodeFacts> {
  const { store } = node;
  await store.upToDate();
  const hash = createHash("sha256");
  for await (const page of store.query([{}])) for (const { seq, id } of page) hash.update(`${seq} ${id}\n`);
  for (const table of tables)
    for await (const [key, value] of store.rows(table)) hash.update(`${table} ${key} ${value}\n`);
  const { events } = store.stats;
  const digest = hash.digest("hex");
  return { position: store.position, events, applied: node.facts.applied, epoch: node.epoch, digest };
}
