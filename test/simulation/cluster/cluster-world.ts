import { apiResources, type JsonObject } from '../../../src/api/index.ts';
import { sleepOn } from '../../../src/lib/clock.ts';
import { type Clock, instant, type Random } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/stored-object.ts';
import type { StoreChange } from '../../../src/local-api/storage/versioned-store.ts';
import { annotations, type Pod } from '../../../src/pods/index.ts';
import { nodeUser } from '../../fakes/api-users.ts';
import type { VirtualClock } from '../../fakes/virtual-clock.ts';
import { randomApiFaults, SimulatedApi } from '../../simulator/index.ts';
import { apiPodOf, fullNameOf, nodeName, uidOf } from '../manifests.ts';
import type { PodSketch } from '../sketch.ts';
import { withEveryVolume } from '../volumes/pod-volumes.ts';
import type { VolumeWorld } from '../volumes/volume-world.ts';
import type { ClusterStep } from './cluster-steps.ts';

export interface ClusterWorldOptions {
  readonly clock: VirtualClock;
  readonly random: Random;
  /** Offset of the API server's clock from the node's clock. */
  readonly skewMs: number;
  /** Whether the kubelet caches API objects; by default it does not. */
  readonly copies?: 'kept' | undefined;
  /**
   * The volumes of a simulation in which pods have all volume types; by default pods have few
   * volumes.
   */
  readonly volumes?: VolumeWorld | undefined;
  readonly note: (what: string) => void;
  readonly changed: (change: StoreChange) => void;
}

const namespace = 'default';
const pods = apiResources.pods;
const leaseNamespace = 'kube-node-lease';
/** Possible delays in milliseconds before a claim is bound to a volume. */
const latenesses = [0, 500, 5_000, 20_000];

/** The simulated API server and its clients other than the kubelet. */
export class ClusterWorld {
  readonly api: SimulatedApi;
  readonly node = nodeUser(nodeName);
  readonly #options: ClusterWorldOptions;
  readonly #dressed = new Set<string>();
  #awaySinceMs: number | undefined;

  constructor(options: ClusterWorldOptions) {
    this.#options = options;
    const { clock, random, skewMs } = options;
    this.api = new SimulatedApi({ clock: skewed(clock, skewMs), random });
    options.volumes?.furnish(this.api);
    this.api.onChange((change) => {
      if (isTold(change)) options.note(describeChange(change));
      options.changed(change);
    });
  }

  get copies(): ClusterWorldOptions['copies'] {
    return this.#options.copies;
  }

  /** When the current API outage began; undefined while the API is reachable. */
  get awaySinceMs(): number | undefined {
    return this.#awaySinceMs;
  }

  /** The pods bound to this node, including mirror pods. */
  pods(): readonly StoredObject[] {
    return this.api.objects(pods).filter(({ spec }) => spec?.['nodeName'] === nodeName);
  }

  pod(name: string): StoredObject | undefined {
    return this.api.object({ resource: pods, namespace, name });
  }

  mirrorOf(sketch: PodSketch): StoredObject | undefined {
    return this.pod(fullNameOf(sketch));
  }

  theNode(): StoredObject | undefined {
    return this.api.object({ resource: apiResources.nodes, name: nodeName });
  }

  lease(): StoredObject | undefined {
    return this.api.object({ resource: apiResources.leases, namespace: leaseNamespace, name: nodeName });
  }

  create(sketch: PodSketch): void {
    const { metadata, spec } = this.#podOf(sketch);
    if (
      this.#options.volumes === undefined &&
      spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined)
    )
      this.#claim(metadata.uid);
    this.api.put(pods, { metadata, spec, status: { phase: 'Pending' } });
  }

  /** Whether the pod was created with all volume types. */
  hadVolumes(uid: string): boolean {
    return this.#dressed.has(uid);
  }

  /** Replaces the containers in the pod's spec by those of its current generated description. */
  edit(sketch: PodSketch): void {
    const { spec } = this.#podOf(sketch);
    const { containers, initContainers, ephemeralContainers } = spec;
    this.api.change({ resource: pods, namespace, name: sketch.name }, (pod) => ({
      ...pod,
      spec: {
        ...pod.spec,
        containers,
        ...(initContainers !== undefined && { initContainers }),
        ...(ephemeralContainers !== undefined && { ephemeralContainers }),
      } as unknown as JsonObject,
    }));
  }

  label(name: string, value: string): void {
    this.api.change({ resource: pods, namespace, name }, (pod) => ({
      ...pod,
      metadata: {
        ...pod.metadata,
        labels: { ...pod.metadata.labels, edited: value },
        annotations: { ...pod.metadata.annotations, edited: value },
      },
    }));
  }

  callUnready(name: string): void {
    this.api.change({ resource: pods, namespace, name }, (pod) => {
      const conditions = (pod.status?.['conditions'] ?? []) as readonly JsonObject[];
      const unready = (each: JsonObject) => (each['type'] === 'Ready' ? { ...each, status: 'False' } : each);
      return { ...pod, status: { ...pod.status, conditions: conditions.map(unready) } };
    });
  }

  delete(name: string, grace: number | undefined): void {
    if (this.pod(name) !== undefined) this.api.deletePod(namespace, name, grace);
  }

  /** Deletes the Node; its pods and lease are deleted later, as the garbage collector does. */
  deleteNode(): void {
    const node = this.theNode();
    if (node === undefined) return;
    this.api.delete({ resource: apiResources.nodes, name: nodeName });
    this.#options.clock.timer(2_000, () => this.#collect(node.metadata.uid));
  }

  faults(step: Extract<ClusterStep, { do: 'faults' }>): void {
    const { random } = this.#options;
    this.api.setFaults(randomApiFaults({ random, rates: step.rates, maxDelayMs: step.maxDelayMs }));
  }

  goAway(how: 'refusing' | 'silent'): void {
    this.#awaySinceMs ??= this.#options.clock.monotonicMs();
    this.api.goAway(how);
  }

  comeBack(): void {
    this.#awaySinceMs = undefined;
    this.api.comeBack();
  }

  heal(): void {
    this.api.setFaults(undefined);
    this.comeBack();
  }

  #podOf(sketch: PodSketch): Pod {
    const pod = apiPodOf(sketch, { phase: 'Pending' });
    const { volumes } = this.#options;
    if (volumes === undefined) return withVolumes(pod);
    volumes.provide(this.api, pod);
    this.#dressed.add(pod.metadata.uid);
    return withEveryVolume(pod);
  }

  /** Creates a claim for a pod; it is bound immediately, or so late that the pod has to wait. */
  #claim(name: string): void {
    const { persistentVolumeClaims: claims, persistentVolumes: volumes } = apiResources;
    const metadata = { namespace, name, uid: `claim-${name}` };
    const claimRef = { namespace, name, uid: metadata.uid };
    const put = (phase: 'Pending' | 'Bound') => {
      this.api.put(volumes, {
        metadata: { name },
        spec: { hostPath: { path: '/data' }, ...(phase === 'Bound' && { claimRef }) },
      });
      this.api.put(claims, { metadata, spec: { volumeName: name }, status: { phase } });
    };
    const lateMs = latenesses[Number.parseInt(name.slice(1, 2), 16) % latenesses.length] ?? 0;
    put(lateMs === 0 ? 'Bound' : 'Pending');
    if (lateMs > 0) this.#options.clock.timer(lateMs, () => put('Bound'));
  }

  #collect(owner: string): void {
    const isOwned = ({ metadata }: StoredObject) =>
      metadata.ownerReferences?.some(({ uid }) => uid === owner) === true;
    for (const { metadata } of this.pods().filter(isOwned)) this.delete(metadata.name, undefined);
    const lease = this.lease();
    if (lease !== undefined && isOwned(lease))
      this.api.delete({ resource: apiResources.leases, namespace: leaseNamespace, name: nodeName });
  }
}

/**
 * Adds volumes to the pod: one pod in four has a claim, selected by UID so that no random number is
 * drawn.
 */
function withVolumes(pod: Pod): Pod {
  const { uid } = pod.metadata;
  const scratch = { name: 'scratch', emptyDir: {} };
  if (Number.parseInt(uid.slice(0, 1), 16) % 4 !== 0)
    return { ...pod, spec: { ...pod.spec, volumes: [scratch] } };
  const data = { name: 'data', persistentVolumeClaim: { claimName: uid } };
  const containers = pod.spec.containers.map((container) => ({
    ...container,
    volumeMounts: [{ name: data.name, mountPath: '/data' }],
  }));
  return { ...pod, spec: { ...pod.spec, containers, volumes: [scratch, data] } };
}

export function isMirror({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[annotations.mirror] !== undefined;
}

/** The UID of the pod that an API object represents; for a mirror pod that of its static pod. */
export function ownUidOf({ metadata }: StoredObject): string {
  return metadata.annotations?.[annotations.mirror] ?? metadata.uid;
}

export function isOfSketch(object: StoredObject, sketch: PodSketch): boolean {
  return ownUidOf(object) === uidOf(sketch);
}

function skewed(inner: Clock, skewMs: number): Clock {
  const clock: Clock = {
    now: () => instant(inner.now() + skewMs),
    monotonicMs: () => inner.monotonicMs(),
    stamp: () => inner.stamp(),
    sleep: (ms, signal) => sleepOn(clock, ms, signal),
    timer: (ms, run) => inner.timer(ms, run),
  };
  return clock;
}

function isTold({ resource }: StoreChange): boolean {
  return resource.plural === 'pods' || resource.plural === 'nodes';
}

interface ToldStatus {
  readonly phase?: string;
  readonly containerStatuses?: readonly ToldContainer[];
}

interface ToldContainer {
  readonly name: string;
  readonly restartCount?: number;
  readonly ready?: boolean;
  readonly state?: object;
}

function describeChange({ type, resource, object, user, before }: StoreChange): string {
  const { phase, containerStatuses = [] } = (object.status ?? {}) as ToldStatus;
  const isEnding = object.metadata.deletionTimestamp === undefined ? '' : ' ending';
  const containers = containerStatuses.map(
    ({ name, restartCount, ready, state = {} }) =>
      `${name}#${restartCount}:${Object.keys(state)[0] ?? '?'}${ready ? '+' : ''}`,
  );
  const what = `${resource.plural}/${object.metadata.name} ${object.metadata.uid.slice(0, 8)}${isEnding}`;
  const by = user.startsWith('system:node:') ? 'node' : 'admin';
  const age = before === undefined ? '' : ` after ${before.metadata.resourceVersion}`;
  return `api ${by} ${type} ${what} ${phase ?? ''} ${containers.join(' ')} v${object.metadata.resourceVersion}${age}`;
}
