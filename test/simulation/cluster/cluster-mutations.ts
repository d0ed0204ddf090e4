import { type ApiClient, apiResources, type ObjectRef } from '../../../src/api/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import type { KnownBug } from '../mutations.ts';

type PatchCall = Parameters<ApiClient['patch']>;

const joined = { cluster: 'joined' } as const;
/**
 * Options that shorten the wait for the final state: used with bugs that make an operation fail
 * forever, so that the final state is never reached.
 */
const impatient = { ...joined, patienceMs: 200_000 } as const;

/** Bugs in the API connection of the kubelet; the simulation must find each. */
export const clusterMutations: Readonly<Record<string, KnownBug>> = {
  'a pod that is deleted goes from the API at once': {
    breaks: 'a pod goes from the API when nothing of it is left',
    shows: joined,
    api: (client) =>
      withPatch(client, async (patch, [ref, ...rest]) => {
        const pod = await patch(ref, ...rest);
        const { deletionTimestamp, uid } = pod.metadata;
        const [, signal] = rest;
        if (deletionTimestamp !== undefined)
          await client.delete(plain(ref), { gracePeriodSeconds: 0, uid }, signal);
        return pod;
      }),
  },

  'a status that was written comes again after the next': {
    breaks: 'no status in the API goes back',
    shows: joined,
    api: (client) => {
      const earlier = new Map<string, PatchCall[1]>();
      return withPatch(client, async (patch, [ref, body, signal]) => {
        const response = await patch(ref, body, signal);
        const before = earlier.get(ref.name);
        earlier.set(ref.name, unfenced(body));
        return before === undefined ? response : await patch(ref, before, signal);
      });
    },
  },

  'a status is thought to be written that is not': {
    breaks: 'what is wanted comes to be: the API tells',
    shows: impatient,
    api: (client) => withPatch(client, (_patch, [ref, , signal]) => client.get<Pod>(plain(ref), {}, signal)),
  },

  'a mirror that could not be made counts as made': {
    breaks: 'what is wanted comes to be',
    shows: impatient,
    api: (client) => ({
      ...bound(client),
      create: async (at, object, signal) =>
        at.resource === apiResources.pods ? (object as never) : await client.create(at, object, signal),
    }),
  },

  'no answer of the API counts as no pods': {
    breaks: 'nothing stops because the API is away',
    shows: joined,
    api: (client, kubelet) => ({
      ...bound(client),
      async *watch(query, signal) {
        try {
          yield* client.watch(query, signal);
        } catch (error) {
          if (query.resource === apiResources.pods) kubelet()?.state.config.set('api', []);
          throw error;
        }
      },
    }),
  },

  'every kubelet tells of pods in words of its own': {
    breaks: 'a restart of the kubelet writes nothing that is so already',
    shows: joined,
    kubelet: speakingDifferently(),
  },
};

function speakingDifferently(): NonNullable<KnownBug['kubelet']> {
  let kubelets = 0;
  return ({ state: { statuses } }) => {
    const message = `as of kubelet ${++kubelets}`;
    const set = statuses.setPodStatus.bind(statuses);
    statuses.setPodStatus = (pod, status) => set(pod, { ...status, message });
  };
}

function withPatch(
  client: ApiClient,
  patchStatus: (patch: (...call: PatchCall) => Promise<Pod>, call: PatchCall) => Promise<Pod>,
): ApiClient {
  const isStatus = ({ resource, subresource }: ObjectRef) =>
    resource === apiResources.pods && subresource === 'status';
  return {
    ...bound(client),
    patch: (...call) =>
      (isStatus(call[0])
        ? patchStatus((...own) => client.patch<Pod>(...own), call)
        : client.patch(...call)) as Promise<never>,
  };
}

export function bound(client: ApiClient): ApiClient {
  return {
    get: client.get.bind(client),
    list: client.list.bind(client),
    watch: client.watch.bind(client),
    create: client.create.bind(client),
    post: client.post.bind(client),
    update: client.update.bind(client),
    patch: client.patch.bind(client),
    delete: client.delete.bind(client),
  };
}

function plain({ resource, namespace, name }: ObjectRef): ObjectRef {
  return { resource, namespace, name };
}

function unfenced({ kind, body }: PatchCall[1]): PatchCall[1] {
  const { metadata: _fence, ...rest } = body as { readonly metadata?: unknown };
  return { kind, body: rest };
}
