import type { Container, Volume } from '../kinds/index.ts';
import { claimNameOf, ephemeralContainersOf, initContainersOf, type Pod } from '../pods/index.ts';

/**
 * The names of all secrets in a pod's spec. Secrets named by a claim or a PersistentVolume are not
 * included.
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
