import type { NodeMachine } from '../../src/kubelet/index.ts';
import type { ObservedContainer, ObservedPod, Pod } from '../../src/pods/index.ts';
import { initContainersOf, isSidecar } from '../../src/pods/index.ts';
import type { Mutation } from './kubelet-life.ts';
import type { SeedOptions } from './seed-options.ts';

/** A typical bug of a kubelet, injected from outside. */
export interface KnownBug extends Mutation {
  /** The rule that must find the bug; by default any rule. */
  readonly breaks?: string;
  /** Options under which the bug is found soonest; the default options find it too, but later. */
  readonly shows?: Pick<
    SeedOptions,
    'trouble' | 'always' | 'killedAt' | 'cluster' | 'volumes' | 'disk' | 'devices' | 'pressure' | 'patienceMs'
  >;
}

/** Bugs in the core of the kubelet; the simulation must find each. */
export const mutations: Readonly<Record<string, KnownBug>> = {
  /**
   * Bug: a pod worker uses a status observed before its last sync ended, and repeats completed
   * actions.
   */
  'an old observation is taken for the truth': {
    kubelet: ({ state: { cache } }) => {
      cache.getNewerThan = async (uid) => cache.get(uid);
    },
  },

  /** Bug: an edited static pod is delivered only as an addition, and the old pod stays. */
  'REMOVE is forgotten when ADD follows': {
    kubelet: ({ state: { config } }) => {
      const take = config.takeUpdate.bind(config);
      let held: ReturnType<typeof take>;
      config.takeUpdate = () => {
        const update = held ?? take();
        held = undefined;
        if (update?.op !== 'REMOVE') return update;
        held = take();
        return held?.op === 'ADD' ? config.takeUpdate() : update;
      };
    },
  },

  /** Bug: a pod that exceeded its active deadline runs again under each kubelet. */
  'how a pod has ended is forgotten with the kubelet': {
    kubelet: ({ control: { workers } }) => {
      const update = workers.updatePod.bind(workers);
      workers.updatePod = ({ pod, ...rest }) =>
        update(pod === undefined ? rest : { ...rest, pod: { ...pod, status: { phase: 'Pending' } } });
    },
  },

  'an init container that runs counts as done': {
    breaks: 'init containers go in order',
    ...seeing((pod, one) => {
      const init = initContainersOf(pod).find(({ name }) => name === one.name);
      const isPlain = init !== undefined && !isSidecar(init);
      return isPlain && one.state === 'running' ? { ...one, state: 'exited', exitCode: 0 } : one;
    }),
  },

  'a sidecar ends like any other container': {
    breaks: 'sidecars stop last, in reverse order',
    kubelet: ({ control: { workers } }) => {
      const update = workers.updatePod.bind(workers);
      workers.updatePod = ({ pod, ...rest }) =>
        update(
          pod === undefined || rest.updateType !== 'kill' ? { ...rest, pod } : { ...rest, pod: plain(pod) },
        );
    },
  },

  'what a probe found out holds for the next instance, too': {
    breaks: 'a probe tells of the instance it asked',
    kubelet: ({
      runtime: {
        probes: { results },
      },
    }) => {
      const ask = results.readiness;
      let last: ReturnType<typeof ask>;
      results.readiness = (containerId) => {
        last = ask(containerId) ?? last;
        return last;
      };
    },
  },

  'how often a container has crashed is forgotten with the kubelet': {
    breaks: 'no back-off is shorter than the curve',
    machine: forgetting('restarts'),
  },

  'a pod that was ready stays so until it ends': {
    breaks: 'a pod is ready only while its containers run',
    kubelet: ({ state: { statuses } }) => {
      const set = statuses.setPodStatus.bind(statuses);
      const ready = new Set<string>();
      statuses.setPodStatus = (pod, { conditions = [], ...status }) => {
        const { uid } = pod.metadata;
        if (conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')) ready.add(uid);
        const isStill = (type: string) => type === 'Ready' && ready.has(uid);
        const retained = conditions.map((each) => (isStill(each.type) ? { ...each, status: 'True' } : each));
        return set(pod, { ...status, conditions: retained });
      };
    },
  },

  'that a preStop hook has begun is forgotten with the kubelet': {
    breaks: 'a preStop hook runs once',
    shows: { trouble: 'kubelet', always: ['hooks'] },
    machine: forgetting('preStops'),
  },

  'that a postStart hook is due is forgotten with the kubelet': {
    breaks: 'every instance has its postStart hook',
    shows: { trouble: 'kubelet', always: ['hooks'], killedAt: 'startContainer' },
    machine: forgetting('postStarts'),
  },

  'an ephemeral container that has ended was never there': {
    breaks: 'an ephemeral container starts once',
    ...seeing((pod, one) => {
      const isEphemeral = pod.spec.ephemeralContainers?.some(({ name }) => name === one.name);
      return isEphemeral && one.state === 'exited' ? undefined : one;
    }),
  },
};

/** Modifies or hides container statuses that the pod workers observe. */
function seeing(change: (pod: Pod, one: ObservedContainer) => ObservedContainer | undefined): Mutation {
  return {
    kubelet: ({ state: { cache, pods } }) => {
      const look = cache.getNewerThan.bind(cache);
      cache.getNewerThan = async (...args) => {
        const observed: ObservedPod = await look(...args);
        const pod = pods.getPodByUid(observed.uid);
        if (pod === undefined) return observed;
        return { ...observed, containers: observed.containers.flatMap((each) => change(pod, each) ?? []) };
      };
    },
  };
}

/** Omits one field from the pod checkpoints. */
function forgetting(field: string): (machine: NodeMachine) => NodeMachine {
  const without = (text: string) => {
    const { [field]: _forgotten, ...notes } = JSON.parse(text) as Record<string, unknown>;
    return JSON.stringify(notes);
  };
  return (machine) => {
    const files = new Proxy(machine.files, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (path: string, text: unknown, ...rest: readonly unknown[]) => {
          const isNotes = name === 'replace' && path.endsWith('/kubeling.json');
          return Reflect.apply(value, target, [path, isNotes ? without(text as string) : text, ...rest]);
        };
      },
    });
    return { ...machine, files };
  };
}

function plain(pod: Pod): Pod {
  const initContainers = initContainersOf(pod).map(({ restartPolicy: _sidecar, ...one }) => one);
  return { ...pod, spec: { ...pod.spec, initContainers } };
}
