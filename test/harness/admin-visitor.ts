// Somebody with a browser that runs no script: keeps the cookie, reads pages, fills in the forms it finds on them.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { SecretKey } from "../../src/nostr/keys.js";
import { nowSeconds, signed } from "./operator-server.js";

export interface TokenWish {
  readonly url: string;
  readonly method?: string;
  readonly at?: number;
}

export function authorization(key: SecretKey, { url, method = "POST", at = nowSeconds() }: TokenWish): string {
  // Equal requests of one second would have equal ids, and the second would be a replay.
  const tags = [
    ["u", url],
    ["method", method],
    ["nonce", randomBytes(8).toString("hex")],
  ];
  return `Nostr ${Buffer.from(signed(key, 27235, tags, "", at).raw).toString("base64")}`;
}

export class AdminVisitor {
  cookie = "";

  constructor(readonly origin: string) {}

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(this.cookie === "" ? {} : { cookie: this.cookie }), ...(init.headers as object) };
    return fetch(this.origin + path, { redirect: "manual", ...init, headers });
  }

  async page(path: string): Promise<string> {
    const response = await this.fetch(path);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("cache-control"), "no-store", path);
    return response.text();
  }

  keepCookie(response: Response): void {
    this.cookie = (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  }

  async logInByLink(url: string): Promise<void> {
    const response = await fetch(url, { redirect: "manual" });
    assert.deepEqual([response.status, response.headers.get("location")], [303, "/admin"]);
    this.keepCookie(response);
  }

  signIn(header: string | undefined, origin: string | undefined = this.origin): Promise<Response> {
    const headers = {
      ...(header === undefined ? {} : { authorization: header }),
      ...(origin === undefined ? {} : { origin }),
    };
    return fetch(`${this.origin}/admin/login`, { method: "POST", headers });
  }

  async formToken(): Promise<string> {
    const token = /name="form" value="([^"]+)"/.exec(await this.page("/admin"))?.[1];
    assert.ok(token);
    return token;
  }

  post(operation: string, fields: Readonly<Record<string, string>>, origin = this.origin): Promise<Response> {
    return this.fetch(operation.startsWith("/") ? operation : `/admin/do/${operation}`, {
      method: "POST",
      headers: { origin },
      body: new URLSearchParams(fields),
    });
  }

  /** Does what a form does and answers what the page says afterwards. */
  async act(operation: string, fields: Readonly<Record<string, string>>, back = "/admin"): Promise<string> {
    const form = { ...fields, back, form: await this.formToken() };
    let response = await this.post(operation, form);
    // It asks first, and shows what would happen: the answer is another form.
    if (response.status === 200) {
      assert.match(await response.text(), /name="sure" value="yes"/, operation);
      response = await this.post(operation, { ...form, sure: "yes" });
    }
    assert.deepEqual([response.status, response.headers.get("location")], [303, back], operation);
    const html = await this.page(back);
    const said = /<p class="said (good|bad)" role="status">([^<]*)<\/p>/.exec(html);
    assert.ok(said, `${operation}: the page says nothing`);
    return `${said[1]}: ${said[2]}`;
  }
}
