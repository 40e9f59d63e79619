// The one budget: whatever a stranger can send is bounded in bytes held, in places taken and in how often, by address
// and in all (threats.md, rows 32 to 55). Four files, no I/O, time is an argument:
//   address-group.ts  whose it is; the others group addresses by themselves, callers hand them an address
//   bytes.ts          ByteBudget: bytes held now; who holds most gives way
//   turns.ts          Turns: places taken now, with a bounded fair queue and places kept for others
//   rates.ts          TokenBucket, Rates: how often, how many bytes a day
// Here: who counts as one visitor. An IPv4 address, or an IPv6 /64 (a household or a server gets that many addresses at
// least).

import { isIPv4, isIPv6 } from "node:net";

/** `192.0.2.1`, `2001:db8:0:1::/64`; anything else is one visitor under its own text. */
export function ipGroup(ip: string): string {
  if (isIPv4(ip) || !isIPv6(ip)) return ip;
  const words = ipv6Words(ip);
  const mapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff;
  if (mapped) {
    const [high = 0, low = 0] = words.slice(6);
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  return `${words
    .slice(0, 4)
    .map((word) => word.toString(16))
    .join(":")}::/64`;
}

function ipv6Words(ip: string): number[] {
  const [address = ""] = ip.split("%");
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text = dotted
    ? `${dotted[1]}${((Number(dotted[2]) << 8) | Number(dotted[3])).toString(16)}:${((Number(dotted[4]) << 8) | Number(dotted[5])).toString(16)}`
    : address;
  const [head = "", tail] = text.split("::");
  const words = (part: string) => (part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16)));
  const front = words(head);
  if (tail === undefined) return front;
  const back = words(tail);
  return [...front, ...new Array<number>(Math.max(0, 8 - front.length - back.length)).fill(0), ...back];
}
