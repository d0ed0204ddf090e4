import type { ProbeRequest } from '../../src/probes/index.ts';
import type { ScriptedAnswer } from '../fakes/scripted-prober.ts';
import type { SimulatedRuntime } from '../simulator/index.ts';
import { uidOf } from './manifests.ts';
import { probeAnswer } from './programs.ts';
import { containerOf, type PodSketch } from './sketch.ts';

/** Called when a network probe is sent. */
export interface ProbeWitness {
  probed(question: ProbeRequest, response: 'success' | 'failure'): void;
}

/**
 * The network servers in pods: they respond to probes as the generated descriptions of the pods
 * define.
 */
export class PodNetwork {
  readonly #runtime: SimulatedRuntime;
  readonly #witness: Partial<ProbeWitness>;
  readonly #sketches = new Map<string, PodSketch>();
  /** How often each container instance received each probe. */
  readonly #asked = new Map<string, number>();

  constructor(runtime: SimulatedRuntime, witness: Partial<ProbeWitness>) {
    this.#runtime = runtime;
    this.#witness = witness;
  }

  meet(sketch: PodSketch): void {
    this.#sketches.set(uidOf(sketch), sketch);
  }

  answer(question: ProbeRequest): ScriptedAnswer {
    const response = this.#answer(question);
    this.#witness.probed?.(
      question,
      response.is === 'success' && response.afterMs < 1_000 ? 'success' : 'failure',
    );
    return response;
  }

  #answer({ podUid, container, containerId, type }: ProbeRequest) {
    const probe = containerOf(this.#sketches.get(podUid), container)?.probes?.[type];
    const found = this.#runtime.runningContainers().find(({ id }) => id === containerId);
    // Without a running container no server listens.
    if (found === undefined) return { is: 'failure', afterMs: 1 } as const;
    if (probe === undefined) return { is: 'success', afterMs: 0 } as const;
    const key = `${type} ${containerId}`;
    const time = (this.#asked.get(key) ?? 0) + 1;
    this.#asked.set(key, time);
    return probeAnswer(probe, found.attempt, time);
  }
}
