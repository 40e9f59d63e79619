// TLS between a machine and the database, with authorities and certificates that are real: what verify-full lets pass and what
// it refuses. The machines are processes of the real program.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { noOpenssl, TestAuthority } from "./certificates.js";
import { Pusher } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { newFolders } from "./three-nodes.js";
import { ClusterOfProcesses } from "./whole-cluster.js";

const authorityName = "the authority of the databases";
const folders = newFolders();
after(() => folders.dispose());

describe("TLS with the database", { skip: noOpenssl, timeout: 300_000 }, () => {
  let authority: TestAuthority;
  let postgres: TestPostgres;
  let elsewhere: TestPostgres;
  before(async () => {
    authority = new TestAuthority(folders.folder("authority"), authorityName);
    postgres = await TestPostgres.start([], authority.certificateFor("DNS:localhost", "IP:127.0.0.1"));
    elsewhere = await TestPostgres.start([], authority.certificateFor("DNS:db.example.com"));
  });
  after(async () => {
    await postgres?.dispose();
    await elsewhere?.dispose();
  });

  const urlOf = ({ port }: TestPostgres, host: string, trusted: string): string =>
    `postgres://holdfast@${host}:${port}/holdfast?sslmode=verify-full&sslrootcert=${trusted}`;

  for (const host of ["localhost", "127.0.0.1"]) {
    test(`a machine that trusts the authority of ${host} stores events and pushes, and each of its sessions is encrypted`, async () => {
      const cluster = await ClusterOfProcesses.start({
        ...{ size: 1, postgres: { url: () => urlOf(postgres, host, authority.file) } },
      });
      try {
        const pusher = await Pusher.make(cluster.folder, cluster.domain, "encrypted", 5);
        assert.equal((await pusher.announce(cluster))?.ok, true);
        const { isDone, said } = await pusher.push(cluster, cluster);
        assert.ok(isDone, said);
        assert.ok(await pusher.say(cluster, "over TLS"));
        const sessions = await postgres.sql(
          `SELECT application_name AS name, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
           WHERE application_name LIKE 'holdfast%'`,
        );
        assert.ok(sessions.length >= 4, JSON.stringify(sessions));
        assert.deepEqual(
          sessions.filter(({ ssl }) => ssl !== true),
          [],
        );
        assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);
      } finally {
        await cluster.end();
      }
    });
  }

  describe("refusals at start", () => {
    let cluster: ClusterOfProcesses;
    before(async () => {
      const url = (): string => urlOf(postgres, "localhost", authority.file);
      cluster = await ClusterOfProcesses.start({ size: 1, postgres: { url } });
    });
    after(() => cluster?.end());

    /** What one more machine that is given this URL says last. */
    const refusalOf = async (url: string): Promise<string> => {
      const outcome = await cluster.run("two", undefined, { NGIT_DATABASE_URL: url }).catch(String);
      if (typeof outcome === "string") return outcome;
      return assert.fail(`it started: ${outcome.log()}`);
    };

    test("a certificate for another name is refused with both names", async () => {
      const otherName = /the certificate of the database at \S+ is for another name .*write the name that it is for/;
      const byName = await refusalOf(urlOf(elsewhere, "localhost", authority.file));
      assert.match(byName, otherName);
      assert.match(byName, /localhost.*DNS:db\.example\.com.*\(tls\)/);
      assert.match(await refusalOf(urlOf(elsewhere, "127.0.0.1", authority.file)), otherName);
    });

    test("a certificate that the named authority did not sign is refused, also if the authority has the signer's name or none is named", async () => {
      const stranger = new TestAuthority(folders.folder("stranger"), "a stranger");
      const namesake = new TestAuthority(folders.folder("namesake"), authorityName);
      const unnamed = `postgres://holdfast@localhost:${postgres.port}/holdfast?sslmode=verify-full`;
      const urls = [stranger, namesake].map(({ file }) => urlOf(postgres, "localhost", file));
      for (const url of [...urls, unnamed]) {
        assert.match(
          await refusalOf(url),
          /the certificate of the database at localhost:\d+\/holdfast is signed by no authority that this machine trusts .*sslrootcert.*\(tls\)/,
        );
      }
    });

    test("a file that holds no certificate is refused by its path", async () => {
      const file = folders.folder("nothing.pem");
      writeFileSync(file, "nothing\n");
      assert.match(await refusalOf(urlOf(postgres, "localhost", file)), /nothing\.pem.* holds no certificate/);
    });
  });
});
