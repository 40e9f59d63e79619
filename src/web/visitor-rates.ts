// How often one address may ask for pages: a crawler must not make the server stand still for everybody else. Pages
// that start git are dearer than those that read the store.

import { ipGroup } from "../base/budget/address-group.js";
import { perMinute, Rates } from "../base/budget/rates.js";
import type { Clock } from "../base/clock.js";

export interface PageRates {
  readonly pagesPerMinute: number;
  readonly gitPagesPerMinute: number;
}

export const defaultPageRates: PageRates = { pagesPerMinute: 240, gitPagesPerMinute: 30 };

export const retryAfterSeconds = 10;

export class VisitorRates {
  readonly #pages: Rates;
  readonly #gitPages: Rates;

  constructor(
    readonly clock: Clock,
    rates: PageRates = defaultPageRates,
  ) {
    this.#pages = new Rates(() => perMinute(rates.pagesPerMinute));
    this.#gitPages = new Rates(() => perMinute(rates.gitPagesPerMinute));
  }

  takePage(ip: string): boolean {
    return this.#pages.take(ipGroup(ip), this.clock.monotonicMs());
  }

  takeGitPage(ip: string): boolean {
    return this.#gitPages.take(ipGroup(ip), this.clock.monotonicMs());
  }
}
