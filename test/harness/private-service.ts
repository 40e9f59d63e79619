// A private service (GRASP-08) and who comes to it: members with keys, with signed requests and with machine tokens.

import assert from "node:assert/strict";
import { join } from "node:path";
import type { OperationName, ParametersOf } from "../../src/operator/operations.js";
import type { ResultOf } from "../../src/operator/run.js";
import { askServer } from "../../src/operator/socket.js";
import { Person } from "./grasp-people.js";
import { Story } from "./grasp-story.js";
import type { RelayClient } from "./relay-client.js";
import { type InProcessOptions, type InProcessServer, startInProcess, type TestServer } from "./server.js";

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

let signed = 0;

/**
 * NIP-98, or, with a repository's root URL and GET, what git sends. No two are one event, also when they are signed in the same
 * second for the same thing: a sign-in takes an event once.
 */
export function signedHeader(person: Person, url: string, method = "GET", at = nowSeconds()): string {
  const event = person.sign(
    27235,
    [
      ["u", url],
      ["method", method],
      ["nonce", String(signed++)],
    ],
    "",
    at,
  );
  return `Nostr ${Buffer.from(JSON.stringify(event)).toString("base64")}`;
}

export const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

/** Waits for the challenge and answers it; the relay's OK. */
export async function authenticate(
  client: RelayClient,
  server: TestServer,
  person: Person,
): Promise<readonly unknown[]> {
  const isChallenge = ([verb]: readonly unknown[]): boolean => verb === "AUTH";
  const [, challenge] = client.heard.find(isChallenge) ?? (await client.next(isChallenge));
  const event = person.sign(
    22242,
    [
      ["relay", server.url],
      ["challenge", String(challenge)],
    ],
    "",
    nowSeconds(),
  );
  const answer = client.next(([verb, id]) => verb === "OK" && id === event.id);
  client.send("AUTH", event);
  return answer;
}

export interface PrivateService {
  readonly server: InProcessServer;
  readonly alice: Person;
  readonly bob: Person;
  readonly stranger: Person;
  /** As alice sees it. */
  readonly story: Story;
  connectAs(person: Person): Promise<RelayClient>;
  /** What an operator does, by the socket. */
  operate<Name extends OperationName>(operation: Name, parameters: ParametersOf<Name>): Promise<ResultOf<Name>>;
}

/** alice and bob are members. On LMDB, because verbs reach a server by its socket. */
export async function startPrivate(options: InProcessOptions = {}): Promise<PrivateService> {
  const [alice, bob, stranger] = [new Person(), new Person(), new Person()];
  const server = await startInProcess({
    backend: "lmdb",
    ...options,
    settings: {
      NGIT_PRIVATE_MODE: "true",
      NGIT_PRIVATE_MEMBERS: `${alice.npub},${bob.npub}`,
      ...options.settings,
    },
  });
  const connectAs = async (person: Person): Promise<RelayClient> => {
    const client = await server.connect();
    await authenticate(client, server, person);
    return client;
  };
  const story = await Story.on(server);
  assert.deepEqual((await authenticate(story.relay, server, alice)).slice(2), [true, ""]);
  return {
    ...{ server, alice, bob, stranger, story, connectAs },
    async operate(operation, parameters) {
      const directory = join(server.folder, "relay");
      const outcome = await askServer(directory, { operation, parameters }, () => undefined);
      assert.ok(outcome?.ok, JSON.stringify(outcome));
      return outcome.result as never;
    },
  };
}
