import type { KnownBug } from '../mutations.ts';
import { withParts } from '../volumes/joint-files.ts';

const short = { cluster: 'joined', pressure: 'some' } as const;

/** Bugs on a node under resource pressure; the simulation must find each. */
export const pressureMutations: Readonly<Record<string, KnownBug>> = {
  'that a pod was evicted is known to nobody but the kubelet that did it': {
    breaks: 'an evicted pod',
    shows: { ...short, killedAt: 'stopContainer', trouble: 'kubelet' },
    machine: (machine) => ({
      ...machine,
      files: withParts(machine.files, {
        replace: (path, text, options) => machine.files.replace(path, withoutEnd(path, text), options),
      }),
    }),
  },

  'a critical pod is evicted like any other': {
    breaks: 'a critical pod is never evicted',
    shows: short,
    kubelet: ({ state: { pods } }) => {
      const getPods = pods.getPods.bind(pods);
      pods.getPods = () => getPods().map((pod) => ({ ...pod, spec: { ...pod.spec, priority: 0 } }));
    },
  },
};

function withoutEnd(path: string, text: string): string {
  if (!path.endsWith('/kubeling.json')) return text;
  const { end: _unknown, termination: _neither, ...notes } = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify(notes);
}
