import { writeFile } from 'node:fs/promises';
import { errnoOf, type Logger } from '../../lib/index.ts';

export interface OwnOomScoreDeps {
  readonly score: number;
  readonly logger: Logger;
  /** To the file of our own process; given only in tests. */
  readonly write?: (score: string) => Promise<void>;
}

/** How willingly the kernel kills kubeling itself when memory runs out. */
export class OwnOomScore {
  readonly #deps: OwnOomScoreDeps;
  readonly #write: (score: string) => Promise<void>;
  #warned = false;

  constructor(deps: OwnOomScoreDeps) {
    this.#deps = deps;
    this.#write = deps.write ?? ((score) => writeFile('/proc/self/oom_score_adj', score));
  }

  /** May be called again and again: what cannot be had is said once. Never throws. */
  async apply(): Promise<'set' | 'refused'> {
    try {
      await this.#write(String(this.#deps.score));
      return 'set';
    } catch (error) {
      this.#warnOnce(error);
      return 'refused';
    }
  }

  #warnOnce(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    const why = errnoOf(error) === 'EACCES' ? 'lowering it takes the capability SYS_RESOURCE' : String(error);
    this.#deps.logger.warn('Cannot set our own oom_score_adj: under pressure the kernel may kill us early', {
      score: this.#deps.score,
      why,
    });
  }
}
