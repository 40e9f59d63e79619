import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId } from "../../nostr/event.js";
import type { Owed } from "./job.js";
import { askDirectly } from "./query.js";

const id = (name: string): EventId => name as EventId;

test("what a relay is known to have is not forgotten when the same id is asked for on a guess, and nothing passes the bound", () => {
  const state = { config: { maxDirectIds: 3 } };
  const direct = new Map<EventId, Owed["claim"]>();
  askDirectly(state, { direct }, [id("sent"), id("guessed")], "sent-once");
  askDirectly(state, { direct }, [id("sent"), id("other")]);
  askDirectly(state, { direct }, [id("other"), id("too many")], "promised");
  assert.deepEqual(
    [...direct],
    [
      ["sent", "sent-once"],
      ["guessed", "sent-once"],
      ["other", "promised"],
    ],
  );
});
