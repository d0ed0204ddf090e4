import type { CriClient } from '../../../src/cri/index.ts';
import { bound } from '../cluster/cluster-mutations.ts';
import type { KnownBug } from '../mutations.ts';

const resizing = { cluster: 'joined', resizes: 'many' } as const;
/**
 * Options that shorten the wait for the final state: used with bugs that make an operation fail
 * forever, so that the final state is never reached.
 */
const impatient = { ...resizing, patienceMs: 400_000 } as const;

/** Bugs in the in-place resize of pods; the simulation must find each. */
export const resizeMutations: Readonly<Record<string, KnownBug>> = {
  'the node is thought to have ten times what it has': {
    breaks: 'containers that run are never given more than the node has',
    shows: resizing,
    api: (client) => ({
      ...bound(client),
      get: async (ref, ...rest) => (await grown(await client.get(ref, ...rest))) as never,
      async *watch(query, signal) {
        for await (const event of client.watch(query, signal)) yield grownEvent(event) as never;
      },
      list: async (query, signal) => {
        const list = await client.list(query, signal);
        return { ...list, items: list.items.map(grown) } as never;
      },
    }),
  },

  'what a container is told to have is thought to be had though the runtime said no': {
    breaks: 'what is wanted comes to be',
    shows: impatient,
    cri: (client) =>
      new Proxy(client, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          if (name === 'updateContainerResources') return async () => ({});
          return (value as (...args: unknown[]) => unknown).bind(target);
        },
      }) as CriClient,
  },
};

interface Anything {
  readonly kind?: string;
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>> };
}

function grown<T>(object: T): T {
  const { status } = object as Anything;
  if (status?.allocatable?.['cpu'] === undefined) return object;
  const allocatable = { ...status.allocatable, cpu: '40', memory: '80Gi' };
  return { ...object, status: { ...status, allocatable } };
}

function grownEvent<T>(event: T): T {
  const { object } = event as { readonly object?: unknown };
  return object === undefined ? event : { ...event, object: grown(object) };
}
