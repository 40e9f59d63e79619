// Hexadecimal names of things: checked once, then carried by type.

import type { Brand } from "../base/brand.js";

export type EventId = Brand<string, "EventId">;
export type Pubkey = Brand<string, "Pubkey">;
/** A git object id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits. Nothing else may ever reach git. */
export type Oid = Brand<string, "Oid">;

const hex64 = /^[0-9a-f]{64}$/;
const hex128 = /^[0-9a-f]{128}$/;
const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export const isEventId = (text: unknown): text is EventId => typeof text === "string" && hex64.test(text);
export const isPubkey = (text: unknown): text is Pubkey => typeof text === "string" && hex64.test(text);
export const isSignature = (text: unknown): text is string => typeof text === "string" && hex128.test(text);
export const isOid = (text: unknown): text is Oid => typeof text === "string" && oidPattern.test(text);
