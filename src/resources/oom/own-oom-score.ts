import { writeFile } from 'node:fs/promises';
import { errnoOf, type Logger } from '../../lib/index.ts';

export interface OwnOomScoreDeps {
  readonly score: number;
  readonly logger: Logger;
  /** Writes oom_score_adj of this process; replaced in tests. */
  readonly write?: (score: string) => Promise<void>;
}

/** Sets the oom_score_adj of the kubelet. */
export class OwnOomScore {
  readonly #deps: OwnOomScoreDeps;
  readonly #write: (score: string) => Promise<void>;
  #warned = false;

  constructor(deps: OwnOomScoreDeps) {
    this.#deps = deps;
    this.#write = deps.write ?? ((score) => writeFile('/proc/self/oom_score_adj', score));
  }

  /** Sets oom_score_adj of the kubelet. Idempotent. A failure is logged once. Never throws. */
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
    this.#deps.logger.warn('Failed to set oom_score_adj of the kubelet; the OOM killer may select it', {
      score: this.#deps.score,
      why,
    });
  }
}
