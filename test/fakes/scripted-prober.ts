import { type Clock, KubelingError } from '../../src/lib/index.ts';
import type { ProbeRequest, ProbeResponse, Prober } from '../../src/probes/index.ts';

/** The response of a simulated container to a probe. A response after the timeout is a failure. */
export interface ScriptedAnswer {
  readonly is: ProbeResponse['is'] | 'error';
  readonly output?: string;
  /** The delay of the response; none if undefined, Infinity for no response. */
  readonly afterMs?: number;
}

export interface ScriptedProberOptions {
  readonly clock: Clock;
  /** Returns the response to each probe; all probes succeed if undefined. */
  readonly script?: ((question: ProbeRequest) => ScriptedAnswer | undefined) | undefined;
}

/** A prober for a simulated network: the same script and the same clock give the same responses. */
export function scriptedProber({ clock, script = () => undefined }: ScriptedProberOptions): Prober {
  return {
    async probe(question, signal) {
      const { is, output = '', afterMs = 0 } = script(question) ?? { is: 'success' };
      await clock.sleep(Math.min(afterMs, question.timeoutMs), signal);
      if (afterMs >= question.timeoutMs) return { is: 'failure', output: 'i/o timeout' };
      if (is === 'error') throw new KubelingError('PROBE_UNASKABLE', output);
      return { is, output };
    },
  };
}
