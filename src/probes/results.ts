import type { ProbeType } from './probe-request.ts';

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** The current probe results by probe type and container ID. */
export class ProbeResults {
  readonly #results: Readonly<Record<ProbeType, Map<string, ProbeResult>>> = {
    liveness: new Map(),
    readiness: new Map(),
    startup: new Map(),
  };

  get size(): number {
    return Object.values(this.#results).reduce((sum, results) => sum + results.size, 0);
  }

  /** The result of a probe; undefined before the first one. */
  get(type: ProbeType, containerId: string): ProbeResult | undefined {
    return this.#results[type].get(containerId);
  }

  /** Stores a probe result; returns whether it changed. */
  set(type: ProbeType, containerId: string, result: ProbeResult): boolean {
    const isChanged = this.#results[type].get(containerId) !== result;
    this.#results[type].set(containerId, result);
    return isChanged;
  }

  remove(type: ProbeType, containerId: string): void {
    this.#results[type].delete(containerId);
  }
}
