export interface BudgetDeps {
  readonly monotonicMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Looks at files a second. */
  readonly perSecond: number;
  /** As many at once after a rest. */
  readonly burst: number;
}

/** Keeps those who share it to so much a second, all of them together. */
export class Budget {
  readonly #deps: BudgetDeps;
  #left: number;
  #atMs: number;

  constructor(deps: BudgetDeps) {
    this.#deps = deps;
    this.#left = deps.burst;
    this.#atMs = deps.monotonicMs();
  }

  /** Resolves when what was spent has been saved up again; always lets others come first. */
  async spend(looks: number): Promise<void> {
    const { perSecond, burst, monotonicMs, sleep } = this.#deps;
    const nowMs = monotonicMs();
    this.#left = Math.min(this.#left + ((nowMs - this.#atMs) * perSecond) / 1_000, burst) - looks;
    this.#atMs = nowMs;
    await sleep(this.#left >= 0 ? 0 : (-this.#left * 1_000) / perSecond);
  }
}
