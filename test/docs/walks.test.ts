// docs/explanation/walks.md lists the files that four things cross on their way through the server. Here they take these
// ways, and each list must name every file in which a function is called, and no other.
// `HOLDFAST_WALKS=write npm test -- docs/walks` brings the lists up to date; files that are new there need a sentence.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { eventFromStoredText } from "../../src/nostr/event.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, type WorkingCopy } from "../harness/grasp-story.js";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { untilSo } from "../harness/server.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { WalkedServer } from "../harness/walked-server.js";

const page = "docs/explanation/walks.md";
const missingSentence = "NEEDS A SENTENCE";

interface Walk {
  readonly heading: string;
  /** It may not become longer without a reason. */
  readonly mostFiles: number;
  /** Rooms that are told of what happened, and what only they use. Nothing on the way waits for them: they do not count. */
  readonly told: readonly string[];
}

const walks = {
  event: {
    heading: "A client's event, from frame to OK",
    mostFiles: 40,
    told: ["src/sync/", "src/hunt/"],
  },
  push: {
    heading: "A push, from request to answer",
    mostFiles: 62,
    told: ["src/sync/", "src/hunt/", "src/relay/", "src/lfs/"],
  },
  hunt: {
    heading: "A hunted repository, from the end of its wait to its release",
    mostFiles: 67,
    told: ["src/sync/", "src/relay/", "src/lfs/"],
  },
  foreign: {
    heading: "A foreign event, from another relay's frame to the store",
    mostFiles: 52,
    told: ["src/hunt/", "src/relay/"],
  },
} as const satisfies Record<string, Walk>;

describe("the walks in the documentation are those that are taken", () => {
  const alice = new Person();
  const directDelayMs = 1;
  let walked: WalkedServer;
  let story: Story;
  let relay: PlainRelay;
  let remote: HuntGitServer;

  before(async () => {
    relay = await PlainRelay.start();
    remote = await HuntGitServer.start();
    walked = await WalkedServer.start({
      NGIT_SYNC_STARTUP_JITTER_MS: "0",
      NGIT_SYNC_BATCH_WINDOW_MS: "50",
      NGIT_GIT_HUNT_DIRECT_DELAY_MS: String(directDelayMs),
    });
    story = await Story.on(walked.server);
  });
  after(async () => {
    await story?.end();
    await relay?.stop();
    await remote?.close();
  });

  const issueOn = (identifier: string, text: string): SignedEvent =>
    alice.sign(1621, [["a", alice.coordinate(identifier)]], text);

  /** The first time, modules are loaded and connections opened: what counts is the second. */
  async function twice(walk: (turn: "first" | "second") => Promise<void>): Promise<void> {
    await walk("first");
    await walk("second");
  }

  it(walks.event.heading, async () => {
    await hosted("talk", []);
    await twice(async (turn) => {
      const event = issueOn("talk", turn);
      await walked.quiet();
      await walked.begin({ type: "written", text: `["OK","${event.id}"` });
      await story.accepted(event);
    });
    compare(walks.event, await walked.crossed());
  });

  it(walks.push.heading, async () => {
    const work = await hosted("pushed", []);
    await twice(async (turn) => {
      const tip = await work.commit(turn);
      await story.state(alice, "pushed", { "refs/heads/main": tip });
      await walked.quiet();
      await walked.begin({ type: "answered", method: "POST", path: "/git-receive-pack" });
      await work.must("push", "-q", story.url(alice, "pushed"), "main");
    });
    compare(walks.push, await walked.crossed());
  });

  it(walks.hunt.heading, async () => {
    const work = await story.workingCopy();
    await twice(async (turn) => {
      const tip = await work.commit(turn);
      await remote.publish(turn, work.folder, { "refs/heads/main": tip });
      await story.accepted(announcement(turn, [remote.url(turn)], []));
      const state = await story.state(alice, turn, { "refs/heads/main": tip });
      await walked.quiet();
      await walked.begin();
      await walked.advance(directDelayMs);
      await untilSo("the state is released", () => walked.isStored(state.id));
      await walked.quiet();
    });
    compare(walks.hunt, await walked.crossed());
  });

  it(walks.foreign.heading, async () => {
    await hosted("followed", [relay.url]);
    await untilSo("the relay is asked for events about the repository", async () => {
      await walked.advance(100);
      return JSON.stringify(relay.requests()).includes(alice.coordinate("followed"));
    });
    await twice(async (turn) => {
      const event = issueOn("followed", turn);
      await walked.quiet();
      await walked.begin();
      relay.publish(eventFromStoredText(JSON.stringify(event)));
      await untilSo("the event is stored", () => walked.isStored(event.id));
      await walked.quiet();
    });
    compare(walks.foreign, await walked.crossed());
  });

  const announcement = (identifier: string, clone: readonly string[], relays: readonly string[]): SignedEvent =>
    alice.sign(30617, [
      ["d", identifier],
      ["clone", story.url(alice, identifier), ...clone],
      ["relays", `ws://${story.server.domain}`, ...relays],
    ]);

  async function hosted(identifier: string, relays: readonly string[]): Promise<WorkingCopy> {
    await story.accepted(announcement(identifier, [], relays));
    const work = await story.workingCopy();
    await story.state(alice, identifier, { "refs/heads/main": await work.commit(identifier) });
    await work.must("push", "-q", story.url(alice, identifier), "main");
    return work;
  }
});

function compare(walk: Walk, crossed: ReadonlyMap<string, readonly string[]>): void {
  const counted = new Map([...crossed].filter(([file]) => !walk.told.some((room) => file.startsWith(room))));
  if (process.env.HOLDFAST_WALKS === "write") write(walk, counted);
  const listed = listOf(walk);
  const files = listed.map(({ file }) => file);
  const howTo = `in ${page}, "${walk.heading}" (or run HOLDFAST_WALKS=write npm test -- docs/walks):`;
  const lacking = [...counted].filter(([file]) => !files.includes(file));
  assert.deepEqual(
    lacking.map(([file, names]) => `${file} (${names.filter(Boolean).join(", ")})`),
    [],
    `crossed and not listed: add these ${howTo}`,
  );
  assert.deepEqual(
    files.filter((file) => !counted.has(file)),
    [],
    `listed and not crossed: remove these ${howTo}`,
  );
  assert.deepEqual(
    files.filter((file, index) => files.indexOf(file) < index),
    [],
    "listed twice",
  );
  const unwritten = listed.filter(({ sentence }) => sentence.includes(missingSentence)).map(({ file }) => file);
  assert.deepEqual(unwritten, [], `say what these do on the way, ${howTo}`);
  assert.ok(files.length <= walk.mostFiles, `${files.length} files are crossed, at most ${walk.mostFiles} may be`);
}

interface Station {
  readonly file: string;
  readonly sentence: string;
}

const stationsIn = (text: string): Station[] =>
  [...text.matchAll(/^\d+\. `(src\/[^`]+)`: (.+)$/gm)].map(([, file = "", sentence = ""]) => ({ file, sentence }));

/** The text before a walk's list, its list, and what follows. */
function splitAt({ heading }: Walk): readonly [string, string, string] {
  const text = readFileSync(page, "utf8");
  const start = text.indexOf("\n1. ", text.indexOf(`## ${heading}\n`)) + 1;
  const end = text.indexOf("\n\n", start);
  const to = end < 0 ? text.length - 1 : end;
  return [text.slice(0, start), text.slice(start, to), text.slice(to)];
}

const listOf = (walk: Walk): Station[] => stationsIn(splitAt(walk)[1]);

const folderOf = (file: string): string => file.slice(0, file.lastIndexOf("/"));

/** Files that stay keep their place and sentence; new ones come after their neighbours, to be put where they belong. */
function write(walk: Walk, counted: ReadonlyMap<string, readonly string[]>): void {
  const [before, list, behind] = splitAt(walk);
  const stations = stationsIn(list).filter(({ file }) => counted.has(file));
  const told = new Map(stationsIn(readFileSync(page, "utf8")).map(({ file, sentence }) => [file, sentence]));
  for (const [file, names] of [...counted].sort()) {
    if (stations.some((station) => station.file === file)) continue;
    const sentence = told.get(file) ?? `${missingSentence} (${names.filter(Boolean).join(", ")})`;
    const neighbour = stations.findLastIndex((station) => folderOf(station.file) === folderOf(file));
    stations.splice(neighbour < 0 ? stations.length : neighbour + 1, 0, { file, sentence });
  }
  const lines = stations.map(({ file, sentence }, index) => `${index + 1}. \`${file}\`: ${sentence}`);
  writeFileSync(page, before + lines.join("\n") + behind);
}
