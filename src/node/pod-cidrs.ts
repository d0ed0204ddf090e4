import { type Clock, withDeadline } from '../lib/index.ts';
import type { NodeRuntime } from './inputs.ts';
import type { NodeLog } from './node-log.ts';

export interface PodCidrsDeps {
  readonly runtime: Pick<NodeRuntime, 'usePodCidrs'>;
  readonly clock: Clock;
  readonly log: NodeLog;
}

const updateTimeoutMs = 10_000;
const retryAfterMs = 5_000;

/** Sends the pod CIDRs of the Node to the runtime when the cluster sets or changes them. */
export class PodCidrs {
  readonly #deps: PodCidrsDeps;
  #applied = '';
  #retryMs = 0;

  constructor(deps: PodCidrsDeps) {
    this.#deps = deps;
  }

  /** A failed call is retried later; the status of the node does not depend on it. */
  async apply(cidrs: readonly string[], signal: AbortSignal): Promise<void> {
    const desired = cidrs.join(',');
    const { runtime, clock, log } = this.#deps;
    if (desired === '' || desired === this.#applied || clock.monotonicMs() < this.#retryMs) return;
    const what = 'send the pod CIDRs to the container runtime';
    try {
      await withDeadline(
        { clock, ms: updateTimeoutMs, what },
        (inner) => runtime.usePodCidrs(cidrs, inner),
        signal,
      );
      this.#applied = desired;
      log.info('Updated pod CIDRs of container runtime', { cidrs: desired });
      log.recovered(what);
    } catch (error) {
      signal.throwIfAborted();
      this.#retryMs = clock.monotonicMs() + retryAfterMs;
      log.problem(what, error);
    }
  }
}
