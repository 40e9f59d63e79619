// The cookie of an admin's browser: out of reach for script, never sent along by other sites' pages.

import type { IncomingMessage, ServerResponse } from "node:http";
import { sessionLifeMs } from "../operator/login.js";

const cookieName = "holdfast-admin";

export function sessionOf(message: IncomingMessage): string | undefined {
  for (const part of (message.headers.cookie ?? "").split(";")) {
    const [name, value] = part.trim().split("=");
    if (name === cookieName) return value;
  }
  return undefined;
}

/** Undefined ends it. */
export function setSessionCookie(response: ServerResponse, publicUrl: string, session: string | undefined): void {
  const secure = publicUrl.startsWith("https:") ? "; Secure" : "";
  const seconds = session === undefined ? 0 : Math.floor(sessionLifeMs / 1000);
  response.setHeader(
    "Set-Cookie",
    `${cookieName}=${session ?? ""}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}${secure}`,
  );
}
