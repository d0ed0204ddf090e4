import { apiResources } from '../../../src/api/index.ts';
import type { NodeMachine } from '../../../src/kubelet/index.ts';
import type { PluginHost } from '../../../src/plugins/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import { Node } from '../../../src/volumes/csi/gen/node.ts';
import type { VolumeFiles } from '../../../src/volumes/index.ts';
import { bound } from '../cluster/cluster-mutations.ts';
import type { KnownBug } from '../mutations.ts';
import { withParts } from './joint-files.ts';
import { podDirOf } from './pod-volumes.ts';

type Call = (request: object, options: object) => Promise<object>;

export const mounting = { cluster: 'joined', volumes: 'every-kind' } as const;
/**
 * Options that shorten the wait for the final state: used with bugs that make an operation fail
 * forever, so that the final state is never reached.
 */
const impatient = { ...mounting, patienceMs: 250_000 } as const;

export const starts = 'no container starts before its volumes are mounted';
export const stays = 'no volume goes while a container of its pod runs';

/** Bugs in the volume manager; the simulation must find each. */
export const volumeMutations: Readonly<Record<string, KnownBug>> = {
  'a mount that was asked for counts as made': {
    breaks: starts,
    shows: mounting,
    machine: withFiles(() => ({ mountMemory: async () => {} })),
  },

  'a driver that was never asked counts as done': {
    breaks: starts,
    shows: mounting,
    machine: withCalls('nodePublishVolume', async () => ({})),
  },

  'volumes are unmounted as soon as their pod is told to end': {
    breaks: stays,
    shows: mounting,
    ...atTheEnd(async ({ volumeFiles, readFile }, uid, signal) => {
      for (const place of mountsOf(await readFile('/proc/self/mountinfo'), uid))
        await volumeFiles?.unmount(place, signal);
    }),
  },

  'volumes of drivers are unpublished as soon as their pod is told to end': {
    breaks: stays,
    shows: mounting,
    ...atTheEnd(async ({ plugins, readFile }, uid, signal) => {
      const sockets = (await plugins?.sockets('')) ?? [];
      for (const targetPath of mountsOf(await readFile('/proc/self/mountinfo'), uid))
        for (const { path } of targetPath.endsWith('/mount') ? sockets : [])
          await plugins
            ?.open(path)
            .client(Node)
            .nodeUnpublishVolume({ volumeId: uid, targetPath }, { signal });
    }),
  },

  'a volume is unstaged with the first of its pods': {
    breaks: 'no volume is unstaged while a pod has it',
    shows: mounting,
    machine: withCalls('nodeUnpublishVolume', async (call, request, options, client, staged) => {
      const response = await call(request, options);
      const { volumeId } = request as { readonly volumeId: string };
      const stagingTargetPath = staged.get(volumeId);
      if (stagingTargetPath !== undefined)
        await client['nodeUnstageVolume']?.({ volumeId, stagingTargetPath }, options);
      return response;
    }),
  },

  'what earlier kubelets have mounted is not said to be in use': {
    breaks: 'no volume is detached that the node still has',
    shows: { ...mounting, trouble: 'kubelet' },
    kubelet: (kubelet) => {
      const { pods } = kubelet.state;
      const { csi } = kubelet.volumes;
      if (csi === undefined) return;
      const inUse = csi.inUse.bind(csi);
      const isKnown = (name: string) => pods.getPods().some(({ metadata }) => name.includes(metadata.uid));
      csi.inUse = () => inUse()?.filter(isKnown) ?? [];
    },
  },

  'a driver that has not unstaged a volume counts as done': {
    breaks: 'what is wanted comes to be: staged',
    shows: impatient,
    machine: (machine) => ({
      ...withCalls('nodeUnstageVolume', async () => ({}))(machine),
      ...blind(machine, (path) => path.endsWith('/globalmount')),
    }),
  },

  'what was not removed counts as gone': {
    breaks: 'what is wanted comes to be: /var/lib/kubelet/pods/',
    shows: impatient,
    machine: withFiles(() => ({ removeTree: async () => {} })),
  },

  'what is mounted of a driver is not looked for': {
    breaks: 'no volume is unstaged while a pod has it',
    shows: mounting,
    machine: (machine) => ({
      ...machine,
      ...withFiles((files) => ({
        names: async (directory) => (directory.endsWith('~csi') ? [] : await files.names(directory)),
      }))(machine),
    }),
  },

  'files of a volume are written in place': {
    breaks: 'a reader sees all of an update or none',
    shows: mounting,
    machine: withFiles((files) => ({
      // The link is removed and created again instead of being replaced atomically.
      rename: async (from, to) => {
        await files.unlink(to);
        await files.rename(from, to);
      },
    })),
  },

  'what a container mounts that is added to a running pod is not looked at': {
    breaks: starts,
    shows: mounting,
    kubelet: ({ control: { workers } }) => {
      const update = workers.updatePod.bind(workers);
      workers.updatePod = ({ pod, ...rest }) =>
        update(pod === undefined ? rest : { ...rest, pod: withBareVisitors(pod) });
    },
  },

  'that an object comes or goes is not heard': {
    breaks: 'an update comes soon to the pods that run',
    shows: mounting,
    api: (client) => ({
      ...bound(client),
      async *watch(query, signal) {
        for await (const event of client.watch(query, signal)) {
          const isNews = event.type === 'ADDED' || event.type === 'DELETED';
          if (query.resource !== apiResources.configMaps || !isNews) yield event as never;
        }
      },
    }),
  },

  'what an object says is looked at when the next sync is due': {
    breaks: 'an update comes soon to the pods that run',
    shows: mounting,
    kubelet: (kubelet) => {
      kubelet.state.requestSync = () => {};
    },
  },
};

function withBareVisitors(pod: Pod): Pod {
  const { ephemeralContainers = [] } = pod.spec;
  if (ephemeralContainers.length === 0) return pod;
  const bare = ephemeralContainers.map(({ volumeMounts: _seen, ...container }) => container);
  return { ...pod, spec: { ...pod.spec, ephemeralContainers: bare } };
}

function withFiles(
  change: (files: VolumeFiles) => Partial<VolumeFiles>,
): (machine: NodeMachine) => NodeMachine {
  return (machine) => {
    const { volumeFiles } = machine;
    return volumeFiles === undefined
      ? machine
      : { ...machine, volumeFiles: withParts(volumeFiles, change(volumeFiles)) };
  };
}

/** Hides some mounts from the kubelet. */
function blind(machine: NodeMachine, isHidden: (path: string) => boolean): Partial<NodeMachine> {
  const { volumeFiles } = withFiles((files) => ({
    mountAt: async (path) => (isHidden(path) ? 'none' : await files.mountAt(path)),
    removeEmptyDirectory: async (path) => (isHidden(path) ? 'gone' : await files.removeEmptyDirectory(path)),
  }))(machine);
  return { volumeFiles };
}

function withCalls(
  name: string,
  change: (
    call: Call,
    request: object,
    options: object,
    client: Readonly<Record<string, Call>>,
    staged: ReadonlyMap<string, string>,
  ) => Promise<object>,
): (machine: NodeMachine) => NodeMachine {
  const staged = new Map<string, string>();
  const open = (host: PluginHost): PluginHost['open'] => {
    return (socket) => {
      const channel = host.open(socket);
      return {
        client: (service) => {
          const client = channel.client(service) as unknown as Readonly<Record<string, Call>>;
          const call = client[name];
          const stage = client['nodeStageVolume'];
          if (call === undefined || stage === undefined) return client as never;
          const noted: Call = (request, options) => {
            const { volumeId, stagingTargetPath } = request as Readonly<Record<string, string>>;
            staged.set(volumeId ?? '', stagingTargetPath ?? '');
            return stage(request, options);
          };
          const changed: Call = (request, options) => change(call, request, options, client, staged);
          return { ...client, nodeStageVolume: noted, [name]: changed } as never;
        },
        close: () => channel.close(),
      };
    };
  };
  return (machine) => {
    const { plugins } = machine;
    return plugins === undefined
      ? machine
      : { ...machine, plugins: withParts(plugins, { open: open(plugins) }) };
  };
}

/** Runs a change of the volumes of a terminating pod before its first container is stopped. */
export function atTheEnd(
  act: (machine: NodeMachine, uid: string, signal: AbortSignal) => Promise<void>,
): Pick<KnownBug, 'machine' | 'kubelet'> {
  let own: NodeMachine | undefined;
  return {
    machine: (machine) => {
      own = machine;
      return machine;
    },
    kubelet: ({ control: { workers } }) => {
      const update = workers.updatePod.bind(workers);
      const { signal } = new AbortController();
      workers.updatePod = (options) => {
        const { pod, updateType } = options;
        const isEnding = updateType === 'kill' || pod?.metadata.deletionTimestamp !== undefined;
        if (isEnding && pod !== undefined && own !== undefined)
          void act(own, pod.metadata.uid, signal).catch(() => {});
        update(options);
      };
    },
  };
}

function mountsOf(mountinfo: string, uid: string): readonly string[] {
  const places = mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '');
  return places.filter((place) => place.startsWith(`${podDirOf(uid)}/`));
}
