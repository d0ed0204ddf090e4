import type { ProbeRequest } from '../../src/probes/index.ts';
import type { ScriptedAnswer } from '../fakes/scripted-prober.ts';
import type { SimulatedRuntime } from '../simulator/index.ts';
import { uidOf } from './manifests.ts';
import { probeAnswer } from './programs.ts';
import { containerOf, type PodSketch } from './sketch.ts';

/** Told of each probe that goes over the network, when it is asked. */
export interface ProbeWitness {
  probed(question: ProbeRequest, answer: 'success' | 'failure'): void;
}

/** What listens in the pods: answers probes as the sketches have it. */
export class PodNetwork {
  readonly #runtime: SimulatedRuntime;
  readonly #witness: Partial<ProbeWitness>;
  readonly #sketches = new Map<string, PodSketch>();
  /** How often each instance was asked each thing. */
  readonly #asked = new Map<string, number>();

  constructor(runtime: SimulatedRuntime, witness: Partial<ProbeWitness>) {
    this.#runtime = runtime;
    this.#witness = witness;
  }

  meet(sketch: PodSketch): void {
    this.#sketches.set(uidOf(sketch), sketch);
  }

  answer(question: ProbeRequest): ScriptedAnswer {
    const answer = this.#answer(question);
    this.#witness.probed?.(
      question,
      answer.is === 'success' && answer.afterMs < 1_000 ? 'success' : 'failure',
    );
    return answer;
  }

  #answer({ podUid, container, containerId, type }: ProbeRequest) {
    const probe = containerOf(this.#sketches.get(podUid), container)?.probes?.[type];
    const found = this.#runtime.runningContainers().find(({ id }) => id === containerId);
    // Nobody listens where nothing runs.
    if (found === undefined) return { is: 'failure', afterMs: 1 } as const;
    if (probe === undefined) return { is: 'success', afterMs: 0 } as const;
    const key = `${type} ${containerId}`;
    const time = (this.#asked.get(key) ?? 0) + 1;
    this.#asked.set(key, time);
    return probeAnswer(probe, found.attempt, time);
  }
}
