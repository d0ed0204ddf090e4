import type { Container, Volume } from '../kinds/index.ts';
import type { PodUid } from '../pods/index.ts';
import { claimNameOf, ephemeralContainersOf, initContainersOf, type Pod } from '../pods/index.ts';
import type { ReferredStore } from './referred-store.ts';

/**
 * The names of all secrets in a pod's spec. Secrets to which a claim or a PersistentVolume refers
 * are not included.
 */
export function secretNamesOf(pod: Pod): ReadonlySet<string> {
  const pulls = (pod.spec.imagePullSecrets ?? []).map(({ name }) => name);
  const environment = containersOf(pod).flatMap(({ env = [], envFrom = [] }) => [
    ...envFrom.map(({ secretRef }) => secretRef?.name),
    ...env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
  ]);
  return named([...pulls, ...environment, ...volumesOf(pod).flatMap(secretsOfVolume)]);
}

/** The names of all config maps in a pod's spec. */
export function configMapNamesOf(pod: Pod): ReadonlySet<string> {
  const environment = containersOf(pod).flatMap(({ env = [], envFrom = [] }) => [
    ...envFrom.map(({ configMapRef }) => configMapRef?.name),
    ...env.map(({ valueFrom }) => valueFrom?.configMapKeyRef?.name),
  ]);
  return named([...environment, ...volumesOf(pod).flatMap(configMapsOfVolume)]);
}

/** The names of all claims that a pod mounts. */
export function claimNamesOf(pod: Pod): ReadonlySet<string> {
  return named(volumesOf(pod).map((volume) => claimNameOf(pod, volume)));
}

function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

function volumesOf({ spec }: Pod): readonly Volume[] {
  return spec.volumes ?? [];
}

/** Volume types that may refer to a secret in the pod's namespace. */
const withSecretRef = ['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'] as const;

function secretsOfVolume(volume: Volume): readonly (string | undefined)[] {
  return [
    volume.secret?.secretName,
    volume.azureFile?.secretName,
    volume.csi?.nodePublishSecretRef?.name,
    ...(volume.projected?.sources ?? []).map(({ secret }) => secret?.name),
    ...withSecretRef.map((kind) => volume[kind]?.secretRef?.name),
  ];
}

function configMapsOfVolume({ configMap, projected }: Volume): readonly (string | undefined)[] {
  return [configMap?.name, ...(projected?.sources ?? []).map((source) => source.configMap?.name)];
}

function named(names: readonly (string | undefined)[]): ReadonlySet<string> {
  return new Set(names.filter((name) => name !== undefined && name !== '') as readonly string[]);
}

interface Registered {
  readonly namespace: string;
  readonly names: ReadonlySet<string>;
}

/**
 * Tracks which pods refer to which objects of one kind, and reports added and removed references to
 * a store.
 */
export class PodReferences<T> {
  readonly #store: ReferredStore<T>;
  readonly #namesOf: (pod: Pod) => ReadonlySet<string>;
  readonly #pods = new Map<PodUid, Registered>();

  constructor(store: ReferredStore<T>, namesOf: (pod: Pod) => ReadonlySet<string>) {
    this.#store = store;
    this.#namesOf = namesOf;
  }

  /**
   * Registers the current references of a pod. May be called at every sync: only differences are
   * reported to the store.
   */
  register(pod: Pod): void {
    const { uid, namespace } = pod.metadata;
    const before = this.#pods.get(uid)?.names ?? new Set<string>();
    const names = this.#namesOf(pod);
    this.#pods.set(uid, { namespace, names });
    for (const name of names) if (!before.has(name)) this.#store.add({ namespace, name }, uid);
    for (const name of before) if (!names.has(name)) this.#store.remove({ namespace, name }, uid);
  }

  /** Removes all references of a pod; does nothing for a pod that is not registered. */
  unregister(uid: PodUid): void {
    const { namespace, names } = this.#pods.get(uid) ?? { namespace: '', names: [] };
    this.#pods.delete(uid);
    for (const name of names) this.#store.remove({ namespace, name }, uid);
  }
}
