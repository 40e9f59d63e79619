// A rate limit that allows bursts: as many at once as a minute allows, then as they grow back.

export class TokenBucket {
  #tokens: number;
  #atMs: number;

  constructor(perMinute: number, nowMs: number) {
    this.#tokens = perMinute;
    this.#atMs = nowMs;
  }

  take(perMinute: number, nowMs: number): boolean {
    this.#refill(perMinute, nowMs);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  isFull(perMinute: number, nowMs: number): boolean {
    this.#refill(perMinute, nowMs);
    return this.#tokens >= perMinute;
  }

  #refill(perMinute: number, nowMs: number): void {
    this.#tokens = Math.min(perMinute, this.#tokens + ((nowMs - this.#atMs) * perMinute) / 60_000);
    this.#atMs = nowMs;
  }
}
