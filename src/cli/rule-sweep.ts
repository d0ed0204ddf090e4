import type { CriClient } from '../cri/index.ts';
import { type Clock, describeError } from '../lib/index.ts';

export interface RuleSweepDeps {
  readonly clock: Clock;
  readonly cri: Pick<CriClient, 'listPodSandbox'>;
  readonly rules: {
    sandboxesWithRules(signal: AbortSignal): Promise<readonly string[]>;
    removeRulesOf(sandboxIds: ReadonlySet<string>, signal: AbortSignal): Promise<number>;
  };
  readonly say: (text: string) => void;
}

const periodMs = 30_000;

/**
 * Removes firewall rules that sandboxes of earlier runs leave: a network plugin that was cut short by the end of who
 * had asked for it does not find its rules the second time. Sandboxes that were made since are left alone, as the
 * runtime may not tell of one while it is being made.
 */
export class RuleSweep {
  readonly #deps: RuleSweepDeps;
  /** Sandboxes from before this run that may still leave something. */
  #early: ReadonlySet<string> = new Set();

  constructor(deps: RuleSweepDeps) {
    this.#deps = deps;
  }

  /** To be called before the first sandbox of this run is made. */
  async open(signal: AbortSignal): Promise<void> {
    const withRules = await this.#deps.rules.sandboxesWithRules(signal);
    this.#early = new Set([...withRules, ...(await this.#sandboxes(signal))]);
  }

  /** Looks from time to time until all of them are gone. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#early.size > 0) {
      await this.#sweep(signal).catch((error) => {
        if (!signal.aborted)
          this.#deps.say(`cannot remove firewall rules of earlier pods: ${describeError(error)}`);
      });
      if (this.#early.size > 0) await this.#deps.clock.sleep(periodMs, signal).catch(() => {});
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const there = new Set(await this.#sandboxes(signal));
    const gone = this.#early.difference(there);
    if (gone.size === 0) return;
    const removed = await this.#deps.rules.removeRulesOf(gone, signal);
    if (removed > 0) this.#deps.say('firewall rules that pods of an earlier run had left are removed');
    this.#early = this.#early.difference(gone);
  }

  async #sandboxes(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#deps.cri.listPodSandbox({}, signal)).items.map(({ id }) => id);
  }
}
