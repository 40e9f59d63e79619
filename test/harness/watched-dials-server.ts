// A server whose every outgoing connection is written to its log (`dialled <address> <port>`), and whose names resolve
// as a test says: `node watched-dials-server.js serve '{"name": [["first", "answer"], ["second"]]}'`, the last answer for
// ever. The product knows nothing of it: Node's own modules are wrapped here, before the server starts.

import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";

const [, , verb, table = "{}"] = process.argv;
if (verb === "serve") {
  const answers = new Map(Object.entries(JSON.parse(table) as Record<string, string[][]>));
  const resolve = async (name: string): Promise<readonly string[]> => {
    const known = answers.get(name);
    const answer = known && known.length > 1 ? known.shift() : known?.[0];
    process.stderr.write(`resolved ${name} ${answer?.join(",") ?? "to nothing"}\n`);
    if (!answer) throw Object.assign(new Error(`query ENOTFOUND ${name}`), { code: "ENOTFOUND" });
    return answer;
  };
  /** One is made for each look-up, and asked for both families. */
  class Resolver {
    #answer: Promise<readonly string[]> | undefined;
    async #of(name: string, isWanted: (address: string) => boolean): Promise<string[]> {
      this.#answer ??= resolve(name);
      return (await this.#answer).filter(isWanted);
    }
    resolve4 = (name: string): Promise<string[]> => this.#of(name, (address) => !address.includes(":"));
    resolve6 = (name: string): Promise<string[]> => this.#of(name, (address) => address.includes(":"));
    cancel(): void {}
  }
  Object.assign(dns, { Resolver });
  syncBuiltinESMExports();

  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    this.on("connectionAttempt", (address: string, port: number) => {
      process.stderr.write(`dialled ${address} ${port}\n`);
    });
    return Reflect.apply(connect, this, args) as Socket;
  } as typeof connect;

  process.argv.splice(3);
  await import("../../src/main.js");
}
